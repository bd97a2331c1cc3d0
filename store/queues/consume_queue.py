"""The consume queue of one (topic, queue id): a 20-byte unit for each message, by queue offset.

Nothing is mapped, so any number of queues fits into the kernel's limits. New units collect in `tail`, in memory; the
flusher writes them to the files (store/upkeep/flush.py says how often), and a crash loses none for good, since
recovery feeds the queue from the commit log again. Reads find recent units in the tail and older ones with one pread.

A unit with size <= 0 ends the queue. Leading units of the first file may be fillers (RocketMQ's pre-blank units): the
queue's first message did not have index 0. Fillers also stand where units were lost, so that indexes stay true. They
are made when they are written: a queue's first message may need 6 MB of them, and a copy begins many queues at once.
"""

from __future__ import annotations

import itertools
import logging
import os
import struct
from pathlib import Path

from store.base import file_bytes
from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.base.config import NAME_DIGITS
from store.base.results import ConsumeQueueUnit
from store.queues.consume_queue_ext import ADDRESS_MAX, ConsumeQueueExt
from store.queues.descriptors import DescriptorCache
from store.queues.scan import UNIT as UNIT
from store.queues.scan import scan_queue_file

logger = logging.getLogger(__name__)

FILLER_SIZE = 0x7FFFFFFF
FILLER = UNIT.pack(0, FILLER_SIZE, 0)
FILLER_LOOK_UNITS = 4096
FILLERS = FILLER * 4096  # so many are written together
EXT_LOOK_UNITS = 4096  # so many units may stand between one with an extension and the queue's end
_pack_unit = UNIT.pack
_unpack_place = struct.Struct(">qi").unpack_from  # how a unit begins


