"""What is not acknowledged comes again: later, at once, as a dead letter, or never."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq.message.record import decode_records
from gantrymq.remoting.codes import RequestCode
from store.base.errors import NotReadableNow
from store.base.results import HOPELESS, PutMessageResult, PutMessageStatus
from store.message_store import MessageStore
from tests.appliance.broker.pop.popper import Delivered
from tests.appliance.broker.pop.scene import offset_of, refuse_twice, scene
from tests.waiting import until


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


async def test_a_deleted_group_leaves_no_count_but_stays_in_the_sum(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop()
        assert (await popper.change(first, 0)).code == 0
        await until(lambda: broker.pop.figures()["popRedeliveredByGroup"] == "g:1")
        assert (await popper.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "g"})).code == 0
        figures = broker.pop.figures()
        assert (figures["popRedelivered"], figures["popRedeliveredByGroup"]) == ("1", "none")
