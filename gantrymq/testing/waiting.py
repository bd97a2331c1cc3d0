"""Waiting for what must come: a test that sleeps for a fixed time is either slow or wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

WAIT_S = 60.0  # generous: it is used up only by a test that fails
LOOK_S = 0.02


def wait_for(condition: Callable[[], T], timeout_s: float = WAIT_S, *, what: str = "") -> T:
    """Call it again and again until it returns something true, and return that. TimeoutError when it never does.

    what: for the error's text; the condition's name by default.
    """
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() >= deadline:
            raise _timed_out(condition, timeout_s, what)
        time.sleep(LOOK_S)
    return found


async def wait_for_async(condition: Callable[[], T | Awaitable[T]], timeout_s: float = WAIT_S, *, what: str = "") -> T:
    """As `wait_for`, on an event loop; the condition may be async."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        value = await found if isinstance(found, Awaitable) else found
        if value:
            return value
        if time.monotonic() >= deadline:
            raise _timed_out(condition, timeout_s, what)
        await asyncio.sleep(LOOK_S)


def _timed_out(condition: object, timeout_s: float, what: str) -> TimeoutError:
    return TimeoutError(f"not within {timeout_s:g} s: {what or getattr(condition, '__qualname__', repr(condition))}")
