"""The delay before an ended process is started again, and when its restarts count as a crash loop."""

from __future__ import annotations

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 30.0
HEALTHY_AFTER_S = 60.0  # a process that served this long starts again with the first delay
LOOP_AFTER = 5  # restarts in a row


class Backoff:
    """The delay doubles from restart to restart until the process stays up."""

    def __init__(self) -> None:
        self.failures = 0

    @property
    def is_crash_loop(self) -> bool:
        return self.failures >= LOOP_AFTER

    def next_delay_s(self, lived_s: float) -> float:
        """Seconds to wait after a process that served for `lived_s` seconds."""
        if lived_s >= HEALTHY_AFTER_S:
            self.failures = 0
        self.failures += 1
        return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(self.failures - 1, 16))
