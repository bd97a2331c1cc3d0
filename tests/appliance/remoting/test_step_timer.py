"""What a coroutine costs the loop is the time of its steps, not the time it waits."""

from __future__ import annotations

import asyncio
import time

import pytest

from appliance.remoting.step_timer import timed_steps


async def test_time_on_the_loop_counts_and_time_of_waiting_does_not() -> None:
    steps: list[tuple[float, float]] = []
    release = asyncio.Event()

    async def work() -> str:
        time.sleep(0.06)  # noqa: ASYNC251 - the first step holds the loop
        await release.wait()
        return "done"

    async def timed() -> str:
        return await timed_steps(work(), lambda start, end: steps.append((start, end)))

    task = asyncio.create_task(timed())
    while not steps:
        await asyncio.sleep(0)
    waiting = time.monotonic()
    await asyncio.sleep(0.05)  # what must not be counted
    released = time.monotonic()
    release.set()
    assert await task == "done"
    first, second = steps
    assert first[1] - first[0] >= 0.06
    assert first[1] <= waiting < released <= second[0]


async def test_an_error_of_what_is_awaited_comes_through_and_its_step_counts() -> None:
    steps: list[tuple[float, float]] = []
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        with pytest.raises(OSError):
            await future
        raise ValueError("afterwards")

    asyncio.get_running_loop().call_soon(future.set_exception, OSError("lost"))
    with pytest.raises(ValueError, match="afterwards"):
        await timed_steps(work(), lambda start, end: steps.append((start, end)))
    assert len(steps) == 2


async def test_a_cancelled_coroutine_tidies_up() -> None:
    tidied: list[bool] = []
    waits = asyncio.Event()

    async def work() -> None:
        try:
            waits.set()
            await asyncio.Event().wait()
        finally:
            tidied.append(True)

    async def run() -> None:
        await timed_steps(work(), lambda start, end: None)

    task = asyncio.create_task(run())
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tidied == [True]
