"""A recalled message is never delivered, whatever happens to the broker between recall and time; all others are."""

from __future__ import annotations

import base64
import struct

import pytest

from appliance.broker.timer.rolling import Rolling
from appliance.broker.timer.slots import MINUTE_MS
from appliance.process.tasks import running
from gantrymq.message.recall_handle import RecallHandle
from store.base.results import PutMessageStatus
from tests.appliance.broker.timer.timer_broker import DAY_S, HOUR_S, TIMER, Broker
from tests.waiting import Clock

RESTARTS = ("none", "stop", "kill", "kill without the slots' files", "promotion")


def due_in(broker: Broker, seconds: float) -> int:
    return int(broker.clock() * 1000) + round(seconds * 1000)


def restart(broker: Broker, how: str) -> None:
    if how == "none":
        return
    if how == "stop":
        broker.stop()
    else:
        broker.kill()
    if "files" in how:
        for path in (broker.root / "timer").glob("*.*"):
            path.unlink()
    broker.start()
    if how == "promotion":  # a slave that becomes the master: its files are none of this queue's
        broker.timer.put_progress(0, 0)
        broker.kill()
        broker.start()


@pytest.mark.parametrize("how", RESTARTS)
@pytest.mark.parametrize("seconds", [0.5, 90, 3 * HOUR_S])
async def test_only_the_recalled_one_does_not_come(broker: Broker, clock: Clock, how: str, seconds: float) -> None:
    due_ms = due_in(broker, seconds)
    for body in ("first", "recalled", "last"):
        broker.send_in(seconds, body)
    await broker.settle()
    broker.recall("recalled", due_ms)
    if how == "stop":
        await broker.record()
    restart(broker, how)
    await broker.settle()
    clock.advance(seconds - 0.001)
    await broker.settle()
    assert broker.arrived() == []
    restart(broker, how)
    clock.advance(0.001)
    await broker.settle()
    assert broker.bodies() == ["first", "last"]
    clock.advance(2)
    await broker.settle()
    assert broker.bodies() == ["first", "last"]
    assert len(broker.store.consume_queue_units(TIMER, 0, 0, 10)) == 4


async def test_a_recall_counts_although_the_queue_has_not_been_read_up_to_it(broker: Broker, clock: Clock) -> None:
    """Its answer has said so: the broker was killed right after, and came back when the message was due long since."""
    due_ms = due_in(broker, 5)
    broker.send_in(5, "recalled")
    await broker.settle()
    await broker.record()
    for number in range(2 * 256):
        broker.send_in(HOUR_S, f"later-{number}")
    broker.recall("recalled", due_ms)
    broker.kill()
    clock.advance(60)
    broker.start()
    async with running(broker.store):
        await broker.timer.bring_minutes(int(clock() * 1000))
        assert broker.timer.deliver_slice() == 0.0, "there is more to read first"
    assert broker.arrived() == []
    await broker.settle()
    assert broker.arrived() == []


async def test_recalls_of_another_time_topic_or_id_do_nothing(broker: Broker, clock: Clock) -> None:
    due_ms = due_in(broker, 2)
    broker.send_in(2, "m")
    broker.recall("m", due_ms + 1)
    broker.recall("m", due_ms, topic="others")
    broker.recall("n", due_ms)
    await broker.settle()
    clock.advance(3)
    await broker.settle()
    assert broker.bodies() == ["m"]
    assert broker.timer.due.count == 0


async def test_an_id_sent_twice_at_one_time_is_recalled_twice_and_later_ones_come(broker: Broker, clock: Clock) -> None:
    due_ms = due_in(broker, 2)
    broker.send_in(2, "m")
    broker.send_in(2, "m")
    broker.send_in(4, "m")
    broker.recall("m", due_ms)
    broker.recall("m", due_ms)
    await broker.settle()
    clock.advance(5)
    await broker.settle()
    assert broker.bodies() == ["m"]


