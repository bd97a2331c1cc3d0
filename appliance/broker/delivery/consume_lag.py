"""How old the oldest message is that a group has not consumed: its lag in time, beside the count of messages.

The store knows when each message was stored, but has to read the record for it, from disk when it is cold. A group
that stands still is asked about every second, so times are kept by physical offset, which never means another message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store.message_store import MessageStore

TIMES_KEPT = 65_536  # about 8 MiB


class StoreTimes:
    """Store times of messages by their place in a queue; one consume-queue unit is read for each question."""

    def __init__(self, store: MessageStore, *, kept: int = TIMES_KEPT) -> None:
        self._store = store
        self._kept = kept
        self._times: dict[int, int] = {}  # physical offset to ms; the oldest entry first

    def at(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Return when the message was stored, ms; -1 when it is not there."""
        units = self._store.consume_queue_units(topic, queue_id, queue_offset, 1) if queue_offset >= 0 else []
        if not units:
            return -1
        physical_offset = units[0].physical_offset
        time_ms = self._times.get(physical_offset)
        if time_ms is None:
            time_ms = self._store.store_timestamp(topic, queue_id, queue_offset)
            if time_ms > 0:
                self._keep(physical_offset, time_ms)
        elif physical_offset < self._store.min_physical_offset:
            return -1  # deleted meanwhile
        return time_ms

    def _keep(self, physical_offset: int, time_ms: int) -> None:
        if len(self._times) >= self._kept:
            del self._times[next(iter(self._times))]
        self._times[physical_offset] = time_ms


def lag_ms(
    time_at: Callable[[str, int, int], int], topic: str, queue_id: int, places: tuple[int, int, int], now_ms: int
) -> int:
    """Return the age of the oldest unconsumed message, ms; 0 when there is none.

    places: the next offset to consume, the first offset kept, the queue's end. What retention has taken from a slow
    group counts no longer: it can't be consumed any more.
    """
    consumed, low, high = places
    oldest = max(consumed, low)
    if oldest >= high:
        return 0
    stored_ms = time_at(topic, queue_id, oldest)
    return max(now_ms - stored_ms, 0) if stored_ms > 0 else 0
