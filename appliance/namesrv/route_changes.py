"""RouteChanges: what brokers and tools change in the routes, one after the other.

A registration may bring a hundred thousand topics, which takes a second. It is made of steps, and other requests
are served in between; but a broker's good-bye must not overtake its registration, so changes wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator

from appliance.errors import BrokerError
from appliance.process.cooperative import in_turns
from appliance.remoting.lane import QUEUED_BYTES_MAX, Answer
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.registration import finished


class RouteChanges:
    """The changes under way."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._under_way = 0
        self._bytes = 0  # of the bodies of those under way

    def make(
        self, steps: Generator[None, None, Answer], *, is_long: bool, size_bytes: int = 0
    ) -> Answer | Awaitable[Answer]:
        """Make a change: at once if it is short and none is under way. BrokerError SYSTEM_BUSY when too much waits.

        size_bytes: of the body that it is made from.
        """
        if not self._under_way and not is_long:
            return finished(steps)
        if self._bytes > QUEUED_BYTES_MAX:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, "too many registrations wait, try again later")
        self._under_way += 1
        self._bytes += size_bytes
        return self._after_others(steps, size_bytes)

    async def _after_others(self, steps: Generator[None, None, Answer], size_bytes: int) -> Answer:
        try:
            async with self._lock:
                return await in_turns(steps)
        finally:
            self._under_way -= 1
            self._bytes -= size_bytes