class ConsumeQueue:
    """Positions are indexes (queue offsets): `next_index` is the next message's, `min_index` that of the first kept."""

    __slots__ = (
        "_descriptors",
        "_end_before_tail",
        "_first_physical_offset",
        "_folder",
        "bases",
        "dirty",
        "doubted_below",
        "ext",
        "failed_end",
        "file_units",
        "floor_index",
        "has_residue",
        "is_torn",
        "looked_at",
        "min_index",
        "next_index",
        "queue_id",
        "tail",
        "tail_index",
        "topic",
        "written_index",
    )

    def __init__(
        self, folder: Path | str, topic: str, queue_id: int, file_bytes_each: int, descriptors: DescriptorCache
    ) -> None:
        self._folder = str(folder)  # a Path takes half a kilobyte, and there may be many ten thousand
        self.topic = topic
        self.queue_id = queue_id
        self.file_units = file_bytes_each // UNIT_BYTES
        self.bases: list[int] = []  # first index of each file, oldest first
        self.min_index = 0
        self.floor_index = 0  # min_index is not below: the topic's own retention says so
        self.next_index = 0
        self.tail = bytearray()
        self.tail_index = 0  # of the first unit in the tail; between `written_index` and it there are fillers alone
        self.written_index = 0  # units below it are in the files
        self.doubted_below = 0  # units below it were written by another run: a reader compares them with their records
        self.failed_end = 0  # of units that a write which failed may have left in files, behind `written_index`
        self._end_before_tail = 0  # of the last message whose unit is not in the tail
        self.dirty = False
        self.ext: ConsumeQueueExt | None = None
        self.is_torn = False  # load found units missing: a file with none, or some in between
        self.has_residue = False  # load did not see that all is empty behind the end
        self._first_physical_offset = -1  # of the first message, while nothing was cut since it was loaded
        self.looked_at: tuple[int, bytes] | None = None  # units of the files that were read last, and the first index
        self._descriptors = descriptors

    @property
    def folder(self) -> Path:
        return Path(self._folder)

    @property
    def max_physical_offset(self) -> int:
        """Where the last message ends; 0 when there is none."""
        if self.tail:
            position, size_bytes = _unpack_place(self.tail, len(self.tail) - UNIT_BYTES)
            if size_bytes != FILLER_SIZE:
                return int(position + size_bytes)
        return self._end_before_tail

    def append(self, physical_offset: int, size_bytes: int, tags_code: int) -> None:
        """Add the unit of the message with index `next_index`. Appender does the same for many units at once."""
        self.tail += _pack_unit(physical_offset, size_bytes, tags_code)
        self.next_index += 1

    def skip_to(self, index: int) -> None:
        """Fill up to this index, the next message's; an empty queue begins at the start of the file that holds it."""
        if self.next_index == 0:
            self.tail_index = self.next_index = self.written_index = index - index % self.file_units
            self.min_index = index
        self.trim(0)
        if self.tail:
            self.tail += FILLER * (index - self.next_index)
        else:
            self.tail_index = index
        self.next_index = index

    def read(self, index: int, count: int) -> bytes | bytearray:
        """Return the units from `index` on: `count` of them, fewer where a file or the queue ends."""
        if index >= self.tail_index:
            start = (index - self.tail_index) * UNIT_BYTES
            return self.tail[start : start + count * UNIT_BYTES]
        if index >= self.written_index:
            return FILLER * min(count, self.tail_index - index)
        base = index - index % self.file_units
        count = min(count, self.next_index - index, base + self.file_units - index, self.written_index - index)
        data = self._descriptors.read(self._path_text(base), count * UNIT_BYTES, (index - base) * UNIT_BYTES)
        return data[: len(data) - len(data) % UNIT_BYTES]

    def unit_at(self, index: int) -> ConsumeQueueUnit | None:
        """Return one unit, None when it is not (or no longer) there."""
        if not self.first_index <= index < self.next_index:
            return None
        data = self.read(index, 1)
        return ConsumeQueueUnit._make(UNIT.unpack(data)) if len(data) == UNIT_BYTES else None

    @property
    def first_index(self) -> int:
        """First index that has a unit, be it a filler or one whose message is gone."""
        return self.bases[0] if self.bases else self.tail_index

    @property
    def unit_count(self) -> int:
        """How many units the files have. One of several files may be missing."""
        return sum(min(base + self.file_units, self.written_index) - base for base in self.bases)

    def files_made(self, index: int) -> int:
        """Return how many files the units before `index` need, those included that have expired."""
        return -(-index // self.file_units)

    def path_of(self, base: int) -> Path:
        return Path(self._path_text(base))

    def _path_text(self, base: int) -> str:
        return f"{self._folder}/{base * UNIT_BYTES:0{NAME_DIGITS}d}"

    # -- writing -------------------------------------------------------------------------------------------------

    def pending(self) -> tuple[int, bytes]:
        """Return what the files lack from `written_index` on: how many fillers, and the units behind them."""
        behind = self.written_index - self.tail_index
        return max(-behind, 0), bytes(self.tail[max(behind, 0) * UNIT_BYTES :])

    def write_out(self, index: int, fillers: int, units: bytes) -> list[Path]:
        """Write both to the files they belong to, making new files; return those files. Runs on a thread."""
        whole, rest = divmod(fillers * UNIT_BYTES, len(FILLERS))
        paths = []
        for data in (*itertools.repeat(FILLERS, whole), FILLERS[:rest], units):
            paths += self._write(index, data)
            index += len(data) // UNIT_BYTES
        return paths

    def _write(self, index: int, data: bytes) -> list[Path]:
        paths = []
        position = 0
        while position < len(data):
            base = index - index % self.file_units
            part = data[position : position + (base + self.file_units - index) * UNIT_BYTES]
            path = self.path_of(base)
            try:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                fd = file_bytes.create_sized(path, self.file_units * UNIT_BYTES)
            try:
                file_bytes.write_all(fd, part, (index - base) * UNIT_BYTES)
            finally:
                os.close(fd)
            paths.append(path)
            position += len(part)
            index += len(part) // UNIT_BYTES
        return paths

    def written(self, end_index: int, keep_units: int) -> None:
        """Note that the files have everything below `end_index`; keep the last units in memory, drop the rest."""
        for base in range(self.written_index - self.written_index % self.file_units, end_index, self.file_units):
            if not self.bases or base > self.bases[-1]:
                self.bases.append(base)
        self.written_index = end_index
        self.trim(keep_units)

    def trim(self, keep_units: int) -> None:
        """Keep the last units of the written ones in memory, and all that the files lack."""
        drop = self.written_index - keep_units - self.tail_index
        if drop > 0:
            self._end_before_tail = self.max_physical_offset
            del self.tail[: drop * UNIT_BYTES]
            self.tail_index += drop

    # -- recovery ------------------------------------------------------------------------------------------------

    def load(self, synced_end: int = 0) -> None:
        """Find the files and the end of the valid units. Looks at the last three files, as RocketMQ does.

        Of messages below `synced_end` no unit is missing: what has so many units is not read unit by unit.
        """
        with os.scandir(self._folder) as entries:
            self.bases = sorted(int(entry.name) // UNIT_BYTES for entry in entries if _is_queue_file(entry))
        end = self.bases[0] if self.bases else 0
        self._leave_out_behind_gap()
        for base in self.bases[-3:]:
            found = scan_queue_file(self._path_text(base), self.file_units, synced_end)
            end = base + found.units
            if base == self.bases[0] and found.first is not None and found.first.size_bytes != FILLER_SIZE:
                self._first_physical_offset = found.first.physical_offset
            if found.last is not None and found.last.size_bytes != FILLER_SIZE:
                self._end_before_tail = found.last.physical_offset + found.last.size_bytes
            self.has_residue = found.has_residue
            self.is_torn |= found.has_hole
            if found.units < self.file_units:
                break
        self.next_index = self.tail_index = self.written_index = self.doubted_below = end
        if self.bases and self.bases[-1] >= end:
            self.is_torn = True  # a file comes into being with its first unit: that one is gone, maybe others
            self.cut(end)

    def _leave_out_behind_gap(self) -> None:
        """Where a file is missing in the middle, the queue ends for now: recovery rebuilds the rest from the log."""
        last = len(self.bases) - 1
        if last < 0 or self.bases[last] - self.bases[0] == last * self.file_units:
            return
        first = self.bases[0]
        kept = next(number for number, base in enumerate(self.bases) if base != first + number * self.file_units)
        logger.error(
            "consume queue files missing: rebuilt from the log",
            extra={
                "event": "queue_files_missing",
                "before": str(self.path_of(self.bases[kept])),
                "topic": self.topic,
                "queue_id": self.queue_id,
            },
        )
        for path in self.forget_files(self.bases[kept:]):
            path.unlink(missing_ok=True)
        file_bytes.sync_folder(self.folder)
        self.is_torn = True

    def load_ext(self, *, repair: bool) -> None:
        """Load the extension. With `repair`, end it behind the last unit that this queue refers to.

        Units at the queue's end whose extension is lost go too; recovery brings them back from the log.
        """
        assert self.ext is not None
        self.ext.load(only_read=not repair)
        if not repair:
            return
        index = self.next_index
        while (unit := self.unit_at(index - 1)) is not None and self.ext.is_lost(unit.tags_code):
            index -= 1
        if index < self.next_index:
            self.is_torn = True
            self.cut(index)
        for before in range(index - 1, max(self.first_index, index - EXT_LOOK_UNITS) - 1, -1):
            unit = self.unit_at(before)
            if unit is not None and unit.tags_code <= ADDRESS_MAX:
                self.ext.end_after(unit.tags_code)
                return
        self.ext.end_after_scan()

    def cut(self, index: int) -> None:
        """Drop all units from `index` on, and erase them on disk: a stale unit must not come back.

        What may fail is first: after an OSError the queue still has these units, so that they are cut once more.
        """
        self._first_physical_offset = -1
        self.looked_at = None
        last = self.unit_at(index - 1)
        if self.ext is not None and (first := self.unit_at(index)) is not None:
            self.ext.end_before(first.tags_code)
        end = min(index, self.written_index)
        if max(self.written_index, self.failed_end) > end or (self.bases and self.bases[-1] >= index):
            self._cut_files(end)
        self.failed_end = 0
        self.next_index = max(index, 0)
        if index >= self.tail_index:
            del self.tail[(index - self.tail_index) * UNIT_BYTES :]
        else:
            self.tail.clear()
            self.tail_index = index
        self.written_index = min(self.written_index, index)
        if not self.bases and not self.tail:
            self.next_index = self.tail_index = self.written_index = self.min_index = 0
        self.min_index = min(self.min_index, self.next_index)
        self._note_end(last)

    def rewind(self, physical_start: int) -> None:
        """Forget the units of messages at or behind `physical_start`: the log is about to say them again.

        After a crash those in the files can't be believed: of what was not synced, a power cut leaves any part, and of
        what a killed process wrote may not be on disk. The files are left to `erase_behind_end`.
        """
        if self.max_physical_offset <= physical_start:
            return
        low = self.first_at(physical_start, is_torn_before=False)
        if low < self.next_index:
            if self.ext is not None:
                kept = self.unit_at(low - 1)
                self.ext.end_after(kept.tags_code if kept is not None else None)
            self.next_index = self.tail_index = self.written_index = low
            self.looked_at = None
            self.min_index = min(self.min_index, low)
            self.tail.clear()
            self.has_residue = True
            self._note_end(self.unit_at(low - 1))

    def keep_what_is_same(self, end_index: int, had_residue: bool) -> None:
        """The log said again what the files hold up to `end_index`, and that is what they hold: leave them alone."""
        index, (fillers, units) = self.written_index, self.pending()
        said = FILLER * fillers + units
        if self.next_index < end_index or index > end_index:
            return  # the rest is erased, and written again where it has to be
        held = b""
        while index < end_index:
            base = index - index % self.file_units
            count = min(end_index, base + self.file_units) - index
            held += self._descriptors.read(self._path_text(base), count * UNIT_BYTES, (index - base) * UNIT_BYTES)
            index += count
        if said.startswith(held) and len(held) == (end_index - self.written_index) * UNIT_BYTES:
            self.written_index = end_index
            self.has_residue = had_residue
            self.trim(0)

    def erase_behind_end(self) -> bool:
        """Zero the files behind the last unit they are known to have; return whether that wrote. The caller syncs."""
        if self.has_residue:
            self._cut_files(self.written_index, sync=False)
            self.has_residue = False
            return True
        return False

    def cut_physical(self, physical_end: int) -> None:
        """Drop the units of messages at or behind the end of the commit log."""
        index = self.next_index
        while index > self.first_index:
            unit = self.unit_at(index - 1)
            if unit is not None and (unit.size_bytes == FILLER_SIZE or unit.physical_offset < physical_end):
                break
            index -= 1
        if index < self.next_index:
            self.cut(index)

    def correct_min(self, min_physical_offset: int) -> None:
        """Set `min_index` to the first unit whose message the commit log still has."""
        floor = min(self.floor_index, self.next_index)
        if min_physical_offset <= self._first_physical_offset:
            self.min_index = max(self.first_index, floor)
            return
        self.min_index = max(self.first_at(min_physical_offset), floor)

    def first_at(self, physical_offset: int, *, is_torn_before: bool = True) -> int:
        """Return the index of the first message at or behind a physical offset; `next_index` when there is none.

        is_torn_before: where a unit that is none stands.
        """
        end = self.next_index
        while True:
            low, high, before = self.first_index, end, None
            while low < high:
                middle = (low + high) // 2
                unit = self.unit_at(middle)
                if unit is None or unit.size_bytes <= 0:
                    is_before = is_torn_before
                else:
                    is_before = unit.size_bytes == FILLER_SIZE or unit.physical_offset < physical_offset
                if is_before:
                    low, before = middle + 1, unit
                else:
                    high = middle
            if before is None or before.size_bytes != FILLER_SIZE:
                return low
            # Fillers have no place in the log. Where messages were lost, living ones may stand before the fillers.
            last = self._last_message_before(low)
            if last < 0 or self._is_before(last, physical_offset):
                return low
            end = last + 1

    def _last_message_before(self, end: int, least: int = 0) -> int:
        """Return the index of the last unit before `end` that is no filler, -1 when there is none down to `least`."""
        least = max(least, self.first_index)
        while end > least:
            base = end - 1 - (end - 1) % self.file_units
            edges = (edge for edge in (self.written_index, self.tail_index) if edge < end)  # no read goes over them
            start = max(least, base, end - FILLER_LOOK_UNITS, *edges)
            data = bytes(self.read(start, end - start))
            if data != FILLER * (end - start):
                units = list(UNIT.iter_unpack(data))
                for index in range(len(units) - 1, -1, -1):
                    if units[index][1] != FILLER_SIZE:
                        return start + index
            end = start
        return -1

    def _is_before(self, index: int, physical_offset: int) -> bool:
        unit = self.unit_at(index)
        return unit is None or unit.physical_offset < physical_offset

    def raise_min(self, index: int) -> None:
        """Let no unit before `index` be read any more, until that is taken back or the queue is loaded again."""
        self.floor_index = max(self.floor_index, min(index, self.next_index))
        self.min_index = max(self.min_index, self.floor_index)

    def forget_raised_min(self, min_physical_offset: int) -> None:
        """Let all units be read whose messages the commit log still has."""
        self.floor_index = 0
        self.correct_min(min_physical_offset)

    def expired_files(self, min_physical_offset: int) -> list[int]:
        """Return the bases of leading files, never the last, whose messages are all gone from the commit log."""
        expired = []
        for base in self.bases[:-1]:
            last = self.unit_at(base + self.file_units - 1)
            if last is None:
                break
            if last.size_bytes == FILLER_SIZE:  # messages were lost: it is the one before them that counts
                index = self._last_message_before(base + self.file_units, base)
                if index >= 0 and not self._is_before(index, min_physical_offset):
                    break
            elif last.physical_offset >= min_physical_offset:
                break
            expired.append(base)
        return expired

    def forget_files(self, bases: list[int]) -> list[Path]:
        """Take files out of the queue; return their paths, to be deleted by the caller."""
        if bases:
            self._first_physical_offset = -1
            self.looked_at = None
        paths = [self.path_of(base) for base in bases]
        for path in paths:
            self._descriptors.forget(str(path))
        self.bases = [base for base in self.bases if base not in bases]
        return paths

    def _note_end(self, last: ConsumeQueueUnit | None) -> None:
        self._end_before_tail = (
            last.physical_offset + last.size_bytes if last is not None and last.size_bytes != FILLER_SIZE else 0
        )

    def _cut_files(self, index: int, *, sync: bool = True) -> None:
        first = self.written_index - self.written_index % self.file_units
        may_be_made = range(first, self.failed_end, self.file_units)
        behind = [base for base in sorted({*self.bases, *may_be_made}) if base >= index]
        for base in reversed(behind):  # what a failure leaves has no gap
            self.path_of(base).unlink(missing_ok=True)
        if behind and sync and self.folder.is_dir():
            file_bytes.sync_folder(self.folder)
        self.forget_files(behind)  # once all are gone: a cut that failed is repeated
        if self.bases and index < self.bases[-1] + self.file_units:
            self._zero(self.bases[-1], index, sync=sync)

    def _zero(self, base: int, index: int, *, sync: bool) -> None:
        with file_bytes.closed_after(os.open(self.path_of(base), os.O_RDWR | os.O_CLOEXEC)) as fd:
            file_bytes.zero_range(fd, (index - base) * UNIT_BYTES, self.file_units * UNIT_BYTES)
            if sync:
                os.fdatasync(fd)


def _is_queue_file(entry: os.DirEntry[str]) -> bool:
    return entry.name.isdecimal() and len(entry.name) == NAME_DIGITS and entry.is_file()
