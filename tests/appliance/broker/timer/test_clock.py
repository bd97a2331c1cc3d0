"""The wall clock is set while messages wait: none is lost, and none later than its time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from appliance.process.tasks import running
from tests.appliance.broker.timer.timer_broker import DAY_S, HOUR_S, Broker
from tests.waiting import Clock, until


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("wrong_by_s", [70, 2 * HOUR_S, 400 * DAY_S])
async def test_a_clock_that_was_ahead_for_a_while_makes_nothing_late(
    broker: Broker, clock: Clock, wrong_by_s: int, killed: bool
) -> None:
    broker.send_in(30, "before")
    await broker.settle()
    clock.advance(wrong_by_s)
    await broker.settle()
    await broker.record()
    assert broker.bodies() == ["before"]
    clock.advance(1 - wrong_by_s)
    for seconds in (60, 200, 4000):
        broker.send_in(seconds, str(seconds))
    await broker.settle()
    await broker.record()
    (broker.kill if killed else broker.stop)()
    broker.start()
    passed = 0
    for seconds in (60, 200, 4000):
        clock.advance(seconds - passed - 0.001)
        await broker.settle()
        assert str(seconds) not in broker.bodies()
        clock.advance(0.001)
        await broker.settle()
        assert broker.bodies()[-1] == str(seconds)
        passed = seconds
    assert broker.bodies() == ["before", "60", "200", "4000"]


async def test_a_clock_set_back_keeps_the_files_of_what_still_waits(broker: Broker, clock: Clock) -> None:
    """A record that began before the clock was set back deletes no file that was made after."""
    broker.send_in(1, "before")
    await broker.settle()
    clock.advance(HOUR_S)
    await broker.settle()
    async with running(broker.store):
        async with broker.timer.backlog.lock:  # the record gets so far, and waits
            recording = asyncio.create_task(broker.timer.keep_record(sync=False))
            await asyncio.sleep(0)
            clock.advance(60 - HOUR_S)
            broker.send_in(10, "after")
            while broker.timer.read_queue():
                pass
        assert await recording
        assert await broker.timer.keep_record(sync=True)
    broker.kill()
    broker.start()
    clock.advance(10)
    await broker.settle()
    assert broker.bodies()[-1] == "after"


async def test_a_clock_that_began_in_1970_is_caught_up_with_at_once(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = clock.now
    broker.send_in(30, "m")
    await broker.settle()
    broker.stop()
    clock.now = 100.0
    broker.start()
    await broker.settle()
    clock.now = today + 30
    taken = 0
    take_minute = broker.timer.backlog.take_minute

    async def counted(*args: object) -> None:
        nonlocal taken
        taken += 1
        await take_minute(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(broker.timer.backlog, "take_minute", counted)
    await broker.settle()
    assert broker.bodies() == ["m"]
    assert taken < 10, "empty minutes are passed by"


async def test_a_sleeping_service_sees_that_the_clock_was_set(tmp_path: Path, clock: Clock) -> None:
    """It sleeps a second at most, however far away the next message is."""
    broker = Broker(tmp_path / "store", clock)
    broker.send_in(50, "m")
    async with running(broker.store, broker.timer):
        await until(lambda: broker.timer.pending == 1)
        clock.advance(50)
        await until(lambda: broker.timer.delivered > 0)
    assert broker.bodies() == ["m"]
    broker.store.close()
