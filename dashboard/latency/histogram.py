"""How many messages took how long: a histogram with fixed bounds, so that any two can be added. Pure.

Bounds are whole ms: 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30 and so on to a week. A percentile is the bound that it
does not exceed: from 2 ms on it is rounded up by a third at most.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

WEEK_MS = 7 * 24 * 3600 * 1000
STEPS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
_LARGER = (step * 10**power for power in range(8) for step in STEPS)
BOUNDS = (1, 2, 3, 4, 5, 6, 8, *(bound for bound in _LARGER if bound < WEEK_MS), WEEK_MS)
COARSE = frozenset((WEEK_MS, *(step * 10**power for power in range(9) for step in (1, 2, 5))))
_BUCKET = struct.Struct("<BI")


@dataclass(slots=True)
class Histogram:
    """counts: by the number of the bound that is not exceeded; what took longer than a week is with the last one."""

    counts: Counter[int] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.counts.total()

    def add(self, took_ms: int) -> None:
        self.counts[min(bisect_left(BOUNDS, took_ms), len(BOUNDS) - 1)] += 1

    def percentile(self, share: float) -> int | None:
        """The bound (ms) within which this share of the messages was handled; None without any."""
        wanted, seen = share * self.total, 0
        for number in sorted(self.counts):
            seen += self.counts[number]
            if seen >= wanted:
                return BOUNDS[number]
        return None

    @property
    def buckets(self) -> list[tuple[int, int]]:
        """(bound in ms, messages), from the first that has any to the last."""
        used = [number for number, count in self.counts.items() if count]
        return [(BOUNDS[number], self.counts[number]) for number in range(min(used), max(used) + 1)] if used else []

    @property
    def coarse(self) -> list[tuple[int, int]]:
        """The same at 1, 2, 5, 10 ms and so on: as many as a reader looks at."""
        found: list[tuple[int, int]] = []
        before = 0
        for bound, count in self.buckets:
            before += count
            if bound in COARSE:
                found.append((bound, before))
                before = 0
        if before:
            found.append((next(bound for bound in BOUNDS if bound in COARSE and bound > self.buckets[-1][0]), before))
        return found

    def to_bytes(self) -> bytes:
        return b"".join(_BUCKET.pack(number, min(count, 0xFFFFFFFF)) for number, count in sorted(self.counts.items()))

    @classmethod
    def from_bytes(cls, kept: bytes) -> Histogram:
        whole = len(kept) // _BUCKET.size * _BUCKET.size
        return cls(Counter({number: count for number, count in _BUCKET.iter_unpack(kept[:whole])
                            if number < len(BOUNDS)}))  # fmt: skip


def summed(parts: Iterable[Histogram]) -> Histogram:
    whole = Histogram()
    for part in parts:
        whole.counts.update(part.counts)
    return whole
