"""A limit on repeated log lines: a few of one kind in a time window, then only how many were left out.

A peer that floods a server, or a file with damage in thousands of places, must not fill the disk with log lines as
well. Lines are counted by event, and by address where a peer causes them.
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

    def allows(self, event: str, address: str = "") -> bool:
        """Say whether one more line of this kind about this address may be written."""
        return self.left_out(event, address) is not None

    def left_out(self, event: str, address: str = "") -> int | None:
        """Return how many lines the last window left out, when this line may be written; None when it may not."""
        key, now = (event, address), self._clock()
        since, count = self._counts.get(key, (-WINDOW_S, 0))
        if now - since >= WINDOW_S:
            if len(self._counts) >= KEYS_MAX and key not in self._counts:
                self._counts.clear()
            self._counts[key] = (now, 1)
            return max(count - LINES_MAX, 0)
        self._counts[key] = (since, count + 1)
        return 0 if count < LINES_MAX else None

    def end_windows(self, *, at_end: bool = False) -> dict[str, int]:
        """Close the windows that are over, with `at_end` all; return by event how many lines they left out.

        For events that may never come again: their number would wait for a next line for ever.
        """
        now = self._clock()
        over = {key: count for key, (since, count) in self._counts.items() if at_end or now - since >= WINDOW_S}
        left_out: dict[str, int] = {}
        for key, count in over.items():
            del self._counts[key]
            if count > LINES_MAX:
                left_out[key[0]] = left_out.get(key[0], 0) + count - LINES_MAX
        return left_out
