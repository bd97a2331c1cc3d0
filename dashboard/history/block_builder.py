"""The minute, hour and day of each series that run, and the blocks that are to be written. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dashboard.history.series import EACH_SECOND, KEEPS, SUBJECTS_MAX, Several, kind_of

SECOND, MINUTE, HOUR = 1, 60, 3600
LENGTHS = {SECOND: 60, MINUTE: 60, HOUR: 24}  # values of a block
SERIES_MAX = len(KEEPS) * SUBJECTS_MAX  # in one minute, of all kinds
BLOCKS_MAX = 8 * SERIES_MAX  # in memory, those that no database took yet with them
HOURS_EACH_MINUTES = 10  # how often the value of the hour that runs is made anew


@dataclass(frozen=True, slots=True)
class Key:
    """Which block."""

    series: str
    step_s: int
    start: int


def block_start(step_s: int, at: float) -> int:
    """When the block begins that has this moment."""
    length = step_s * LENGTHS[step_s]
    return int(at) // length * length


class HistoryBook:
    """`add` takes a second's readings; `due` has what is to be written, `written` takes it out."""

    def __init__(self) -> None:
        self._blocks: dict[Key, array[float]] = {}
        self._due: dict[Key, None] = {}
        self._minute: int | None = None  # when the one that runs began
        self._values: dict[str, Several] = {}  # its values

    def add(self, readings: Mapping[str, float], at: float) -> None:
        """One second. A clock that was set back writes nothing until it is where it was."""
        minute = int(at) // MINUTE * MINUTE
        if self._minute is not None and minute < self._minute:
            return
        if self._minute is not None and minute > self._minute:
            self._finish_minute()
        self._minute = minute
        for name, value in readings.items():
            kind = kind_of(name)
            if kind in EACH_SECOND:
                self._put(name, SECOND, int(at), value, is_due=False)
            several = self._values.get(name)
            if several is None:
                if len(self._values) >= SERIES_MAX:
                    continue
                several = self._values[name] = Several()
            several.add(value)

    def adopt(self, blocks: Iterable[tuple[Key, bytes]]) -> None:
        """Go on with what was written by the process before; what is known already stays."""
        for key, values in blocks:
            if len(values) != LENGTHS[key.step_s] * array("f").itemsize:
                continue  # another version's: it is left alone until its time is over
            before = array("f", values)
            for index, new in enumerate(self._blocks.get(key, ())):
                if not math.isnan(new):
                    before[index] = new
            self._blocks[key] = before

    def due(self, most: int) -> list[tuple[Key, bytes]]:
        """Some of the blocks that changed."""
        return [(key, self._blocks[key].tobytes()) for key in list(self._due)[:most]]

    def written(self, blocks: Iterable[tuple[Key, bytes]]) -> None:
        """These are in the database. What changed meanwhile stays due; blocks whose time is over are let go."""
        for key, values in blocks:
            block = self._blocks.get(key)
            if block is not None and block.tobytes() == values:
                self._due.pop(key, None)
                if self._minute is not None and key.start < block_start(key.step_s, self._minute):
                    del self._blocks[key]

    @property
    def held(self) -> frozenset[Key]:
        """The blocks in memory."""
        return frozenset(self._blocks)

    def flush(self) -> None:
        """The process ends: what is known of the minute and the hour that run is to be written, too."""
        if self._minute is not None:
            self._finish_minute(is_end=True)
            self._minute = None

    # ---- helpers

    def _finish_minute(self, *, is_end: bool = False) -> None:
        assert self._minute is not None
        values, self._values = self._values, {}
        for name, several in values.items():
            self._put(name, MINUTE, self._minute, several.kept(kind_of(name)))
        for key in self._blocks:
            if key.step_s == SECOND and key.start <= self._minute:
                self._due[key] = None
        if is_end or self._minute // MINUTE % HOURS_EACH_MINUTES == HOURS_EACH_MINUTES - 1:
            self._put_hour(self._minute // HOUR * HOUR)

    def _put_hour(self, hour: int) -> None:
        """The hour's value of each series, as far as its minutes are known."""
        minutes = [
            (key.series, block) for key, block in self._blocks.items() if (key.step_s, key.start) == (MINUTE, hour)
        ]
        for series, block in minutes:
            several = Several()
            for value in block:
                if not math.isnan(value):
                    several.add(value)
            if several.count:
                self._put(series, HOUR, hour, several.kept(kind_of(series)))

    def _put(self, series: str, step: int, at: int, value: float, *, is_due: bool = True) -> None:
        key = Key(series, step, block_start(step, at))
        block = self._blocks.get(key)
        if block is None:
            if len(self._blocks) >= BLOCKS_MAX:  # the database has taken nothing for long: the oldest goes
                oldest = next(iter(self._blocks))
                del self._blocks[oldest]
                self._due.pop(oldest, None)
            block = self._blocks[key] = array("f", [math.nan] * LENGTHS[step])
        block[(at - key.start) // step] = value
        if is_due:
            self._due[key] = None
