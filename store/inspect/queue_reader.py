"""The units of one consume queue, read from its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.base.config import NAME_DIGITS
from store.inspect.files import NumberedFile, first_data, numbered_files
from store.inspect.findings import Findings
from store.queues.consume_queue import FILLER_SIZE, UNIT
from store.queues.descriptors import DescriptorCache

SCAN_UNITS = 4096


class Unit(NamedTuple):
    """A unit with its place in the queue."""

    queue_offset: int
    physical_offset: int
    size_bytes: int
    tags_code: int

    @property
    def is_filler(self) -> bool:
        return self.size_bytes == FILLER_SIZE

    @property
    def physical_end(self) -> int:
        return self.physical_offset + self.size_bytes


class QueueReader:
    """One queue. `block_units` are read at once for look-ups by index."""

    __slots__ = ("_block", "_block_end", "_block_start", "_reader", "block_units", "file_units", "files", "folder",
                 "queue_id", "topic")  # fmt: skip

    def __init__(
        self, folder: Path, topic: str, queue_id: int, reader: DescriptorCache, findings: Findings | None = None
    ) -> None:
        self.folder = folder
        self.topic = topic
        self.queue_id = queue_id
        self.files: list[NumberedFile] = numbered_files([folder], NAME_DIGITS, findings)
        self.file_units = self.files[0].size // UNIT_BYTES if self.files else 0
        self.block_units = 256
        self._reader = reader
        self._block = b""
        self._block_start = self._block_end = 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.queue_id}"

    @property
    def first_index(self) -> int:
        return self.files[0].base // UNIT_BYTES if self.files else 0

    def place_of(self, index: int) -> tuple[Path, int]:
        """Return file and position of a unit, for findings."""
        if not self.files:
            return self.folder, -1
        base = self.first_index
        number = max(0, min((index - base) // max(self.file_units, 1), len(self.files) - 1))
        return self.files[number].path, index * UNIT_BYTES - self.files[number].base

    def read(self, index: int, count: int) -> bytes:
        """Return the bytes of up to `count` units, fewer where a file ends or is missing."""
        if not self.file_units:
            return b""
        base = index - index % self.file_units
        count = min(count, base + self.file_units - index)
        path = self.folder / f"{base * UNIT_BYTES:0{NAME_DIGITS}d}"
        data = self._reader.read(path, count * UNIT_BYTES, (index - base) * UNIT_BYTES)
        return data[: len(data) - len(data) % UNIT_BYTES]

    def units(self, index: int | None = None) -> Iterator[Unit]:
        """Yield the units from `index` (default: the first) up to the first that is not valid."""
        index = self.first_index if index is None else index
        end = self.files[-1].end // UNIT_BYTES if self.files else 0
        while index < end:
            data = self.read(index, SCAN_UNITS)
            if not data:
                return
            for physical_offset, size_bytes, tags_code in UNIT.iter_unpack(data):
                if size_bytes <= 0 or physical_offset < 0:
                    return
                yield Unit(index, physical_offset, size_bytes, tags_code)
                index += 1

    def unit_at(self, index: int) -> Unit | None:
        """Return one unit, None when it is not there. Quick for neighbours."""
        if not self._block_start <= index < self._block_end:
            self._block = self.read(index, self.block_units)
            self._block_start, self._block_end = index, index + len(self._block) // UNIT_BYTES
            if index >= self._block_end:
                return None
        unit = Unit(index, *UNIT.unpack_from(self._block, (index - self._block_start) * UNIT_BYTES))
        return unit if unit.size_bytes > 0 and unit.physical_offset >= 0 else None

    def count_between(self, low: int, high: int) -> int:
        """Return how many units name messages between two physical offsets; fillers among them count, too."""
        return self._first_at(high) - self._first_at(low)

    def _first_at(self, physical_offset: int) -> int:
        low, high = self.first_index, self.quick_end()
        while low < high:
            middle = (low + high) // 2
            unit = self.unit_at(middle)
            if unit is not None and not unit.is_filler and unit.physical_offset >= physical_offset:
                high = middle
            else:
                low = middle + 1
        return low

    def quick_end(self) -> int:
        """Return the index behind the last valid unit, looking at the last three files only, as a start does."""
        end = self.first_index
        for file in self.files[-3:]:
            start = file.base // UNIT_BYTES
            if self.unit_at(start + self.file_units - 1) is not None:
                end = start + self.file_units  # written in order: when the last is there, so are the others
                continue
            if self.unit_at(start) is None:
                break
            return start + sum(1 for _ in self.units(start))
        return end

    def next_behind(self, end: int) -> Unit | None:
        """Return the next valid unit behind the end of the valid ones: stale, or behind damage."""
        for file in self.files:
            if file.end <= end * UNIT_BYTES:
                continue
            position = max(end * UNIT_BYTES - file.base, 0)
            while 0 <= position < file.size:
                position = first_data(self._reader, file.path, position, file.size)
                if position < 0:
                    break
                unit = self.unit_at((file.base + position) // UNIT_BYTES)
                if unit is not None:
                    return unit
                position += UNIT_BYTES - position % UNIT_BYTES
        return None
