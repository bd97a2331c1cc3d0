"""A group pops or pulls: the mode is kept, and what was out or waits to be tried again goes with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from appliance.broker.pop.modes import Mode
from gantrymq.message.record import decode_records
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.pop_bodies import SetModeRequest
from store.message_store import MessageStore
from tests.appliance.broker.pop.popper import Popper, popping
from tests.appliance.broker.pop.scene import bodies, offset_after_a_kill, offset_of, refuse_twice, scene
from tests.harness import serving
from tests.waiting import until


def pull_at(offset: int, **more: int) -> dict[str, object]:
    """The fields of a pull of the group."""
    return {
        "consumerGroup": "g", "topic": "orders", "queueId": 0, "queueOffset": offset, "maxMsgNums": 32, "sysFlag": 4,
        "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0, **more,
    }  # fmt: skip


async def test_a_group_that_pops_is_not_pulled(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_broker, popper):
        pull = pull_at(0)
        assert (await popper.ask(11, pull)).code == 0, "not yet"
        (first,) = await popper.pop()
        refused = await popper.ask(11, pull)
        assert (refused.code, "by POP" in str(refused.remark)) == (16, True)
        assert (await popper.ask(11, pull | {"consumerGroup": "other"})).code == 0
        assert await popper.ack(first) == 0


async def test_a_group_that_pulls_is_not_popped(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        pull = pull_at(1, sysFlag=6, suspendTimeoutMillis=30_000)
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
        pull = pull_at(1)
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


async def test_a_mode_outlives_a_restart(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_broker, popper):
        await popper.pop()
        assert await set_mode(popper, "POP", 2) == 0
    async with serving(tmp_path) as cluster:
        assert cluster.broker.pop.modes.get("orders", "g") == Mode("POP", 2)
        assert cluster.broker.pop.modes.pops("orders", "g")
