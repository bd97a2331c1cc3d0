"""How full a disk is, as RocketMQ counts it, and when it will be full if it fills up as it does now.

The forecast looks at what the whole file system has in use, not at what this store writes: other programs fill a disk
too, and what cleaning takes away has to count. Disk blocks that the store only owns in advance don't count as used.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from store.base.config import MessageStoreConfig

WINDOW_S = 1800.0
LATELY_S = 300.0  # a disk that began to fill up a moment ago is seen here first
WINDOW_MIN_S = 60.0  # less says nothing
PIECES = 6  # of a window: how far their rates lie apart says how much the whole rate is worth
ERRORS = 2.5  # standard errors of the rate on either side: 19 times of 20, with so many pieces
FALLS = 2.0  # what was written lately counts if it is more than so many times what was deleted at once in the window
REACH = 24  # a window that is not whole yet foretells so many times its own length
FOREVER_S = 10 * 365 * 86400.0  # a disk that would last so long is not filling up


class DiskSpace(NamedTuple):
    """Bytes in use and bytes there are; those reserved for the administrator are neither."""

    used_bytes: int
    total_bytes: int
    reserved_bytes: int = 0

    @property
    def free_bytes(self) -> int:
        return self.total_bytes - self.used_bytes

    @property
    def ratio(self) -> float:
        """RocketMQ's figure: hundredths, rounded up."""
        return -(-100 * self.used_bytes // self.total_bytes) / 100 if self.total_bytes else 0.0


def disk_space(path: Path) -> DiskSpace:
    """Look at the path's file system; a path to come counts as its parent. OSError when the disk does not answer."""
    stat = os.statvfs(existing(path))
    used = stat.f_blocks - stat.f_bfree
    reserved = (stat.f_bfree - stat.f_bavail) * stat.f_frsize
    return DiskSpace(used * stat.f_frsize, (used + stat.f_bavail) * stat.f_frsize, reserved)


def existing(path: Path) -> Path:
    """Return the path, or of one to come the nearest folder above it that is there."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def disk_ratio(path: Path) -> float:
    """Return how full the path's file system is, 0.0 … 1.0; -1.0 when its disk does not answer."""
    try:
        return disk_space(path).ratio
    except OSError:
        return -1.0


def joint_space(paths: Iterable[Path]) -> DiskSpace:
    """Add up the disks that the paths lie on, each once. OSError when one does not answer."""
    disks: dict[int, DiskSpace] = {}
    for path in paths:
        disks[existing(path).stat().st_dev] = disk_space(path)
    return DiskSpace(sum(disk.used_bytes for disk in disks.values()), sum(disk.total_bytes for disk in disks.values()))


@dataclass(frozen=True, slots=True)
class DiskForecast:
    """What is not known is None: the rate before a minute has passed, the times while the disk does not fill up."""

    bytes_per_second: float | None = None
    next_mark: float | None = None  # a ratio: cleaning starts, cleaning by force starts, writes are refused
    seconds_to_next_mark: float | None = None
    seconds_to_full: float | None = None  # until writes are refused
    earliest_full_s: float | None = None  # the same by the fastest and by the slowest rate that is likely
    latest_full_s: float | None = None


class Trend(NamedTuple):
    """Bytes a second, and how far that may be wrong. span_s: of the readings behind it."""

    rate: float
    error: float
    span_s: float

    @property
    def is_significant(self) -> bool:
        return self.rate > self.error


class DiskForecaster:
    """Remembers half an hour of readings. Time is an argument, seconds of any steady clock.

    An operator may move the marks of `config` while the store runs; what was read stays good.
    """

    def __init__(self, config: MessageStoreConfig) -> None:
        self._config = config
        self._readings: deque[tuple[float, int]] = deque()
        self._total_bytes = 0
        self._foretold_at: float | None = None

    def note(self, now: float, space: DiskSpace) -> None:
        """Take a reading. Another total is another disk, which starts without a past."""
        if space.total_bytes != self._total_bytes:
            self._readings.clear()
            self._foretold_at = None
            self._total_bytes = space.total_bytes
        self._readings.append((now, space.used_bytes))
        while len(self._readings) > 2 and now - self._readings[1][0] >= WINDOW_S:
            self._readings.popleft()

    def forecast(self) -> DiskForecast:
        """Go on from the last reading at the rate of the window that fills the disk first, if it is significant.

        What was foretold stays so, with a wider range, until the disk is as empty as it was: others fill it in bursts.
        """
        if not self._readings:
            return DiskForecast()
        last_at, used = self._readings[-1]
        ratio = used / self._total_bytes if self._total_bytes else 0.0
        marks = sorted((self._config.clean_ratio, self._config.forcibly_ratio, self._full_at))
        mark = next((mark for mark in marks if ratio <= mark), None)
        whole = trend_of(tuple(self._readings))
        if whole.span_s < WINDOW_MIN_S:
            return DiskForecast(next_mark=mark)
        trends = [trend for trend in (whole, self._lately()) if trend.is_significant and self._reaches(trend, used)]
        if trends:
            self._foretold_at = last_at
        elif not self._goes_on(last_at, used):
            self._foretold_at = None
            return DiskForecast(whole.rate, mark)
        fastest = max(trends, key=lambda trend: trend.rate, default=whole)
        return DiskForecast(
            whole.rate,
            mark,
            self._seconds_to(mark, used, fastest.rate),
            self._seconds_to(self._full_at, used, fastest.rate),
            self._seconds_to(self._full_at, used, fastest.rate + fastest.error),
            self._seconds_to(self._full_at, used, fastest.rate - fastest.error),
        )

    @property
    def _full_at(self) -> float:
        return self._config.warning_ratio

    def _goes_on(self, now: float, used: int) -> bool:
        is_lowest = used <= min(each for _, each in self._readings)
        return self._foretold_at is not None and now - self._foretold_at <= WINDOW_S and not is_lowest

    def _lately(self) -> Trend:
        """The trend of the last minutes; none where programs write so much and delete it again."""
        last_at = self._readings[-1][0]
        lately = trend_of([each for each in self._readings if last_at - each[0] <= LATELY_S])
        is_more = lately.rate * lately.span_s > FALLS * largest_fall(used for _, used in self._readings)
        return lately if is_more else Trend(0.0, 0.0, lately.span_s)

    def _reaches(self, trend: Trend, used: int) -> bool:
        """Whether so short a time can say anything of so long a one."""
        seconds = self._seconds_to(self._full_at, used, trend.rate)
        return trend.span_s > WINDOW_S - LATELY_S or (seconds is not None and seconds <= REACH * trend.span_s)

    def _seconds_to(self, mark: float | None, used: int, rate: float) -> float | None:
        if mark is None or rate <= 0:
            return None
        seconds = max(mark * self._total_bytes - used, 0) / rate
        return seconds if seconds < FOREVER_S else None


def trend_of(readings: Sequence[tuple[float, int]]) -> Trend:
    """Readings are seconds and bytes, oldest first. The rates of the pieces of their time are compared."""
    (first_at, first), (last_at, last) = readings[0], readings[-1]
    span_s = last_at - first_at
    if span_s <= 0:
        return Trend(0.0, 0.0, 0.0)
    ends = [readings[0]]
    for at, used in readings[1:]:
        if at - ends[-1][0] >= span_s / PIECES or at == last_at:
            ends.append((at, used))
    from statistics import stdev  # it loads fractions and decimals, which every start would wait for

    rates = [(right[1] - left[1]) / (right[0] - left[0]) for left, right in itertools.pairwise(ends)]
    error = ERRORS * stdev(rates) / len(rates) ** 0.5 if len(rates) > 1 else float("inf")
    return Trend((last - first) / span_s, error, span_s)


def largest_fall(sizes: Iterable[int]) -> int:
    """From a size to the lowest after it."""
    highest = fall = 0
    for size in sizes:
        highest = max(highest, size)
        fall = max(fall, highest - size)
    return fall
