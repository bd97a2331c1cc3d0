"""What is due soon: groups of messages by their millisecond, the earliest first.

A group is one bytearray of packed places, so a message costs 20 bytes and a millisecond some hundred; a million
messages in one minute fit where a million objects would not.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from appliance.broker.timer.entries import PLACE, Place

PLACE_BYTES = PLACE.size
SCAN_BYTES = 1024 * PLACE_BYTES


class DueTable:
    """Add in any order, take in order of time; messages of one millisecond in the order in which they were added."""

    def __init__(self) -> None:
        self.count = 0
        self._groups: dict[int, bytearray] = {}
        self._times: list[int] = []  # a heap of the groups' times

    def add(self, due_ms: int, place: bytes) -> None:
        """Add a message; `place` is packed (entries.PLACE)."""
        group = self._groups.get(due_ms)
        if group is None:
            self._groups[due_ms] = group = bytearray()
            heapq.heappush(self._times, due_ms)
        group += place
        self.count += 1

    @property
    def first_ms(self) -> int | None:
        """When the earliest is due, None when there is none."""
        return self._times[0] if self._times else None

    def peek(self, count_max: int) -> list[Place]:
        """Return the first messages of the earliest millisecond."""
        if not self._times:
            return []
        group = self._groups[self._times[0]]
        return [Place._make(place) for place in PLACE.iter_unpack(bytes(group[: count_max * PLACE_BYTES]))]

    def drop(self, count: int) -> None:
        """Forget the first `count` messages of the earliest millisecond, at most as many as it has."""
        due_ms = self._times[0]
        group = self._groups[due_ms]
        del group[: count * PLACE_BYTES]
        self.count -= count
        if not group:
            del self._groups[due_ms]
            heapq.heappop(self._times)

    def scan_below(self, physical_offset: int) -> Iterator[bool]:
        """Yield, in small steps, whether a message lies below that place in the log; ends with the first that does."""
        for group in list(self._groups.values()):
            for at in range(0, len(group), SCAN_BYTES):
                places = PLACE.iter_unpack(bytes(group[at : at + SCAN_BYTES]))
                is_below = any(place[1] < physical_offset for place in places)
                yield is_below
                if is_below:
                    return
