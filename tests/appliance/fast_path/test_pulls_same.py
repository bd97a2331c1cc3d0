"""Pulls by the fast path and by the Python path: the same answers, the same progress, the same counters."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.fast_pulls import FastPulls
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import JSON, ROCKETMQ, RemotingCommand
from store.queues.filter import Filter
from tests.appliance.fast_path.pulls import GROUP, fill, pull
from tests.appliance.fast_path.rig import Pair, pair_of_brokers
from tests.appliance.fast_path.sends import send


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ])
async def test_pulls_through_a_queue(pair: Pair, serialize_type: int) -> None:
    await fill(pair)
    for number, count in enumerate((1, 0, -5, 7, 32, 64, 200, 1000)):
        for offset in (0, 1, 40, 90, 97):
            await pair.receive(pull(10 * number + offset, offset, maxMsgNums=str(count), serialize_type=serialize_type))
    assert pair.fast.served_fast > 330
    pair.check()


async def test_what_tools_look_at_is_not_counted_as_read(pair: Pair) -> None:
    await fill(pair)
    for side in (pair.fast, pair.plain):
        side.broker.groups.update(SubscriptionGroupConfig("TOOLS_CONSUMER"))
    before = pair.fast.served_fast
    await pair.receive(pull(1, 0, consumerGroup="TOOLS_CONSUMER", sysFlag="4", commitOffset=None))
    await pair.receive(pull(2, 1 << 40, consumerGroup="TOOLS_CONSUMER", sysFlag="4", commitOffset=None))
    assert pair.fast.served_fast == before + 1, "messages are handed out fast, a miss is the Python path's"
    assert pair.fast.state()["get stats"] == (0, 0, 0)
    pair.check()


@pytest.mark.parametrize("expression", ["TagA", "TagC", "TagA || TagC", "none", "", "TagB||x", " || ", "a" * 600])
async def test_pulls_by_tag(pair: Pair, expression: str) -> None:
    await fill(pair)
    for offset in range(0, 100, 9):
        await pair.receive(pull(offset, offset, subscription=expression))
    pair.check()


CHANGES: list[dict[str, str | None]] = [
    {"consumerGroup": "strangers"}, {"consumerGroup": None}, {"topic": "unknown"}, {"topic": "payments"},
    {"queueId": "9"}, {"queueId": "-1"}, {"queueOffset": "-1"}, {"queueOffset": "9999"}, {"queueOffset": "x"},
    {"sysFlag": "0"}, {"sysFlag": "4"}, {"sysFlag": "1"}, {"sysFlag": "7"}, {"commitOffset": "-2"},
    {"commitOffset": None}, {"commitOffset": "7"}, {"subVersion": "x"}, {"subVersion": None}, {"subscription": None},
    {"expressionType": None}, {"expressionType": "SQL92", "subscription": "a = 'b'"}, {"maxMsgNums": "y"},
    {"maxMsgNums": None}, {"sysFlag": "6", "queueOffset": "5"}, {"expressionType": ""},
    {"queueOffset": "0000000003"}, {"queueId": "01"}, {"queueOffset": "-0"}, {"queueOffset": "+3"},
    {"commitOffset": "007"}, {"bname": "broker-a"},
]  # fmt: skip


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ])
async def test_fields_of_every_kind(tmp_path: Path, serialize_type: int) -> None:
    with pair_of_brokers(tmp_path, auto_create_subscription_group=False) as pair:
        await fill(pair, 60)
        for number, changes in enumerate(CHANGES):
            await pair.receive(pull(number, 3, serialize_type=serialize_type, **changes))
            await pair.receive(pull(1000 + number, 3, serialize_type=serialize_type, flag=2, **changes))
        pair.check()


def heartbeat(number: int, model: str, *subscriptions: SubscriptionData) -> bytes:
    data = ConsumerData(GROUP, message_model=model, subscription_data_set=list(subscriptions))
    body = HeartbeatData("client", [], [data]).to_json()
    return RemotingCommand(RequestCode.HEART_BEAT, {}, body, None, number, 0, "JAVA", 401, JSON).encode()


@pytest.mark.parametrize("model", ["CLUSTERING", "BROADCASTING"])
async def test_the_subscription_of_a_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """As Java's push consumers pull. The twin decides alone: Python is not asked about what it serves."""
    asked: list[str] = []
    wanted = FastPulls.wanted

    def counted(pulls: FastPulls, *fields: Any) -> Filter | None:
        found = wanted(pulls, *fields)
        asked.append(fields[2])
        return found

    monkeypatch.setattr(FastPulls, "wanted", counted)
    said = [("*", []), ("TagC", [2_598_919]), ("TagA||TagC", []), ("none", [1]), ("", [5]), ("TagA || ", [])]
    with pair_of_brokers(tmp_path) as pair:
        await fill(pair, 100)
        before, number = pair.fast.served_fast, 0
        for version, (tags, codes) in enumerate(said, 1):
            for changes in ({}, {"expression_type": ""}, {"class_filter_mode": True}):
                subscription = SubscriptionData("orders", tags, [], codes, version, **changes)
                await pair.receive(heartbeat(10 * number, model, subscription))
                for text in (str(version - 1), f"0{version}", str(version + 1), "x", "", None):
                    number += 1
                    frame = pull(number, 2, sysFlag="1", subVersion=text, subscription=None, commitOffset="2")
                    await pair.receive(frame)
        assert pair.fast.served_fast - before == 30 and not asked
        pair.check()
        for side in (pair.fast, pair.plain):
            side.broker.groups.update(SubscriptionGroupConfig(GROUP, consume_broadcast_enable=False))
        await pair.receive(pull(999, 2, sysFlag="1", subVersion="1", subscription=None, commitOffset="2"))
        sql = SubscriptionData("orders", "a = 'b'", sub_version=99, expression_type="SQL92")
        await pair.receive(heartbeat(1000, model, sql))
        await pair.receive(pull(1001, 2, sysFlag="1", subVersion="1", subscription=None, commitOffset="2"))
        pair.check()


