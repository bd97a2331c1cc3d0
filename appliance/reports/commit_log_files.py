"""Where a store's commit log begins and ends, found from its files alone, while the broker may be writing to them.

The broker has no way to tell us its flushed position without being asked, and a report must also work on the folder
of a stopped or foreign broker. So the end is found from the bytes: files whose successor has begun are complete, and
the last one is followed from a known boundary to the first bytes that are no record. Files are preallocated and
sparse (1 GiB, mostly a hole); reading stops within one small block of the end. The newest few MiB are checked by
their body CRC too, because a record that is being copied into place right now may already have its head.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from appliance.reports.errors import BrokenRecordChain, StoreUnreadable
from appliance.reports.record_blocks import BLOCK_BYTES, LogFile, RecordBlock, RecordScan, ScanEnd

TAIL_BYTES_CHECKED = 4 << 20  # no write is larger than one batch, and a batch is at most 4 MiB
TAIL_BLOCK_BYTES = 1 << 20  # how far a search for the end may read into the hole behind it

_FILE_NAME = re.compile(r"\d{20}")


class RecordMark(NamedTuple):
    """Enough of one record to see later whether it is still the same."""

    physical_offset: int
    store_timestamp: int
    body_crc: int


class CommitLogFiles:
    """The commit log in one or more folders (RocketMQ allows several, joined by file name)."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = list(folders)

    def files(self) -> list[LogFile]:
        """All files in order. Raises StoreUnreadable when all folders, or a file in the middle, are missing.

        A broker makes a folder with the first file that goes there, so one of several may be still to come.
        """
        folders = [folder for folder in self.folders if folder.is_dir()]
        if not folders:
            raise StoreUnreadable(f"{', '.join(map(str, self.folders))}: no such commit-log folder")
        found = sorted((file for folder in folders for file in _files_of(folder)), key=lambda file: file.start)
        for file, following in pairwise(found):
            if file.end != following.start:
                raise StoreUnreadable(
                    f"{file.path}: the next commit-log file is {following.path.name}, not {file.end:020}"
                )
        return found

    def begun_files(self) -> list[LogFile]:
        """The files that hold records: those before the first one without a valid record at its start."""
        files = self.files()
        while files and not _has_begun(files[-1]):
            files.pop()  # the broker prepares the next file, or two, ahead of time
        return files

    def valid_end(self, known_boundary: int = 0) -> int:
        """Physical offset behind the last valid record; the next file's start when a blank closes the last file.

        `known_boundary` is a record boundary from an earlier call: the search starts there when it lies in the last
        file.
        """
        files = self.begun_files()
        if not files:
            every = self.files()
            return every[0].start if every else 0
        last = files[-1]
        scan = RecordScan(last, max(last.start, min(known_boundary, last.end)), block_bytes=TAIL_BLOCK_BYTES)
        recent: deque[RecordBlock] = deque()
        for block in scan:
            recent.append(block)
            while len(recent) > 1 and recent[1].physical_offset[0] < scan.position - TAIL_BYTES_CHECKED:
                recent.popleft()
        torn = _first_torn(recent)
        if torn is not None:
            return torn
        return last.end if scan.ended is ScanEnd.BLANK else scan.position

    def mark_at(self, physical_offset: int) -> RecordMark | None:
        """The record at this offset; None when the file is gone (expired) or no valid record stands there."""
        for file in self.files():
            if file.start <= physical_offset < file.end:
                for block in RecordScan(file, physical_offset, block_bytes=1 << 16):
                    return RecordMark(physical_offset, int(block.store_timestamp[0]), int(block.body_crc[0]))
        return None


def read_range(file: LogFile, begin: int, end: int, *, block_bytes: int = BLOCK_BYTES) -> Iterator[RecordBlock]:
    """Yield the records of a range that was found valid before. Raises BrokenRecordChain when it is not so any more."""
    scan = RecordScan(file, begin, end, block_bytes=block_bytes)
    yield from scan
    closed_by_blank = scan.ended is ScanEnd.BLANK and end == file.end
    if scan.position != end and not closed_by_blank:
        raise BrokenRecordChain(str(file.path), scan.position)


def _files_of(folder: Path) -> Iterator[LogFile]:
    for path in folder.iterdir():
        if _FILE_NAME.fullmatch(path.name):
            with contextlib.suppress(FileNotFoundError):  # the broker deletes its oldest file just now
                yield LogFile(path, int(path.name), path.stat().st_size)


def _has_begun(file: LogFile) -> bool:
    """Whether a record, or the blank that a too large one left, stands at the file's start."""
    scan = RecordScan(file, file.start, block_bytes=1 << 16)
    return any(len(block) for block in scan) or scan.ended is ScanEnd.BLANK


def _first_torn(blocks: Iterable[RecordBlock]) -> int | None:
    """Physical offset of the first record whose body does not fit its CRC, among the newest ones."""
    for block in blocks:
        data = block.buffer.data
        for at, size, crc, offset in zip(
            block.body_at.tolist(),
            block.body_bytes.tolist(),
            block.body_crc.tolist(),
            block.physical_offset.tolist(),
            strict=True,
        ):
            if size and zlib.crc32(data[at : at + size]) & 0x7FFFFFFF != crc:
                return int(offset)
    return None
