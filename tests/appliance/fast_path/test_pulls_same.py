"""Pulls by the fast path and by the Python path: the same answers, the same progress, the same counters."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData, SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import JSON, ROCKETMQ, RemotingCommand
from tests.appliance.fast_path.rig import Pair, pair_of_brokers
from tests.appliance.fast_path.sends import batch, first_messages, send

GROUP = "readers"


def pull(number: int, offset: int, *, serialize_type: int = JSON, flag: int = 0, **changes: str | None) -> bytes:
    """A pull's frame as the Java client writes it; a change to None leaves the field out."""
    fields: dict[str, str | None] = {
        "consumerGroup": GROUP, "topic": "orders", "queueId": "1", "queueOffset": str(offset), "maxMsgNums": "32",
        "sysFlag": "5", "commitOffset": str(offset), "suspendTimeoutMillis": "15000", "subscription": "*",
        "subVersion": "0", "expressionType": "TAG",
    } | changes  # fmt: skip
    given = {name: value for name, value in fields.items() if value is not None}
    return RemotingCommand(11, given, b"", None, 100_000 + number, flag, "JAVA", 401, serialize_type).encode()


async def fill(pair: Pair, count: int = 300, *, body_bytes: int = 300) -> None:
    """Messages of three tags, some of them in batches, in the four queues of `orders`."""
    for side in (pair.fast, pair.plain):
        side.broker.groups.update(SubscriptionGroupConfig(GROUP))
    await first_messages(pair)
    for number in range(10, 10 + count):
        tag = "TagA" if number % 3 else "TagC"
        await pair.receive(send(number, b"b" * (number * 31 % body_bytes), f"TAGS\x01{tag}\x02a\x01b"))
    await pair.receive(batch(5000, [b"x" * 10] * 20, e="1"))


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ])
async def test_pulls_through_a_queue(tmp_path: Path, serialize_type: int) -> None:
    with pair_of_brokers(tmp_path) as pair:
        await fill(pair)
        for number, count in enumerate((1, 0, -5, 7, 32, 64, 200, 1000)):
            for offset in (0, 1, 40, 90, 97):
                await pair.receive(
                    pull(10 * number + offset, offset, maxMsgNums=str(count), serialize_type=serialize_type)
                )
        assert pair.fast.served_fast > 330
        pair.check()


async def test_what_tools_look_at_is_not_counted_as_read(tmp_path: Path) -> None:
    with pair_of_brokers(tmp_path) as pair:
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
async def test_pulls_by_tag(tmp_path: Path, expression: str) -> None:
    with pair_of_brokers(tmp_path) as pair:
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


async def test_the_subscription_of_a_heartbeat(tmp_path: Path) -> None:
    with pair_of_brokers(tmp_path) as pair:
        await fill(pair, 100)
        for number, (tags, version) in enumerate([("*", 1), ("TagC", 2), ("TagA||TagC", 3)]):
            subscription = SubscriptionData("orders", tags, sub_version=version)
            beat = HeartbeatData("client", [], [ConsumerData(GROUP, subscription_data_set=[subscription])])
            request = RemotingCommand(RequestCode.HEART_BEAT, {}, beat.to_json(), None, number, 0, "JAVA", 401, JSON)
            await pair.receive(request.encode())
            for wanted in (version - 1, version, version + 1):
                await pair.receive(
                    pull(10 * number + wanted, 2, sysFlag="1", subVersion=str(wanted), subscription=None)
                )
        pair.check()


@pytest.mark.parametrize("forbidden", ["broker", "topic", "group"])
async def test_what_is_not_allowed(tmp_path: Path, forbidden: str) -> None:
    with pair_of_brokers(tmp_path) as pair:
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


async def test_sends_and_pulls_in_one_read_event(tmp_path: Path) -> None:
    with pair_of_brokers(tmp_path) as pair:
        await fill(pair, 40)
        step = random.Random(5)
        for turn in range(20):
            parts = [send(10_000 + 50 * turn + number, e="1") for number in range(step.randrange(5))]
            # Of another queue: the Python path serves sends before pulls, whatever their order.
            parts += [pull(100 * turn + number, 3, queueId="2") for number in range(step.randrange(5))]
            step.shuffle(parts)
            await pair.receive(b"".join(parts))
        pair.check()


async def test_cut_at_every_byte(tmp_path: Path) -> None:
    with pair_of_brokers(tmp_path) as pair:
        await fill(pair, 40)
        for serialize_type in (JSON, ROCKETMQ):
            whole = pull(1, 2, serialize_type=serialize_type)
            for size in range(4, len(whole) - 4):
                await pair.receive(size.to_bytes(4) + whole[4 : 4 + size])
                for side in (pair.fast, pair.plain):
                    if side.socket.is_over:
                        side.connect()
        pair.check()
