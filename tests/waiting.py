"""Waiting for what must come. A fixed sleep is too long on a quiet machine and too short on a busy one.

A test that shows that something does not come has to let time pass; it says so beside its sleep (test_waiting.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Self

WITHIN_S = 240.0  # a bound for what hangs, not a promise of how fast it is
TICK_S = 0.01


async def until(condition: Callable[[], bool | Awaitable[bool]], within_s: float = WITHIN_S) -> None:
    """Let the loop go on until `condition()`, which may be a coroutine, holds; TimeoutError after `within_s`."""
    async with asyncio.timeout(within_s):
        while True:
            began, found = time.monotonic(), condition()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(_pause_after(began, 0.005))


def wait_until(condition: Callable[[], object], within_s: float = WITHIN_S) -> None:
    """Block until `condition()` holds: for what other processes and threads do. TimeoutError after `within_s`."""
    deadline = time.monotonic() + within_s
    while True:
        began = time.monotonic()
        if condition():
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come within {within_s:g} s")
        time.sleep(_pause_after(began, 0.02))


def _pause_after(began: float, least_s: float) -> float:
    """Until the next look, seconds: looking may take a quarter of a core, which others wait for."""
    return max(least_s, min(3 * (time.monotonic() - began), 0.25))


@contextlib.asynccontextmanager
async def aside(work: Coroutine[Any, Any, Any]) -> AsyncIterator[None]:
    """Let the work go on while the block runs; then it is cancelled, and what it raised is raised."""
    task = asyncio.create_task(work)
    await asyncio.sleep(0)  # it begins
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Beside:
    """Runs the work on a thread while its block runs. The work returns soon after `ends` is set, which the block's end
    does; the block waits for it."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self.ends = threading.Event()
        self._thread = threading.Thread(target=work, name=name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.ends.set()
        self._thread.join()


@dataclass
class Standstill:
    """How long the test's loop had no turn at most, seconds: the machine was elsewhere, or something held it up."""

    seconds: float = 0.0


@contextlib.asynccontextmanager
async def standstill() -> AsyncIterator[Standstill]:
    """Measure while the block runs, for tests of what must happen in time on this very loop."""
    longest = Standstill()

    async def tick() -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)  # what is measured is how much longer it takes
            now = time.monotonic()
            longest.seconds, before = max(longest.seconds, now - before - TICK_S), now

    async with aside(tick()):
        yield longest


class Clock:
    """Seconds, since the epoch or since anything; they stand still until a test changes `now`."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds
