"""How far a slave is: what it lacks in bytes and in seconds, and how fast it is fed. No I/O; time is an argument."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

SAMPLES_MAX = 3600  # one a second: of what is older it is known only that it is


class LogEnds:
    """Where the log ended, second by second: it turns bytes behind into seconds behind."""

    def __init__(self) -> None:
        self._ends: deque[int] = deque(maxlen=SAMPLES_MAX)
        self._times: deque[float] = deque(maxlen=SAMPLES_MAX)

    def note(self, end: int, now: float) -> None:
        """Take a sample; the log has not grown since when its end is the last one's."""
        if not self._ends or end > self._ends[-1]:
            self._ends.append(end)
            self._times.append(now)

    def seconds_behind(self, offset: int, now: float) -> float:
        """Return for how long the log has had more than the offset; 0.0 when it has not, as of the last sample."""
        index = bisect_right(self._ends, offset)
        return max(now - self._times[index], 0.0) if index < len(self._ends) else 0.0


class TransferRate:
    """Bytes a second, over the time between two samples."""

    def __init__(self, now: float) -> None:
        self._at = now
        self._bytes = 0
        self.bytes_per_s = 0.0

    def note(self, total_bytes: int, now: float) -> None:
        if now > self._at:
            self.bytes_per_s = (total_bytes - self._bytes) / (now - self._at)
            self._at, self._bytes = now, total_bytes
