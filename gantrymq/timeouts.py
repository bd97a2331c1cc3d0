"""asyncio's `timeout` and `timeout_at`, as Python 3.11.3 and later have them; a wait with a limit.

Before, a limit that ran out in a task already being cancelled raised CancelledError instead of TimeoutError, so
what cleans up after a cancellation could not wait with a limit (python/cpython#102780). `asyncio.wait_for` is no way
out: before 3.12 it swallows a cancellation that comes together with the result.
"""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType


def timeout(delay_s: float | None) -> asyncio.Timeout:
    """Limit a block to `delay_s` seconds: `async with timeout(5):` raises TimeoutError when they are over."""
    return timeout_at(None if delay_s is None else asyncio.get_running_loop().time() + delay_s)


def timeout_at(when: float | None) -> asyncio.Timeout:
    """Limit a block until `when` on the running loop's clock, in seconds; None: no limit."""
    return asyncio.Timeout(when) if sys.version_info[:3] >= (3, 11, 3) else _TimeoutOfOlder(when)


async def wait_for_event(event: asyncio.Event, timeout_s: float | None) -> bool:
    """Wait until the event is set, `timeout_s` at most; return whether it is."""
    try:
        async with timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


class _TimeoutOfOlder(asyncio.Timeout):  # type: ignore[misc]  # final, for type checkers alone
    """Counts only the cancellations that came while it ran."""

    async def __aenter__(self) -> _TimeoutOfOlder:
        await super().__aenter__()
        self._cancelling_before = _cancelling()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await super().__aexit__(exc_type, exc, traceback)  # it takes its own cancellation back
        if self.expired() and exc_type is asyncio.CancelledError and _cancelling() <= self._cancelling_before:
            raise TimeoutError from exc


def _cancelling() -> int:
    task = asyncio.current_task()
    assert task is not None  # asyncio's refuses what runs in no task
    return task.cancelling()
