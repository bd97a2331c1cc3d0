"""How far a slave is: what it lacks in messages and in seconds, and how fast it is fed. No I/O; time is an argument."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

SAMPLES_MAX = 3600  # one a second: of what is older it is known only that it is


class LogEnds:
    """Where the log ended, second by second: it turns bytes behind into seconds and messages behind."""

    def __init__(self) -> None:
        self._ends: deque[int] = deque(maxlen=SAMPLES_MAX)
        self._times: deque[float] = deque(maxlen=SAMPLES_MAX)
        self._counts: deque[int] = deque(maxlen=SAMPLES_MAX)

    def note(self, end: int, now: float, messages: int) -> None:
        """Take a sample; the log has not grown since when its end is the last one's. messages: since any start."""
        if not self._ends or end > self._ends[-1]:
            self._ends.append(end)
            self._times.append(now)
            self._counts.append(messages)

    def seconds_behind(self, offset: int, now: float) -> float:
        """Return for how long the log has had more than the offset; 0.0 when it has not, as of the last sample."""
        index = bisect_right(self._ends, offset)
        return max(now - self._times[index], 0.0) if index < len(self._ends) else 0.0

    def messages_behind(self, offset: int) -> int | None:
        """Return about how many messages lie beyond the offset, as of the last sample; None when nothing tells.

        Between two samples messages count as equally long, and before the first as long as those seen since.
        """
        ends, counts = self._ends, self._counts
        index = bisect_right(ends, offset)
        if index == len(ends):
            return 0
        start, stop = (index - 1, index) if index else (0, len(ends) - 1)
        messages = counts[stop] - counts[start]
        if not messages:
            return None
        return counts[-1] - counts[stop] + max(round((ends[stop] - offset) * messages / (ends[stop] - ends[start])), 1)


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
