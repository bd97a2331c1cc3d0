"""Messages leased to whoever pops: handed out once, in order where it is asked for, or waited for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from gantrymq.message.topics import RETRY_PREFIX
from gantrymq.remoting.admin_bodies import KVTable
from gantrymq.remoting.codes import RequestCode, ResponseCode
from store.log.commit_log import NEVER
from tests.appliance.broker.pop.popper import popping
from tests.appliance.broker.pop.scene import bodies, offset_of, scene
from tests.harness import serving
from tests.waiting import until


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
