"""Log lines that one damaged file can cause by the thousand: some of a kind, then their number only."""

from __future__ import annotations

import time
from collections.abc import Callable

LINES_MAX = 20  # of one kind within
WINDOW_S = 10.0


class LineLimit:
    """Ask before each line, and look now and then at what was left out. clock: monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}  # by event: when its window began, how many came since

    def allows(self, event: str) -> bool:
        """Whether one more line of this kind may be written."""
        since, count = self._windows.get(event, (self._clock(), 0))
        self._windows[event] = (since, count + 1)
        return count < LINES_MAX

    def left_out(self, *, at_end: bool = False) -> dict[str, int]:
        """Close the windows that are over, with `at_end` all; return how many lines of each kind were left out."""
        now = self._clock()
        over = {event: n for event, (since, n) in self._windows.items() if at_end or now - since >= WINDOW_S}
        for event in over:
            del self._windows[event]
        return {event: count - LINES_MAX for event, count in over.items() if count > LINES_MAX}
