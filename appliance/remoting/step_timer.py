"""Times the steps of a coroutine: the time it takes on the loop, without the time it waits."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class _TimedSteps(Awaitable[_Result]):
    """Delegates to the awaitable, and reports when each step began and ended."""

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
            except BaseException as exc:  # a cancellation, or the error of the awaited future
                value, resume = exc, steps.throw


def timed_steps(awaited: Awaitable[_Result], spend: Callable[[float, float], None]) -> Awaitable[_Result]:
    """Wrap an awaitable; `spend` gets the begin and the end of each of its steps (monotonic seconds)."""
    return _TimedSteps(awaited, spend)
