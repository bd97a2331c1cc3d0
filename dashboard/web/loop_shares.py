"""How much of the loop's time each address uses, and whose new connections are not taken while others need it.

A connection that says half a request costs the loop about a millisecond, more where the machine is busy: some hundred a
second keep it from accepting anyone else's. Time is measured, so it holds at any speed. An address alone may use all.

How much all connections use is time as the loop sees it, other processes' part included. How much of it an address used
is its part of the processor time: a piece in which the machine ran something else must not count for one address alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

WINDOW_S = 2.0
PART = 0.2  # of the loop's time, for new connections of all addresses that use more than their share of it


class Moment(NamedTuple):
    """Two clocks at once, in seconds."""

    clock: float
    processor: float  # of the loop's thread


class _Piece(NamedTuple):
    begun: float
    key: str
    seconds: float
    processor_s: float


class LoopShares:
    """Of one listening port."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, processor: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._processor = processor
        self._pieces: deque[_Piece] = deque()  # of the last WINDOW_S
        self._used: dict[str, float] = {}  # processor seconds by key
        self._seconds = 0.0  # of all pieces
        self._depth = 0

    def now(self) -> Moment:
        return Moment(self._clock(), self._processor())

    @contextmanager
    def work_for(self, key: str, since: Moment | None = None) -> Iterator[None]:
        """Count the time of the block, or from `since`. What it does to other connections counts for this one."""
        if not key or self._depth:
            yield
            return
        begun, self._depth = since or self.now(), 1
        try:
            yield
        finally:
            self._depth = 0
            self._add(begun, key, self.now())

    def takes(self, key: str) -> bool:
        """Whether a new connection of this address is taken now."""
        self._forget(self._clock())
        if not key or key not in self._used or len(self._used) < 2:
            return True
        allowed = WINDOW_S * PART
        return self._seconds <= allowed or self._seconds_of(key) <= allowed / len(self._used)

    def _seconds_of(self, key: str) -> float:
        """Its part of the time that all used."""
        used = sum(self._used.values())
        return self._seconds * self._used[key] / used if used else 0.0

    def _add(self, begun: Moment, key: str, ended: Moment) -> None:
        self._forget(begun.clock)
        piece = _Piece(begun.clock, key, ended.clock - begun.clock, ended.processor - begun.processor)
        self._pieces.append(piece)
        self._seconds += piece.seconds
        self._used[key] = self._used.get(key, 0.0) + piece.processor_s

    def _forget(self, now: float) -> None:
        while self._pieces and self._pieces[0].begun < now - WINDOW_S:
            piece = self._pieces.popleft()
            self._seconds -= piece.seconds
            left = self._used.pop(piece.key, 0.0) - piece.processor_s
            if left > 1e-9:
                self._used[piece.key] = left
