"""An event that is waited for again and again: what ends a wait, and how many timers that takes."""

from __future__ import annotations

import asyncio
from typing import Any

from appliance.broker.replication.limited_event import LimitedEvent
from tests.appliance.loops import on_both_loops
from tests.waiting import WITHIN_S, until


@on_both_loops
async def test_what_was_set_before_ends_one_wait_at_once() -> None:
    event = LimitedEvent()
    event.set()
    event.set()
    assert await event.wait(WITHIN_S)
    assert not await event.wait(0.001), "it was cleared"
    event.close()


class CountingLoop(asyncio.SelectorEventLoop):
    timers = 0

    def call_at(self, *args: Any, **options: Any) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(*args, **options)


def test_a_wait_ends_when_it_is_set_and_the_next_one_needs_no_timer() -> None:
    loop = CountingLoop()

    async def act() -> None:
        event = LimitedEvent()
        for _ in range(5):
            asyncio.get_running_loop().call_soon(event.set)
            assert await event.wait(WITHIN_S)
        assert loop.timers == 1
        event.close()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(act())


@on_both_loops
async def test_a_shorter_wait_is_not_held_up_by_the_timer_of_a_longer_one() -> None:
    event = LimitedEvent()
    asyncio.get_running_loop().call_soon(event.set)
    assert await event.wait(3600.0)
    assert not await event.wait(0.001)
    event.close()


@on_both_loops
async def test_a_timer_of_an_earlier_wait_ends_no_later_one() -> None:
    event = LimitedEvent()
    asyncio.get_running_loop().call_soon(event.set)
    assert await event.wait(0.005)
    waiting = asyncio.create_task(event.wait(WITHIN_S))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    event.set()
    assert await waiting
    event.close()


@on_both_loops
async def test_a_wait_without_a_limit_outlives_the_timer_and_may_be_cancelled() -> None:
    event = LimitedEvent()
    assert not await event.wait(0.001)
    waiting = asyncio.create_task(event.wait(None))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    waiting.cancel()
    await until(waiting.done)
    event.set()
    assert await event.wait(None)
