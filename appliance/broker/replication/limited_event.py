"""An event for one who waits for it again and again, each time for a while at most.

`asyncio.timeout` around `Event.wait` makes and cancels a timer each time. Here one timer serves many waits: most of
them end long before, and need none.
"""

from __future__ import annotations

import asyncio


class LimitedEvent:
    """Loop thread only. One waiter at a time."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None
        self._until_s = 0.0  # of the loop's clock: the waiter waits so long
        self._timer: asyncio.Handle | None = None  # uvloop's is no TimerHandle when it is due at once
        self._timer_at_s = 0.0

    def set(self) -> None:
        """End the wait, or the next one."""
        self._is_set = True
        self._wake()

    async def wait(self, within_s: float | None) -> bool:
        """Wait until it is set, and clear it; False: it was not within that time. None: without a limit."""
        if not self._is_set:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            if within_s is not None:
                self._until_s = loop.time() + within_s
                if self._timer is None or self._timer_at_s > self._until_s:
                    self._start_timer(loop)
            try:
                await self._waiter
            finally:
                self._waiter, self._until_s = None, 0.0
        was_set, self._is_set = self._is_set, False
        return was_set

    def close(self) -> None:
        """No task waits any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _start_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self.close()
        self._timer_at_s = self._until_s
        self._timer = loop.call_at(self._timer_at_s, self._look_at_clock, loop)

    def _look_at_clock(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if not self._until_s:  # no wait that has a limit
            return
        if loop.time() < self._until_s:
            self._start_timer(loop)
        else:
            self._wake()
