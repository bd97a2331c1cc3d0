"""A coroutine whose steps are timed: what it takes of the loop, not how long it waits."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class _Metered(Awaitable[_Result]):
    """Passes everything on to what it awaits, and tells when each step began and ended."""

    def __init__(self, awaited: Awaitable[_Result], spend: Callable[[float, float], None]) -> None:
        self._awaited = awaited
        self._spend = spend

    def __await__(self) -> Generator[Any, Any, _Result]:
        steps, spend, monotonic = self._awaited.__await__(), self._spend, time.monotonic
        resume: Callable[[Any], Any] = steps.send
        value: Any = None
        while True:
            started = monotonic()
            try:
                waits_for = resume(value)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                spend(started, monotonic())
            try:
                value, resume = (yield waits_for), steps.send
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as exc:  # a cancellation, or what the awaited future failed with
                value, resume = exc, steps.throw


def metered(awaited: Awaitable[_Result], spend: Callable[[float, float], None]) -> Awaitable[_Result]:
    """Await this, and tell `spend` of each step when it began and ended (monotonic seconds)."""
    return _Metered(awaited, spend)