@pytest.mark.parametrize("forbidden", ["broker", "topic", "group"])
async def test_what_is_not_allowed(pair: Pair, forbidden: str) -> None:
    await fill(pair, 20)
    await pair.receive(pull(1, 1))
    for side in (pair.fast, pair.plain):
        if forbidden == "broker":
            object.__setattr__(side.broker.config, "permission", 2)
        elif forbidden == "topic":
            side.broker.topics.update(TopicConfig("orders", 4, 4, perm=2))
        else:
            side.broker.groups.update(SubscriptionGroupConfig(GROUP, consume_enable=False))
    await pair.receive(pull(2, 1))
    pair.check()


async def test_large_answers_and_limits(tmp_path: Path) -> None:
    limits = {"transfer_bytes_in_memory_max": 20_000, "transfer_count_in_memory_max": 12}
    with pair_of_brokers(tmp_path, store=limits) as pair:
        await fill(pair, 200, body_bytes=9000)
        for offset in range(0, 60, 5):
            await pair.receive(pull(offset, offset))
        pair.check()


async def test_a_queue_whose_units_are_on_disk(tmp_path: Path) -> None:
    with pair_of_brokers(tmp_path, store={"consume_queue_file_bytes": 40 * 20}) as pair:
        await fill(pair)
        for side in (pair.fast, pair.plain):
            side.broker.store.queue_flusher.finish()
            for queue in side.broker.store.parts.queues:
                queue.trim(7)
        for offset in range(0, 100, 3):
            await pair.receive(pull(offset, offset))
            await pair.receive(pull(500 + offset, offset, subscription="TagC"))
        assert pair.fast.served_fast > 300
        pair.check()


@pytest.mark.parametrize("units_each", [50, 2000])
async def test_units_that_are_kept_for_the_next_pull(tmp_path: Path, units_each: int) -> None:
    """Consumers go on where they were, in turns, backwards too; the queue grows, is cut and filled anew meanwhile."""
    with pair_of_brokers(tmp_path, store={"consume_queue_file_bytes": units_each * 20}) as pair:
        await fill(pair)
        step = random.Random(3)
        for number in range(150):
            if number % 10 == 0:
                for side in (pair.fast, pair.plain):
                    side.broker.store.queue_flusher.finish()
                    for queue in side.broker.store.parts.queues:
                        queue.trim(number % 3)
                        if number % 50 == 40:
                            queue.cut(queue.next_index - 30)
                await pair.receive(b"".join(send(10_000 + 100 * number + each) for each in range(80)))
            tags = {} if number % 3 else {"subscription": "TagC"}
            offset, count = step.choice([(3 * (number % 10), 3), (step.randrange(120), 20), (number, 1)])
            await pair.receive(pull(number, offset, queueId=str(number % 4), maxMsgNums=str(count), **tags))
        pair.check()
        assert pair.fast.served_fast > 1300


async def test_units_are_kept_of_some_queues_only(pair: Pair) -> None:
    await fill(pair, 0)
    for side in (pair.fast, pair.plain):
        side.broker.topics.update(TopicConfig("orders", 100, 100))
    for queue_id in range(100):
        await pair.receive(send(100 + queue_id, e=str(queue_id)))
    queues = list(pair.fast.broker.store.parts.queues)
    for side in (pair.fast, pair.plain):
        side.broker.store.queue_flusher.finish()
        for queue in side.broker.store.parts.queues:
            queue.trim(0)
    for turn in range(2):
        for queue_id in range(100):
            await pair.receive(pull(1000 * turn + queue_id, 0, queueId=str(queue_id)))
    pair.check()
    assert sum(queue.looked_at is not None for queue in queues) == 64
    assert all(queue.looked_at is None for queue in pair.plain.broker.store.parts.queues)


async def test_what_may_not_be_shown_yet(pair: Pair) -> None:
    await fill(pair, 100)
    for share in (0.3, 0.9, 1.0):
        for side in (pair.fast, pair.plain):
            side.broker.store.show_below(int(side.broker.store.parts.log.position * share))
        for offset in range(0, 40, 7):
            await pair.receive(pull(int(1000 * share) + offset, offset, maxMsgNums="5"))
        pair.check()


async def test_sends_and_pulls_in_one_read_event(pair: Pair) -> None:
    await fill(pair, 40)
    step = random.Random(5)
    for turn in range(20):
        parts = [send(10_000 + 50 * turn + number, e="1") for number in range(step.randrange(5))]
        # Of another queue: the Python path serves sends before pulls, whatever their order.
        parts += [pull(100 * turn + number, 3, queueId="2") for number in range(step.randrange(5))]
        step.shuffle(parts)
        await pair.receive(b"".join(parts))
    pair.check()


async def test_cut_at_every_byte(pair: Pair) -> None:
    await fill(pair, 40)
    for serialize_type in (JSON, ROCKETMQ):
        await pair.receive_cut(pull(1, 2, serialize_type=serialize_type))
    pair.check()
