"""The queue watermarks in the log: each second, what waited in the lanes, and how far dispatch is behind.

A quiet second is logged at DEBUG, one in which a lane filled noticeably or a request waited long at INFO, so that the
log says something when it speaks.
"""

from __future__ import annotations

import asyncio
import logging

from appliance.remoting.lane import Lane
from appliance.remoting.lanes import Lanes
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0
NOTABLE_SHARE = 0.1  # of a lane's capacity
NOTABLE_WAIT_MS = 100
NOTABLE_BEHIND_BYTES = 64 * 1024 * 1024


class WatermarkLog:
    """Logs lanes and dispatch until cancelled."""

    def __init__(self, lanes: Lanes, store: MessageStore) -> None:
        self._lanes = lanes
        self._store = store

    async def run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            self.look()

    def look(self) -> None:
        """Log the second that has passed."""
        for lane in self._lanes.by_name.values():
            _log_lane(lane)
        behind = self._store.dispatch_behind_bytes
        if behind > NOTABLE_BEHIND_BYTES:
            logger.info("dispatch is behind", extra={"event": "dispatch_behind", "bytes": behind})


def _log_lane(lane: Lane) -> None:
    size, wait_ms = lane.take_peaks()
    is_notable = size > lane.capacity * NOTABLE_SHARE or wait_ms > NOTABLE_WAIT_MS
    level = logging.INFO if is_notable else logging.DEBUG
    if logger.isEnabledFor(level) and size:
        logger.log(
            level,
            "lane",
            extra={
                "event": "lane_watermark",
                "lane": lane.name,
                "size": size,
                "capacity": lane.capacity,
                "wait_ms": wait_ms,
                "rejected": lane.rejected,
                "expired": lane.expired,
                "oneway_refused": lane.oneway_refused,
            },
        )
