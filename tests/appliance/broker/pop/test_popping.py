"""Messages leased to whoever pops: handed out once, acknowledged, or delivered again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from appliance.broker.controller import BrokerController
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.pop.journal import Journal, line_of
from appliance.broker.pop.modes import Mode
from gantrymq import AdminClient
from gantrymq.errors import MessageRejected
from gantrymq.message.record import decode_records
from gantrymq.message.topics import RETRY_PREFIX
from gantrymq.remoting.admin_bodies import KVTable, TopicConfig
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.pop_bodies import SetModeRequest
from store.base.errors import NotReadableNow
from store.base.results import HOPELESS, PutMessageResult, PutMessageStatus
from store.log.commit_log import NEVER, CommitLog
from store.message_store import MessageStore
from tests.appliance.broker.pop.popper import Delivered, Popper, popping
from tests.harness import serving
from tests.waiting import until


@contextlib.asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[tuple[BrokerController, Popper]]:
    """A broker, and a client that pops from its topic "orders" (two queues)."""
    async with serving(folder) as cluster, popping(cluster.broker_address) as popper:
        await popper.send(b"first", TAGS="a")
        yield cluster.broker, popper


def bodies(delivered: list[Delivered]) -> list[bytes]:
    return sorted(each.body for each in delivered)


def offset_of(broker: BrokerController, topic: str = "orders", queue_id: int = 0) -> int:
    return broker.offsets.query("g", topic, queue_id)


def refuse_twice(broker: BrokerController, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have the next two retry topics find no room; return the names of all that are asked for."""
    tries: list[str] = []
    create = broker.topics.create_retry_topic

    def create_retry_topic(name: str, queues: int) -> TopicConfig:
        tries.append(name)
        if len(tries) < 3:
            raise MessageRejected("there are too many topics")
        return create(name, queues)

    monkeypatch.setattr(broker.topics, "create_retry_topic", create_retry_topic)
    return tries


async def test_a_message_is_out_until_it_is_acknowledged(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop()
        assert (first.body, await popper.pop()) == (b"first", [])
        assert offset_of(broker) == 0, "what is out is not done with"
        assert await popper.ack(first) == 0
        assert (offset_of(broker), broker.pop.book.count) == (1, 0)


async def test_a_pop_takes_of_all_queues(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_broker, popper):
        await popper.send(b"second", queue_id=1)
        await popper.send(b"third", queue_id=1)
        assert bodies(await popper.pop()) == [b"first", b"second", b"third"]


async def test_the_group_stands_at_the_oldest_message_that_is_out(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        for number in range(1, 5):
            await popper.send(b"%d" % number)
        out = await popper.pop()
        for each in out[1:3]:
            assert await popper.ack(each) == 0
        assert offset_of(broker) == 0
        assert await popper.ack(out[0]) == 0
        assert offset_of(broker) == 3
        assert await popper.ack_all(out[3:]) == 0
        assert offset_of(broker) == 5


async def test_what_is_not_acknowledged_in_time_comes_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop(invisibleTime=50)
        (again,) = await popper.pop(pollTime=30_000)
        assert (again.body, again.message.reconsume_times, again.message.topic) == (b"first", 1, "orders")
        properties = again.message.properties
        assert properties["1ST_POP_TIME"] == first.handle.split(" ")[1]
        assert (properties["TAGS"], properties["RETRY_TOPIC"]) == ("a", "orders")
        assert await popper.ack(first) == 208, "its lease is over"
        assert await popper.ack(again) == 0
        await until(lambda: (offset_of(broker), offset_of(broker, "%RETRY%g_orders")) == (1, 1))


async def test_a_lease_ends_once_the_disk_has_the_message_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[tuple[int, Callable[[bool], None]]] = []
    monkeypatch.setattr("appliance.broker.pop.redelivery.AGAIN_MS", 10)
    async with scene(tmp_path) as (broker, popper):
        monkeypatch.setattr(broker.store, "when_flushed", lambda end, note: waiting.append((end, note)))
        (first,) = await popper.pop(invisibleTime=1)
        (again,) = await popper.pop(pollTime=30_000)
        ((end, note),) = waiting
        assert (end, again.body) == (broker.store.max_physical_offset, b"first")
        assert offset_of(broker) == 0, "power may fail now: the group is still to get it from here"
        assert await popper.ack(first) == 208, "its lease is over"
        note(False)
        await until(lambda: len(waiting) == 2)
        assert (broker.pop.book.redelivered.total(), waiting[1][0]) == (1, end), "it waits on, and stores no third one"
        waiting[1][1](True)
        assert offset_of(broker) == 1


@pytest.mark.parametrize("status", HOPELESS)
async def test_what_the_store_will_never_take_again_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: PutMessageStatus
) -> None:
    async with scene(tmp_path) as (broker, popper):
        monkeypatch.setattr(broker.store, "put_message", lambda *_, **__: PutMessageResult(status))
        await popper.pop(invisibleTime=1)
        await until(lambda: offset_of(broker) == 1)
        assert broker.pop.redelivery.gone == 1
        assert [record.__dict__["why"] for record in caplog.records if record.levelname == "ERROR"] == [status.name]


async def test_what_has_no_room_in_a_table_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("appliance.broker.pop.redelivery.AGAIN_MS", 10)
    async with scene(tmp_path) as (broker, popper):
        tries = refuse_twice(broker, monkeypatch)
        await popper.pop(invisibleTime=1)
        (again,) = await popper.pop(pollTime=30_000)
        assert (again.body, broker.pop.redelivery.gone, len(tries)) == (b"first", 0, 3)


async def test_a_message_given_back_comes_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_broker, popper):
        (first,) = await popper.pop()
        assert (await popper.change(first, 0)).code == 0
        (again,) = await popper.pop(pollTime=30_000)
        assert again.message.reconsume_times == 1


