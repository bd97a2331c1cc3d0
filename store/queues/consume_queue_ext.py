"""The extension of a consume queue: store time and filter bits of each message, which a 20-byte unit has no room for.

RocketMQ keeps it with enableConsumeQueueExt. The unit's third field is then an address here (position - 2**63) in place
of the tags code, which stands here. New units collect in memory and are written before the queue's own units, by the
same thread; so a unit in the queue's files has its extension, but for what a power cut took.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import NamedTuple

from store.base import file_bytes
from store.base.config import NAME_DIGITS
from store.base.errors import StoreDamaged
from store.queues.descriptors import DescriptorCache

HEAD = struct.Struct(">hqqh")  # size of the whole unit, tags code or due time, store timestamp ms, bytes of the bit map
SIZE = struct.Struct(">h")
END_MARK = SIZE.pack(-1)  # the rest of the file is empty
END_BYTES = 4  # kept free for the mark
UNIT_BYTES_MAX = 32767
ADDRESS_BASE = -(1 << 63)
ADDRESS_MAX = -(1 << 31) - 1  # a third field this low is an address: tags codes have 32 bits


class ExtUnit(NamedTuple):
    """What belongs to one message."""

    size_bytes: int
    tags_code: int
    store_timestamp: int
    bitmap: bytes


class ConsumeQueueExt:
    """One queue's extension. `position` is where the next unit goes, counted through all files."""

    __slots__ = (
        "_descriptors",
        "_only_read",
        "_tail",
        "_tail_start",
        "_written_to",
        "bases",
        "file_bytes",
        "folder",
        "position",
    )

    def __init__(self, folder: Path, file_bytes_each: int, descriptors: DescriptorCache) -> None:
        self.folder = folder
        self.file_bytes = file_bytes_each
        self.bases: list[int] = []
        self.position = 0
        self._tail = bytearray()  # from _tail_start on
        self._tail_start = 0
        self._written_to = 0  # below it the files have everything
        self._descriptors = descriptors
        self._only_read = False

    def append(self, tags_code: int, store_timestamp: int, bitmap: bytes = b"") -> int:
        """Add a unit; return its address, or the tags code itself when no file could hold the unit."""
        size = HEAD.size + len(bitmap)
        if size > min(UNIT_BYTES_MAX, self.file_bytes - END_BYTES):
            return tags_code
        room = self.file_bytes - self.position % self.file_bytes
        if size > room - END_BYTES:
            self._tail += END_MARK.ljust(room, b"\0")
            self.position += room
        address = ADDRESS_BASE + self.position
        self._tail += HEAD.pack(size, tags_code, store_timestamp, len(bitmap)) + bitmap
        self.position += size
        return address

    def unit(self, address: int) -> ExtUnit | None:
        """Return what the third field of a queue's unit stands for; None when there is nothing."""
        position = address - ADDRESS_BASE
        if address > ADDRESS_MAX or position >= self.position:
            return None
        head = self._read(position, HEAD.size)
        if len(head) < HEAD.size:
            return None
        size, tags_code, store_timestamp, bitmap_bytes = HEAD.unpack(head)
        if bitmap_bytes < 0 or size != HEAD.size + bitmap_bytes:
            return None
        bitmap = bytes(self._read(position + HEAD.size, bitmap_bytes)) if bitmap_bytes else b""
        return ExtUnit(size, tags_code, store_timestamp, bitmap) if len(bitmap) == bitmap_bytes else None

    def is_lost(self, tags_code: int) -> bool:
        """Return whether this third field of a unit is an address where nothing stands."""
        return tags_code <= ADDRESS_MAX and self.unit(tags_code) is None

    # -- writing -------------------------------------------------------------------------------------------------

    def write_out(self) -> list[Path]:
        """Write what the files lack, and return those files. Runs on a thread, while the loop may append."""
        start, stop = self._written_to, self.position
        data = bytes(self._tail[start - self._tail_start : stop - self._tail_start])
        paths = []
        at = 0
        while at < len(data):
            base = (start + at) - (start + at) % self.file_bytes
            part = data[at : at + base + self.file_bytes - start - at]
            path = self.path_of(base)
            with file_bytes.closed_after(file_bytes.create_sized(path, self.file_bytes)) as fd:
                file_bytes.write_all(fd, part, start + at - base)
            paths.append(path)
            at += len(part)
        self._written_to = stop
        return paths

    def written(self) -> None:
        """Release what the files have. On the loop, while no thread writes."""
        for base in range(self._tail_start - self._tail_start % self.file_bytes, self._written_to, self.file_bytes):
            if not self.bases or base > self.bases[-1]:
                self.bases.append(base)
        del self._tail[: self._written_to - self._tail_start]
        self._tail_start = self._written_to

    # -- life ----------------------------------------------------------------------------------------------------

    def load(self, *, only_read: bool) -> None:
        """Find the files. The end of the last counts as the end, until `end_after` or `end_after_scan` knows better."""
        self._only_read = only_read
        if self.folder.is_dir():
            self.bases = sorted(
                int(path.name)
                for path in self.folder.iterdir()
                if path.name.isdecimal() and len(path.name) == NAME_DIGITS and path.is_file()
            )
        for base in self.bases:
            size = self.path_of(base).stat().st_size
            if only_read and base == self.bases[0] and size >= HEAD.size:
                self.file_bytes = size  # a reader need not know the settings of the writer
            elif size != self.file_bytes:
                raise StoreDamaged(
                    str(self.path_of(base)),
                    f"is {size} bytes long, mappedFileSizeConsumeQueueExt says {self.file_bytes}; set that to the "
                    "file's length",
                )
        self._set_end(self.bases[-1] + self.file_bytes if self.bases else 0)

    def end_after(self, tags_code: int | None) -> None:
        """The queue's last unit has this third field: erase what lies behind. None: the queue has no unit.

        A plain code says nothing, and neither does an address where nothing stands.
        """
        if self._only_read:
            return
        if tags_code is None:
            self._cut(self.bases[0] if self.bases else 0)
        elif (unit := self.unit(tags_code)) is not None:
            self._cut(tags_code - ADDRESS_BASE + unit.size_bytes)

    def end_before(self, tags_code: int) -> None:
        """The queue drops the unit that has this third field, and all behind it: drop what belonged to them."""
        if tags_code <= ADDRESS_MAX and not self._only_read and tags_code - ADDRESS_BASE < self.position:
            self._cut(tags_code - ADDRESS_BASE)

    def end_after_scan(self) -> None:
        """The queue refers to none: go on where the units end, as RocketMQ does."""
        end = self.bases[0] if self.bases else 0
        for base in self.bases:
            if base > end:
                break
            end = base
            data = self._read(base, self.file_bytes)
            while end - base + SIZE.size <= len(data) and (size := SIZE.unpack_from(data, end - base)[0]) > 0:
                end += size
            if data[end - base : end - base + SIZE.size] == END_MARK:
                end = base + self.file_bytes
        self._cut(end)

    def forget_before(self, address: int) -> list[Path]:
        """Take out the files whose units all lie before this one; return their paths, to be deleted."""
        position = address - ADDRESS_BASE if address <= ADDRESS_MAX else 0
        gone = [base for base in self.bases[:-1] if base + self.file_bytes <= position]
        self.bases = self.bases[len(gone) :]
        return self._forget(gone)

    def path_of(self, base: int) -> Path:
        return self.folder / f"{base:0{NAME_DIGITS}d}"

    def close(self) -> None:
        """Close the files, before they are deleted."""
        self._forget(self.bases)

    def _read(self, position: int, size_bytes: int) -> bytes | bytearray:
        if position >= self._tail_start:
            start = position - self._tail_start
            return self._tail[start : start + size_bytes]
        base = position - position % self.file_bytes
        return self._descriptors.read(self.path_of(base), size_bytes, position - base)

    def _cut(self, end: int) -> None:
        gone = [base for base in self.bases if base >= end]
        for path in self._forget(gone):
            path.unlink(missing_ok=True)
        self.bases = self.bases[: len(self.bases) - len(gone)]
        base = end - end % self.file_bytes
        path = self.path_of(base)
        if base in self.bases and any(self._descriptors.read(path, SIZE.size, end - base)):  # a unit of the past
            with file_bytes.closed_after(os.open(path, os.O_RDWR | os.O_CLOEXEC)) as fd:
                file_bytes.zero_range(fd, end - base, self.file_bytes)
                os.fdatasync(fd)
        self._set_end(end)  # last: a cut that failed is repeated

    def _set_end(self, end: int) -> None:
        self._tail.clear()
        self.position = self._tail_start = self._written_to = end

    def _forget(self, bases: list[int]) -> list[Path]:
        paths = [self.path_of(base) for base in bases]
        for path in paths:
            self._descriptors.forget(path)
        return paths


def delete_files(paths: list[Path]) -> None:
    """Delete files; one that can't be deleted stays and does no harm. Blocks: for a thread."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
