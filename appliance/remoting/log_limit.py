"""Log lines that peers cause: a few of a kind for each address, then their number only.

What floods a server must not flood its disk as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LINES_MAX = 20  # of one kind about one address, within
WINDOW_S = 10.0
KEYS_MAX = 4096


class LogLimit:
    """Ask before each line. clock: monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}  # -> start of the window, lines in it

    def allows(self, event: str, address: str) -> bool:
        """Whether one more line of this kind about this address may be written."""
        return self.left_out(event, address) is not None

    def left_out(self, event: str, address: str) -> int | None:
        """How many lines were left out in the last window, when this one may be written; None when it may not."""
        key, now = (event, address), self._clock()
        since, count = self._counts.get(key, (-WINDOW_S, 0))
        if now - since >= WINDOW_S:
            if len(self._counts) >= KEYS_MAX and key not in self._counts:
                self._counts.clear()
            self._counts[key] = (now, 1)
            return max(count - LINES_MAX, 0)
        self._counts[key] = (since, count + 1)
        return 0 if count < LINES_MAX else None