async def test_many_recalls_of_one_moment_are_read_in_slices(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    due_ms = due_in(broker, 2)
    for number in range(300):
        broker.send_in(2, f"m{number}")
    for number in range(299):
        broker.recall(f"m{number}", due_ms)
    await broker.settle()
    monkeypatch.setattr("appliance.broker.timer.deliverer.SLICE_SECONDS_MAX", -1.0)
    clock.advance(2)
    await broker.settle()
    assert broker.bodies() == ["m299"]


async def test_message_and_recall_are_stored_again_before_their_file_goes(broker: Broker, clock: Clock) -> None:
    due_ms = due_in(broker, 2 * DAY_S)
    for body in ("stays", "recalled"):
        broker.send_in(2 * DAY_S, body)
    broker.recall("recalled", due_ms)
    await broker.settle()
    end = broker.store.max_physical_offset
    async with running(broker.store):
        assert await Rolling(broker.store, broker.timer).may_delete(end)
    await broker.settle()
    broker.kill()
    broker.start()
    clock.advance(2 * DAY_S)
    await broker.settle()
    assert broker.bodies() == ["stays"]


async def test_the_file_of_a_recall_that_is_due_soon_is_kept(broker: Broker, clock: Clock) -> None:
    broker.recall("m", due_in(broker, 2))
    await broker.settle()
    end = broker.store.max_physical_offset
    async with running(broker.store):
        assert not await Rolling(broker.store, broker.timer).may_delete(end)


async def test_a_damaged_recall_is_passed_by_and_the_message_comes(broker: Broker, clock: Clock) -> None:
    due_ms = due_in(broker, 2)
    broker.send_in(2, "m")
    broker.recall("m", due_ms)
    await broker.settle()
    (unit,) = broker.store.consume_queue_units(TIMER, 0, 1, 1)
    path = sorted((broker.root / "commitlog").iterdir())[0]
    with path.open("r+b") as file:
        file.seek(unit.physical_offset + 4)
        file.write(struct.pack(">i", 7))
    clock.advance(3)
    await broker.settle()
    assert broker.bodies() == ["m"]


async def test_old_recalls_are_forgotten(broker: Broker, clock: Clock) -> None:
    for seconds in range(1, 400, 10):
        broker.recall("m", due_in(broker, seconds))
    await broker.settle()
    for _ in range(8):
        clock.advance(60)
        await broker.settle()
    assert all(moment > clock() * 1000 - 3 * MINUTE_MS for moment in broker.timer.recalls.moments)


def test_a_sender_can_not_store_a_recall_itself(broker: Broker) -> None:
    result = broker.send("m", {"TIMER_DELAY_SEC": "5", "TIMER_DEL_UNIQKEY": "orders+x"})
    assert result.status is PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL


def test_a_handle_is_rocketmqs() -> None:
    """RecallMessageHandle.HandleV1.buildHandle("orders", "broker-a", "1700000000001", "7F00A1")."""
    text = base64.urlsafe_b64encode(b"v1 orders broker-a 1700000000001 7F00A1").decode()
    handle = RecallHandle("orders", "broker-a", 1_700_000_000_000, "7F00A1")
    assert (str(handle), RecallHandle.parse(text)) == (text, handle)
    assert RecallHandle.parse(text.rstrip("=")) == handle


@pytest.mark.parametrize(
    "plain",
    [b"", b"v1", b"v2 t b 1 m", b"v1 t b x m", b"v1 t b -1 m", b"v1 t b 1", b"v1  b 1 m", b"\xff\xfe", b"v1 " * 999],
)  # fmt: skip
def test_what_is_no_handle_is_refused(plain: bytes) -> None:
    with pytest.raises(ValueError, match="recall handle is invalid"):
        RecallHandle.parse(base64.urlsafe_b64encode(plain).decode())
    with pytest.raises(ValueError, match="recall handle is invalid"):
        RecallHandle.parse("!" + base64.b64encode(b"v1 t b 1 m").decode())
