"""One consume queue of a store folder, read from its files: 20-byte units, a unit for each message, by queue offset.

A unit says where the message lies in the commit log. A unit without a size ends the queue; fillers stand for messages
that the queue does not have: before its first one, and where units were lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantrymq.contrib.spark.ranges import Queue

UNIT = np.dtype([("physical_offset", ">i8"), ("size_bytes", ">i4"), ("tags_code", ">i8")])
FILLER_SIZE = 0x7FFFFFFF
LOOK_UNITS = 4096  # read at once when fillers are skipped

Units = NDArray[np.void]

_FILE_NAME = re.compile(r"\d{20}")


class QueueFile(NamedTuple):
    """`first` and `units`: the index of its first unit, and how many it has room for."""

    path: str
    first: int
    units: int


class QueueFiles:
    """One queue. Raises FileNotFoundError where a file is gone that was there when this was made."""

    def __init__(self, folder: Path, queue: Queue) -> None:
        self.queue = queue
        self.files: list[QueueFile] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if _FILE_NAME.fullmatch(entry.name):
                    self.files.append(_file(entry))
        self.files.sort(key=lambda file: file.first)

    @property
    def first(self) -> int:
        """The index of the first unit that has room."""
        return self.files[0].first if self.files else 0

    def end(self) -> int:
        """The index behind the last unit that is written."""
        for file in reversed(self.files):
            if self._is_written(file.first):
                return _first_true(file.first, file.first + file.units, lambda index: not self._is_written(index))
        return self.first

    def first_from(self, physical_offset: int, begin: int, end: int) -> int:
        """The first index from `begin` on whose message lies at this place of the log or behind it, else `end`.

        Where a filler stands, the next message counts.
        """
        return self.first_where(begin, end, lambda place, _: place >= physical_offset)

    def first_real(self, begin: int, end: int) -> int:
        """The first index from `begin` on that is no filler, else `end`."""
        index, count = begin, 1
        while index < end:
            units = self.units(index, min(index + count, end))
            real = np.flatnonzero(units["size_bytes"] != FILLER_SIZE)
            if len(real):
                return index + int(real[0])
            index += len(units)
            count = LOOK_UNITS
        return end

    def first_where(self, begin: int, end: int, is_so: Callable[[int, int], bool | None]) -> int:
        """The first index whose message (its place in the log, and its size) is so, else `end`; behind it all are.

        Where `is_so` can't tell (None), the next message counts.
        """

        def look(index: int) -> bool:
            while (real := self.first_real(index, end)) < end:
                unit = self.units(real, real + 1)[0]
                answer = is_so(int(unit["physical_offset"]), int(unit["size_bytes"]))
                if answer is not None:
                    return answer
                index = real + 1
            return True

        return _first_true(begin, end, look)

    def units(self, begin: int, end: int) -> Units:
        """The units from `begin` up to `end`, fillers too."""
        parts = []
        for file in self.files:
            low, high = max(begin, file.first), min(end, file.first + file.units)
            if low < high:
                parts.append(self._read(file, low, high))
        found: Units = np.concatenate(parts) if parts else np.empty(0, dtype=UNIT)
        if len(found) < end - begin:
            raise FileNotFoundError(f"{self.queue}: units {begin} to {end - 1} are not in its files")
        return found

    def _read(self, file: QueueFile, low: int, high: int) -> Units:
        descriptor = os.open(file.path, os.O_RDONLY)
        try:
            data = os.pread(descriptor, (high - low) * UNIT.itemsize, (low - file.first) * UNIT.itemsize)
        finally:
            os.close(descriptor)
        return np.frombuffer(data[: len(data) // UNIT.itemsize * UNIT.itemsize], dtype=UNIT)

    def _is_written(self, index: int) -> bool:
        unit = self.units(index, index + 1)[0]
        return bool(unit["size_bytes"] > 0 and unit["physical_offset"] >= 0)


def _file(entry: os.DirEntry[str]) -> QueueFile:
    return QueueFile(entry.path, int(entry.name) // UNIT.itemsize, entry.stat().st_size // UNIT.itemsize)


def _first_true(low: int, high: int, is_true: Callable[[int], bool]) -> int:
    """The first number from `low` on for which it is true, `high` when it is for none; it never turns false again."""
    while low < high:
        middle = (low + high) // 2
        if is_true(middle):
            high = middle
        else:
            low = middle + 1
    return low
