"""How much of the loop's time each address uses, and whose new connections are not taken while others need it.

A connection that says half a request costs the loop about a millisecond, more where the machine is busy: some hundred a
second keep it from accepting anyone else's. Time is measured, so it holds at any speed. An address alone may use all.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WINDOW_S = 2.0
PART = 0.2  # of the loop's time, for new connections of all addresses that use more than their share of it


class LoopShares:
    """Of one listening port."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pieces: deque[tuple[float, str, float]] = deque()  # when, whose, seconds; of the last WINDOW_S
        self._spent: dict[str, float] = {}
        self._depth = 0

    def now(self) -> float:
        return self._clock()

    @contextmanager
    def work_for(self, key: str, since: float | None = None) -> Iterator[None]:
        """Count the time of the block, or from `since`. What it does to other connections counts for this one."""
        if not key or self._depth:
            yield
            return
        begun, self._depth = since or self._clock(), 1
        try:
            yield
        finally:
            self._depth = 0
            self._add(begun, key, self._clock() - begun)

    def takes(self, key: str) -> bool:
        """Whether a new connection of this address is taken now."""
        self._forget(self._clock())
        if not key or key not in self._spent or len(self._spent) < 2:
            return True
        allowed = WINDOW_S * PART
        return sum(self._spent.values()) <= allowed or self._spent[key] <= allowed / len(self._spent)

    def _add(self, now: float, key: str, spent: float) -> None:
        self._forget(now)
        self._pieces.append((now, key, spent))
        self._spent[key] = self._spent.get(key, 0.0) + spent

    def _forget(self, now: float) -> None:
        while self._pieces and self._pieces[0][0] < now - WINDOW_S:
            _, key, spent = self._pieces.popleft()
            self._spent[key] -= spent
            if self._spent[key] <= 1e-9:
                del self._spent[key]
