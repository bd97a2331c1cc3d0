"""ClientHousekeeping: forgets clients that fell silent and queue locks that are not renewed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.rebalance_lock import RebalanceLockManager

SCAN_INTERVAL_S = 10.0


class ClientHousekeeping:
    """Drops clients that fell silent and locks that are not renewed, and pushes the notices."""

    def __init__(
        self,
        producers: ProducerManager,
        consumers: ConsumerManager,
        locks: RebalanceLockManager | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producers = producers
        self._consumers = consumers
        self._locks = locks
        self._clock = clock

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._consumers.run(), name="consumer notices")
            while True:
                await asyncio.sleep(SCAN_INTERVAL_S)
                await self.scan()

    async def scan(self) -> None:
        """One look at the last heartbeat of every client."""
        now = self._clock()
        self._producers.scan_expired(now)
        self._consumers.scan_expired(now)
        if self._locks is not None:
            await self._locks.drop_expired()