async def test_a_longer_time_keeps_message_and_handle(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop(invisibleTime=5000)
        answer = await popper.change(first, 3_600_000)
        words = first.handle.split(" ")
        assert answer.ext_fields["popTime"] == words[1], "the delivery keeps its name"
        new = [*words]
        new[2] = answer.ext_fields["invisibleTime"]
        assert int(new[2]) >= 3_600_000
        assert broker.pop.book.next_due_ms() == int(words[1]) + int(new[2])
        assert await popper.ack(Delivered(first.message, " ".join(new), "g", "orders")) == 0


async def test_after_the_last_attempt_it_is_a_dead_letter(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.pop(invisibleTime=1)
        broker.groups.configs["g"].retry_max_times = 1
        (again,) = await popper.pop(pollTime=30_000)
        await popper.change(again, 0)
        await until(lambda: broker.pop.redelivery.dead == 1)
        found = broker.store.get_message("g", "%DLQ%g", 0, 0, 32)
        (dead,) = decode_records(b"".join(found.buffers))
        assert (dead.body, dead.properties["DLQ_ORIGIN_TOPIC"], dead.reconsume_times) == (b"first", "orders", 2)
        assert await popper.pop() == []


async def test_the_status_tells_what_is_out(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.pop()
        told = broker.pop.figures()
        assert (told["popMessagesOut"], told["popMessagesOutByGroup"]) == ("1", "g:1")
        assert int(told["popOldestOutMs"]) >= 0
        info = KVTable.from_json((await popper.ask(28, {})).body).table
        assert info.keys() >= told.keys()


async def test_a_pop_waits_for_a_message(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.pop()
        waiting = [asyncio.create_task(popper.pop(pollTime=30_000, maxMsgNums=1)) for _ in range(2)]
        await until(lambda: broker.pop.hold.count == 2)
        await popper.send(b"x")
        await popper.send(b"y", queue_id=1)
        assert bodies([each for found in await asyncio.gather(*waiting) for each in found]) == [b"x", b"y"]
        assert not broker.hold.topics


async def test_a_pop_in_vain_is_told_when_its_time_is_up(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.pop()
        assert (await popper.pop_answer(pollTime=1)).code == 210
        assert (await popper.pop_answer(pollTime=0)).code == 210
        assert broker.pop.hold.count == 0


async def test_where_nothing_new_can_come_no_pop_waits(tmp_path: Path) -> None:
    """On a master that is past its proof: what is there is given all the same."""
    async with scene(tmp_path) as (broker, popper):
        await popper.pop()
        await popper.send(b"x")
        broker.hold.closed_for = "etcd does not prove that this is the master"
        assert bodies(await popper.pop(pollTime=30_000)) == [b"x"]
        refused = await popper.pop_answer(pollTime=30_000)
        assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE and broker.pop.hold.count == 0


async def test_too_many_waiting_pops_are_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("appliance.broker.pop.hold.WAITING_A_GROUP_MAX", 1)
    async with scene(tmp_path) as (broker, popper):
        await popper.pop()
        waiting = asyncio.create_task(popper.pop(pollTime=30_000))
        await until(lambda: broker.pop.hold.count == 1)
        assert (await popper.pop_answer(pollTime=30_000)).code == 209
        await popper.send(b"x")
        assert bodies(await waiting) == [b"x"]


async def test_what_nobody_wants_is_passed_over(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second", TAGS="b")
        await popper.send(b"third", TAGS="a")
        (wanted,) = await popper.pop(exp="b", expType="TAG")
        assert wanted.body == b"second"
        assert await popper.ack(wanted) == 0
        assert await popper.pop(exp="b", expType="TAG") == []
        assert offset_of(broker) == 3


async def test_a_pop_that_waits_looks_behind_what_it_passes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.reader.FILTER_UNITS_MIN", 2)
    async with scene(tmp_path) as (_broker, popper):
        for number in range(99):
            await popper.send(b"%d" % number, TAGS="a")
        await popper.send(b"wanted", TAGS="b")
        answer = await popper.pop_answer(exp="b", expType="TAG", maxMsgNums=2, pollTime=30_000)
        assert bodies(popper.delivered(answer)) == [b"wanted"]


async def test_a_notification_says_whether_there_is_something(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        fields = {"consumerGroup": "g", "topic": "orders", "queueId": -1, "pollTime": 0, "bornTime": 0}
        assert (await popper.ask(200054, fields)).ext_fields == {"hasMsg": "true", "pollingFull": "false"}
        await popper.pop()
        assert (await popper.ask(200054, fields)).ext_fields["hasMsg"] == "false"
        waiting = asyncio.create_task(popper.ask(200054, fields | {"pollTime": 30_000}))
        await until(lambda: broker.pop.hold.count == 1)
        await popper.send(b"x")
        assert (await waiting).ext_fields["hasMsg"] == "true"


async def test_a_message_is_looked_for_once_for_all_that_wait_alike(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop()
        assert await popper.ack(first) == 0
        waiting = [
            asyncio.create_task(popper.pop_answer(attemptId=f"attempt {number}", order=order, pollTime=60_000))
            for order in ("false", "true")
            for number in range(20)
        ]
        await until(lambda: broker.pop.hold.count == 40)
        looks = []
        answer = broker.pop.hold.answer
        broker.pop.hold.answer = lambda pop: looks.append(pop) or answer(pop)  # type: ignore[func-returns-value]
        await popper.send(b"one")
        await until(lambda: broker.pop.hold.count == 39)
        assert len(looks) <= 3, "one that gets it, and one of each kind that does not"
        for task in waiting:
            task.cancel()


async def test_a_message_answers_one_notification_and_others_when_nobody_comes_for_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop()
        assert await popper.ack(first) == 0
        fields = {"consumerGroup": "g", "topic": "orders", "queueId": -1, "pollTime": 60_000, "bornTime": 0}
        waiting = [asyncio.create_task(popper.ask(RequestCode.NOTIFICATION, fields)) for _ in range(20)]
        await until(lambda: broker.pop.hold.count == 20)
        await popper.send(b"one")
        (second,) = await popper.pop(pollTime=60_000)
        assert await popper.ack(second) == 0
        await until(lambda: any(task.done() for task in waiting))
        told = sum(task.done() for task in waiting)
        assert told + broker.pop.hold.count == 20 and told < 10
        await popper.send(b"two")  # nobody pops it
        answers = await asyncio.gather(*waiting)
        assert {answer.ext_fields["hasMsg"] for answer in answers} == {"true"}


async def test_in_order_a_queue_waits_for_its_batch(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        await popper.send(b"other", queue_id=1)
        answer = await popper.pop_answer(order="true", attemptId="one", maxMsgNums=32)
        out = popper.delivered(answer)
        assert bodies(out) == [b"first", b"other", b"second"]
        assert answer.ext_fields["reviveQid"] == "999"
        await popper.send(b"third")
        assert await popper.pop(order="true", attemptId="two") == [], "both queues are blocked"
        assert await popper.ack(next(each for each in out if each.body == b"second")) == 0
        assert await popper.pop(order="true", attemptId="two") == [], "the first one is still out"
        waiting = asyncio.create_task(popper.pop(order="true", attemptId="two", pollTime=30_000))
        await until(lambda: broker.pop.hold.count == 1)
        assert await popper.ack(next(each for each in out if each.body == b"first")) == 0
        assert bodies(await waiting) == [b"third"]


async def test_in_order_the_same_attempt_gets_the_same_batch(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_broker, popper):
        await popper.send(b"second")
        first = await popper.pop(order="true", attemptId="one")
        again = await popper.pop(order="true", attemptId="one")
        assert bodies(first) == bodies(again) == [b"first", b"second"]
        assert await popper.ack_all(again) == 0


async def test_in_order_the_same_attempt_gets_its_batch_before_what_other_queues_have(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_broker, popper):
        for number in range(4):
            await popper.send(b"%d" % number, queue_id=1)
        for _ in range(3):  # each pop begins at another queue
            ordered = {"order": "true", "maxMsgNums": 1}
            (one,) = await popper.pop(attemptId="one", **ordered)
            (again,) = await popper.pop(attemptId="one", **ordered)
            assert again.body == one.body
            (other,) = await popper.pop(attemptId="two", **ordered)
            assert other.body != one.body and other.message.queue_id != one.message.queue_id
            assert await popper.ack(again) == await popper.ack(other) == 0
            await popper.send(b"more", queue_id=0)


async def test_in_order_what_comes_back_comes_first_and_is_counted(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        for body in (b"second", b"third"):
            await popper.send(body)
        out = await popper.pop(order="true", attemptId="one", maxMsgNums=2)
        assert await popper.ack(out[1]) == 0
        assert (await popper.change(out[0], 0)).code == 0
        answer = await popper.pop_answer(order="true", attemptId="two", pollTime=30_000)
        assert [each.body for each in popper.delivered(answer)] == [b"first"]
        assert answer.ext_fields["orderCountInfo"] == "0 qo0%0 1;0 0 1"
        assert broker.pop.book.redelivered.total() == 1
        assert not [name for name in broker.topics.configs if name.startswith(RETRY_PREFIX)], "no copy is stored"


async def test_a_group_beyond_the_end_of_its_queue_gets_what_comes_next(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        broker.offsets.commit("g", "orders", 0, 5)
        assert (await popper.pop(), offset_of(broker)) == ([], 1)
        broker.offsets.commit("g", "orders", 0, 5)
        fields = {"consumerGroup": "g", "topic": "orders", "queueId": -1, "pollTime": 30_000, "bornTime": 0}
        told = asyncio.create_task(popper.ask(RequestCode.NOTIFICATION, fields))
        await until(lambda: broker.pop.hold.count == 1)
        await popper.send(b"second")
        assert (await told).ext_fields["hasMsg"] == "true"
        assert bodies(await popper.pop()) == [b"second"]


async def test_a_group_begins_again_with_its_queue(tmp_path: Path) -> None:
    """306 removes a queue whose messages have all expired, and its next message is at 0."""
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop()
        assert await popper.ack(first) == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CommitLog, "min_offset", broker.store.max_physical_offset)
            assert (await popper.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, {})).code == 0
        journal, lines = broker.pop.journal.path, broker.pop.journal.path.read_bytes()
        await popper.send(b"second")
        assert bodies(await popper.pop()) == [b"second"]
    assert await offset_after_a_kill(tmp_path, journal, lines) == 0


async def test_after_a_crash_no_group_is_further_than_its_queue(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, _popper):
        store = broker.store.config.root
    (store / "config" / "consumerOffset.json").write_text('{"offsetTable":{"orders@g":{0:5}}}')
    (store / "abort").touch()
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:
        for number in range(5):
            await popper.send(b"%d" % number)
        assert len(await popper.pop()) == 5


async def test_in_order_what_is_not_shown_yet_is_not_gone(tmp_path: Path) -> None:
    """A master with readConfirmedOnly that was started: what it had handed out is not confirmed again so far."""
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        await popper.pop(order="true", invisibleTime=1)
        broker.store.show_below(0)
        await until(lambda: broker.pop.book.next_due_ms() is None)
        assert (await popper.pop(order="true"), broker.pop.book.count) == ([], 2)
        broker.store.show_below(NEVER)
        assert bodies(await popper.pop(order="true")) == [b"first", b"second"]


async def test_what_can_not_be_read_now_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged unit of the queue is made again from the log, which may take a while."""
    monkeypatch.setattr("appliance.broker.pop.redelivery.AGAIN_MS", 10)
    tries: list[int] = []
    read = MessageStore.message_at

    def message_at(store: MessageStore, topic: str, queue_id: int, offset: int) -> memoryview | None:
        tries.append(offset)
        if len(tries) < 3:
            raise NotReadableNow("its place is being looked for")
        return read(store, topic, queue_id, offset)

    monkeypatch.setattr(MessageStore, "message_at", message_at)
    async with scene(tmp_path) as (broker, popper):
        await popper.pop(invisibleTime=1)
        (again,) = await popper.pop(pollTime=30_000)
        assert (again.body, broker.pop.redelivery.gone, len(tries)) == (b"first", 0, 3)


async def test_a_clean_restart_keeps_leases_and_delivers_nothing_twice(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:
        for number in range(6):
            await popper.send(b"%d" % number)
        out = await popper.pop(maxMsgNums=4)
        assert await popper.ack(out[1]) == 0
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:
        assert bodies(await popper.pop()) == [b"4", b"5"]
        assert [await popper.ack(each) for each in out] == [0, 208, 0, 0]
        assert offset_of(cluster.broker) == 4


OFFSET_CHANGES: dict[str, tuple[int, dict[str, str], list[object]]] = {
    "it is set": (
        RequestCode.UPDATE_CONSUMER_OFFSET,
        {"consumerGroup": "g", "topic": "orders", "queueId": "0", "commitOffset": "0"},
        ["at", "g", "orders", 0, 0],
    ),
    "it is another group's": (
        RequestCode.CLONE_GROUP_OFFSET,
        {"srcGroup": "other", "destGroup": "g", "topic": "orders", "offline": "true"},
        ["at", "g", "orders", 0, 0],
    ),
    "its topic is deleted": (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"}, ["gone", "g", "orders", 0]),
    "its group is deleted": (
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        {"groupName": "g", "removeOffset": "true"},
        ["gone", "g", "orders", 0],
    ),
}


@pytest.mark.parametrize("what", OFFSET_CHANGES)
async def test_a_kill_after_an_offset_changed_does_not_bring_it_back(tmp_path: Path, what: str) -> None:
    code, fields, expected = OFFSET_CHANGES[what]
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        first, _second = await popper.pop()
        assert await popper.ack(first) == 0
        broker.offsets.commit("other", "orders", 0, 0)
        assert (await popper.ask(code, fields)).code == 0
        records = [record for record in Journal(broker.pop.journal.path, list).read() if record[1:4] == expected[1:4]]
        assert records[-1] == expected, "what a start would find now"


async def offset_after_a_kill(folder: Path, journal: Path, lines: bytes, topic: str = "orders") -> int:
    """Where a start puts the group that finds these lines."""
    journal.write_bytes(lines)
    (journal.parent.parent / "abort").touch()
    async with serving(folder) as cluster:
        return offset_of(cluster.broker, topic)


@pytest.mark.parametrize("what", OFFSET_CHANGES)
async def test_a_kill_leaves_an_offset_where_it_was_set_while_nothing_was_out(tmp_path: Path, what: str) -> None:
    code, fields, expected = OFFSET_CHANGES[what]
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        assert await popper.ack_all(await popper.pop()) == 0
        await broker.pop.journal.rewrite()
        broker.offsets.commit("other", "orders", 0, 0)
        assert (await popper.ask(code, fields)).code == 0
        journal, lines = broker.pop.journal.path, broker.pop.journal.path.read_bytes()
    assert await offset_after_a_kill(tmp_path, journal, lines) == (0 if expected[0] == "at" else -1)


async def test_a_kill_puts_no_group_to_where_it_was_in_a_deleted_topic(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        for number in range(5):
            await popper.send(b"%d" % number)
        assert await popper.ack_all(await popper.pop()) == 0
        assert (await popper.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})).code == 0
        for number in range(3):
            await popper.send(b"%d" % number)
        assert await popper.ack_all(await popper.pop(maxMsgNums=1)) == 0
        journal, lines = broker.pop.journal.path, broker.pop.journal.path.read_bytes()
    assert await offset_after_a_kill(tmp_path, journal, lines) == 1


async def test_a_group_that_pops_is_not_pulled(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_broker, popper):
        pull = {
            "consumerGroup": "g", "topic": "orders", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4,
            "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0,
        }  # fmt: skip
        assert (await popper.ask(11, pull)).code == 0, "not yet"
        (first,) = await popper.pop()
        refused = await popper.ask(11, pull)
        assert (refused.code, "by POP" in str(refused.remark)) == (16, True)
        assert (await popper.ask(11, pull | {"consumerGroup": "other"})).code == 0
        assert await popper.ack(first) == 0


async def test_a_group_that_pulls_is_not_popped(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        pull = {
            "consumerGroup": "g", "topic": "orders", "queueId": 0, "queueOffset": 1, "maxMsgNums": 32, "sysFlag": 6,
            "commitOffset": 0, "suspendTimeoutMillis": 30_000, "subscription": "*", "subVersion": 0,
        }  # fmt: skip
        waiting = asyncio.create_task(popper.ask(11, pull))
        await until(lambda: broker.hold.held_count == 1)
        refused = await popper.pop_answer()
        assert (refused.code, "by pulling" in str(refused.remark)) == (16, True)
        await popper.send(b"x")
        assert (await waiting).code == 0


async def set_mode(popper: Popper, mode: str, share: int = 0) -> int:
    body = SetModeRequest("orders", "g", mode, share).to_json()
    return (await popper.ask(401, {}, body)).code


async def test_from_pop_to_pull_and_back_nothing_is_lost(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        await popper.send(b"third")
        out = await popper.pop(maxMsgNums=2)
        assert (await popper.change(out[0], 0)).code == 0  # it waits in the retry topic of pops
        await until(lambda: broker.pop.book.redelivered.total() == 1)
        assert await set_mode(popper, "PULL") == 0
        assert (broker.pop.book.count, offset_of(broker)) == (0, 2), "a pull goes on behind what was out"
        found = broker.store.get_message("g", "%RETRY%g", 0, 0, 32)
        retries = decode_records(b"".join(found.buffers))
        assert sorted(each.body for each in retries) == [b"first", b"second"]
        assert {each.properties["RETRY_TOPIC"] for each in retries} == {"orders"}
        assert (await popper.pop_answer()).code == 16
        assert await set_mode(popper, "POP") == 0
        assert bodies(await popper.pop()) == [b"third"]
        await broker.pop.moving.follow("g")
        assert bodies(await popper.pop(pollTime=30_000)) == [b"first", b"second"]


async def test_a_pop_that_waits_takes_nothing_from_a_group_that_pulls_by_now(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop()
        assert await popper.ack(first) == 0
        waiting = asyncio.create_task(popper.pop_answer(pollTime=60_000))
        await until(lambda: broker.pop.hold.count == 1)
        assert await set_mode(popper, "PULL") == 0
        await popper.send(b"second")
        refused = await waiting
        assert (refused.code, "by pulling" in str(refused.remark), broker.pop.book.count) == (16, True, 0)


async def test_after_a_restart_a_pull_gets_what_pops_have_stored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.pop(invisibleTime=1)
        await until(lambda: offset_of(broker) == 1 and broker.pop.book.count == 0)
    monkeypatch.setattr("appliance.broker.pop.modes.POP_IDLE_S", 0)
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:
        pull = {
            "consumerGroup": "g", "topic": "orders", "queueId": 0, "queueOffset": 1, "maxMsgNums": 32, "sysFlag": 4,
            "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0,
        }  # fmt: skip
        assert (await popper.ask(11, pull)).code == ResponseCode.SYSTEM_BUSY
        await until(lambda: not cluster.broker.pop.modes.popping)
        found = cluster.broker.store.get_message("g", "%RETRY%g", 0, 0, 32)
        assert [each.body for each in decode_records(b"".join(found.buffers))] == [b"first"]


async def test_retries_of_a_deleted_topic_are_dead_letters_and_hold_no_others_up(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        for topic in ("deleted", "orders"):
            await popper.send(topic.encode(), topic="%RETRY%g", RETRY_TOPIC=topic)
        (first,) = await popper.pop()
        assert await popper.ack(first) == 0
        await broker.pop.moving.follow("g")
        assert bodies(await popper.pop()) == [b"orders"]
        (dead,) = decode_records(b"".join(broker.store.get_message("g", "%DLQ%g", 0, 0, 32).buffers))
        assert (dead.body, dead.properties["DLQ_ORIGIN_TOPIC"]) == (b"deleted", "deleted")


async def test_a_retry_of_a_topic_that_is_not_popped_holds_up_its_queue_alone(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"x", topic="other")
        retries = broker.topics.create_retry_topic("%RETRY%g", 2)
        for queue_id, topic in enumerate(("other", "orders")):
            await popper.send(topic.encode(), topic=retries.topic_name, queue_id=queue_id, RETRY_TOPIC=topic)
        (first,) = await popper.pop()
        assert await popper.ack(first) == 0
        await broker.pop.moving.follow("g")
        assert bodies(await popper.pop()) == [b"orders"]
        assert (offset_of(broker, "%RETRY%g"), offset_of(broker, "%RETRY%g", 1)) == (0, 1)


async def test_after_a_kill_no_retry_is_brought_twice(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"retry", topic="%RETRY%g", RETRY_TOPIC="orders")
        await popper.pop()
        await broker.pop.moving.follow("g")
        journal, lines = broker.pop.journal.path, broker.pop.journal.path.read_bytes()
    assert await offset_after_a_kill(tmp_path, journal, lines, "%RETRY%g") == 1


async def test_a_slow_disk_has_no_retry_brought_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("appliance.broker.pop.moving.LOOK_S", 0.01)
    ends: list[int | None] = []

    async def until_flushed(store: MessageStore, end_offset: int | None = None) -> bool:
        ends.append(end_offset)
        await popper.send(b"more")
        return len(ends) > 3

    async with scene(tmp_path) as (broker, popper):
        monkeypatch.setattr(MessageStore, "until_flushed", until_flushed)
        await popper.send(b"retry", topic="%RETRY%g", RETRY_TOPIC="orders")
        await popper.pop()
        await until(lambda: offset_of(broker, "%RETRY%g") == 1)
        assert broker.store.max_offset("%RETRY%g_orders", 0) == 1
        assert (len(ends), len({*ends} - {None})) == (4, 1), "what is stored meanwhile is not waited for"


@pytest.mark.parametrize("what", ["the disk fails", "a tool sets the group"])
async def test_retries_are_brought_a_slice_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("appliance.broker.pop.moving.A_SLICE", 2)
    monkeypatch.setattr("appliance.broker.pop.moving.LOOK_S", 3600)
    waits: list[bool] = []

    async def until_flushed(store: MessageStore, end_offset: int | None = None) -> bool:
        waits.append(len(waits) == 0)
        if len(waits) == 2 and what == "the disk fails":
            store.health.sync_failed(OSError("Input/output error"))
        elif len(waits) == 2:
            broker.offsets.commit("g", "%RETRY%g", 0, 1)
            return True
        return waits[-1]

    async with scene(tmp_path) as (broker, popper):
        for number in range(5):
            await popper.send(b"%d" % number, topic="%RETRY%g", RETRY_TOPIC="orders")
        await popper.pop()
        monkeypatch.setattr(MessageStore, "until_flushed", until_flushed)
        await broker.pop.moving.follow("g")
        assert (len(waits), offset_of(broker, "%RETRY%g")) == (2, 2 if what == "the disk fails" else 1)


async def test_a_retry_waits_while_there_is_no_room_for_its_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.broker.pop.moving.LOOK_S", 0.01)
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"retry", topic="%RETRY%g", RETRY_TOPIC="orders")
        refuse_twice(broker, monkeypatch)
        (first,) = await popper.pop()
        assert await popper.ack(first) == 0
        assert bodies(await popper.pop(pollTime=30_000)) == [b"retry"]


async def test_a_start_leaves_leases_out_whose_group_has_no_room_for_an_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as cluster:
        path = cluster.broker.pop.journal.path
    path.write_bytes(line_of(["out", "other", "orders", 0, [0], 1, 1000, 61_000, False, ""]))
    monkeypatch.setattr("appliance.broker.groups.consumer_offset.KEYS_MAX", 0)
    async with serving(tmp_path) as cluster:
        assert cluster.broker.pop.figures()["popMessagesOut"] == "0"


async def test_a_pop_without_room_for_all_offsets_gives_what_it_has_leased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"other", queue_id=1)
        monkeypatch.setattr("appliance.broker.groups.consumer_offset.ENTRIES_MAX", broker.offsets.entry_count + 1)
        assert (len(await popper.pop()), broker.pop.book.count) == (1, 1)


async def test_a_pop_that_waits_is_told_that_its_offset_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path) as (broker, popper):
        assert await popper.ack_all(await popper.pop()) == 0
        waiting = asyncio.create_task(popper.pop_answer(pollTime=30_000, bornTime=int(time.time() * 1000)))
        await until(lambda: broker.pop.hold.count == 1)
        monkeypatch.setattr("appliance.broker.groups.consumer_offset.ENTRIES_MAX", 0)
        broker.offsets.remove_group("g")
        broker.pop.hold.wake("orders", "g")
        assert "offsets are kept already" in ((await waiting).remark or "")


async def test_a_mode_outlives_a_restart(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_broker, popper):
        await popper.pop()
        assert await set_mode(popper, "POP", 2) == 0
    async with serving(tmp_path) as cluster:
        assert cluster.broker.pop.modes.get("orders", "g") == Mode("POP", 2)
        assert cluster.broker.pop.modes.pops("orders", "g")


async def test_a_pop_waits_while_another_member_may_know_a_newer_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, are_new = asyncio.Event(), asyncio.Event()

    async def until_new(offsets: ConsumerOffsetManager) -> bool:
        waits.set()
        return await are_new.wait()

    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        monkeypatch.setattr(ConsumerOffsetManager, "has_to_wait", property(lambda _: not are_new.is_set()))
        monkeypatch.setattr(ConsumerOffsetManager, "until_new", until_new)
        asked = asyncio.create_task(popper.pop())
        await waits.wait()
        broker.offsets.commit("g", "orders", 0, 1)
        are_new.set()
        assert bodies(await asked) == [b"second"]


async def test_a_slave_leases_nothing(tmp_path: Path) -> None:
    slave = {"broker_id": 1, "broker_role": "SLAVE"}
    async with serving(tmp_path, broker=slave) as cluster, popping(cluster.broker_address) as popper:
        assert (await popper.pop_answer()).code == 14


# -- what is in flight, for people ------------------------------------------------------------------------------------


async def test_what_is_in_flight_is_told_with_who_has_it_and_how_often_it_came(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper), AdminClient(broker.config.namesrv_addresses) as admin:
        await popper.send(b"second", queue_id=1, UNIQ_KEY="id-2")
        await popper.pop(clientId="me@1", invisibleTime=30)
        await until(lambda: broker.pop.book.count == 0)  # both are in the retry topic
        retried = await popper.pop(clientId="me@2")
        found = await admin.groups.leases_at(popper.address, "g")
        assert (found.modes, found.total, len(found.leases)) == ({"orders": "POP"}, 2, 2)
        assert {(one.topic, one.client, one.deliveries, one.is_ordered) for one in found.leases} == {
            ("%RETRY%g_orders", "me@2", 2, False)
        }
        assert "id-2" in {one.message_id for one in found.leases}
        assert all(59_000 < one.due_at - one.popped_at <= 60_000 for one in found.leases)
        assert len((await admin.groups.leases_at(popper.address, "g", 1)).leases) == 1
        assert await popper.ack_all(retried) == 0
        assert (await admin.groups.leases_at(popper.address, "g")).total == 0
        assert (await admin.groups.leases_at(popper.address, "no-such")).modes == {}


async def test_the_lag_is_what_is_ready_and_what_is_in_flight(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper), AdminClient(broker.config.namesrv_addresses) as admin:
        for number in range(1, 10):
            await popper.send(b"%d" % number)

        async def place() -> tuple[int | None, int, int, int | None]:
            progress = await admin.offsets.progress("g", "orders")
            one = next(each for each in progress.queues if each.queue.queue_id == 0)
            return one.lag, one.in_flight, one.done_ahead, one.consumer_offset

        out = await popper.pop(maxMsgNums=6)
        assert await place() == (10, 6, 0, 0)
        for each in out[1:5]:
            assert await popper.ack(each) == 0
        assert await place() == (6, 2, 4, 0), "the oldest one is out, and four behind it are done with"
        assert await popper.ack(out[0]) == 0
        assert await place() == (5, 1, 0, 5)
        broker.offsets.commit("g", "orders", 0, 2)  # set by an administrator: what was out is void
        assert await place() == (8, 0, 0, 2)


async def test_the_oldest_lease_of_a_queue_is_told_until_it_ends(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper), AdminClient(broker.config.namesrv_addresses) as admin:
        await popper.send(b"1")

        async def age_ms() -> int:
            stats = await admin.offsets.stats_at(popper.address, "g", "orders")
            return max(place.oldest_lease_ms for place in stats.offset_table.values())

        await popper.pop(maxMsgNums=1, invisibleTime=60_000)
        (second,) = await popper.pop(maxMsgNums=1)
        await until(lambda: time.time() * 1000 - int(second.handle.split(" ")[1]) > 50)
        assert await age_ms() > 50
        assert await popper.ack(second) == 0
        assert await age_ms() > 50, "the first one is out"


async def test_what_waits_to_be_tried_again_counts_before_anyone_pops_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper), AdminClient(broker.config.namesrv_addresses) as admin:
        await popper.pop(invisibleTime=30)
        await until(lambda: broker.pop.book.redelivered.total() == 1 and broker.pop.book.count == 0)
        assert (await admin.offsets.progress("g")).lag == 1


async def test_a_reset_moves_a_group_that_pops_and_voids_what_is_out(tmp_path: Path) -> None:
    """222, which pull consumers would carry out themselves: back to the begin, then to the end."""
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        first, second = await popper.pop()
        assert await popper.ack(first) == 0
        reset = {"topic": "orders", "group": "g", "timestamp": 0, "isForce": "true"}
        waiting = asyncio.create_task(popper.pop(pollTime=30_000, bornTime=int(time.time() * 1000)))
        await until(lambda: broker.pop.hold.count == 1)
        assert (await popper.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)).code == 0
        assert bodies(await waiting) == [b"first", b"second"], "a pop that waited is woken"
        assert await popper.ack(second) != 0, "its lease is void"
        assert (await popper.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset | {"timestamp": -1})).code == 0
        assert (offset_of(broker), broker.pop.book.count, await popper.pop()) == (2, 0, [])
