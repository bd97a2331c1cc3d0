"""Finds the begin and the end of a store's commit log from its files, while the broker may be writing to them.

A report must also work on the folder of a stopped broker, or of another make, so it can't ask the broker for its
position. The end is found from the bytes: a file is complete when the next one has begun, and the last file is scanned
from a known record boundary to the first bytes that are no record. Files are preallocated and sparse (1 GiB, mostly a
hole); the scan reads at most one small block beyond the end. The newest few MiB are also checked by their body CRC,
because a record that the broker is just writing may already have a valid header.
"""

from __future__ import annotations

import contextlib
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from appliance.reports.errors import BrokenRecordChain, StoreUnreadable
from gantrymq.contrib.arrow.log_files import LogUnreadable, log_files
from gantrymq.contrib.arrow.record_blocks import BLOCK_BYTES, LogFile, RecordBlock, RecordScan, ScanEnd
from gantrymq.contrib.arrow.record_search import find_boundary

TAIL_BYTES_CHECKED = 4 << 20  # no write is larger than one batch, and a batch is at most 4 MiB
TAIL_BLOCK_BYTES = 1 << 20  # the most that a search for the end reads of the hole after it


class RecordMark(NamedTuple):
    """Identifies a record, to check later whether it is still the same."""

    physical_offset: int
    store_timestamp: int
    body_crc: int


class CommitLogFiles:
    """The commit log in one or more folders (RocketMQ allows several, joined by file name)."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = list(folders)

    def files(self) -> list[LogFile]:
        """All files in order. Raises StoreUnreadable when all folders, or a file in the middle, are missing."""
        try:
            return log_files(self.folders)
        except LogUnreadable as missing:
            raise StoreUnreadable(str(missing)) from missing

    def begun_files(self) -> list[LogFile]:
        """The files that hold records: those before the first one without a valid record at its start."""
        files = self.files()
        while files and not _has_begun(files[-1]):
            files.pop()  # the broker creates the next one or two files in advance
        return files

    def valid_end(self, known_boundary: int = 0) -> int:
        """Physical offset after the last valid record; the next file's start when a blank record ends the last file.

        `known_boundary` is a record boundary from an earlier call: the scan starts there if it is in the last file.
        """
        files = self.begun_files()
        if not files:
            every = self.files()
            return every[0].start if every else 0
        last = files[-1]
        # Only the last blocks are kept for the CRC check: an older record has been complete for long.
        recent: deque[RecordBlock] = deque()
        begin: int | None = max(last.start, min(known_boundary, last.end))
        while begin is not None:
            scan = RecordScan(last, begin, block_bytes=TAIL_BLOCK_BYTES)
            for block in scan:
                recent.append(block)
                while len(recent) > 1 and recent[1].physical_offset[0] < scan.position - TAIL_BYTES_CHECKED:
                    recent.popleft()
            begin = _behind_damage(last, scan)
        torn = _first_torn(recent)
        if torn is not None:
            return torn
        return last.end if scan.ended is ScanEnd.BLANK else scan.position

    def mark_at(self, physical_offset: int) -> RecordMark | None:
        """The record at this offset; None when its file has expired, or when there is no valid record."""
        for file in self.files():
            if file.start <= physical_offset < file.end:
                with contextlib.suppress(FileNotFoundError):
                    for block in RecordScan(file, physical_offset, block_bytes=1 << 16):
                        return RecordMark(physical_offset, int(block.store_timestamp[0]), int(block.body_crc[0]))
        return None


def read_range(file: LogFile, begin: int, end: int, *, block_bytes: int = BLOCK_BYTES) -> Iterator[RecordBlock]:
    """Yield the records of a range that was valid before. Raises BrokenRecordChain when it no longer is."""
    scan = RecordScan(file, begin, end, block_bytes=block_bytes)
    yield from scan
    closed_by_blank = scan.ended is ScanEnd.BLANK and end == file.end
    if scan.position != end and not closed_by_blank:
        raise BrokenRecordChain(str(file.path), scan.position)


def _has_begun(file: LogFile) -> bool:
    """Whether the file begins with a record, or with a blank (the first record was too large for the file)."""
    scan = RecordScan(file, file.start, block_bytes=1 << 16)
    return any(len(block) for block in scan) or scan.ended is ScanEnd.BLANK


def _behind_damage(file: LogFile, scan: RecordScan) -> int | None:
    """Where records go on in the log's last file behind bytes that are none; None when its end is reached.

    A broker that writes meanwhile may have completed what was no record yet: then they go on right there.
    """
    if scan.ended is not ScanEnd.INVALID:
        return None
    at = scan.position
    behind = find_boundary(file, at + 1, file.end)
    return at if behind is not None and find_boundary(file, at, at + 1) == at else behind


def _first_torn(blocks: Iterable[RecordBlock]) -> int | None:
    """Physical offset of the first record from which on none has a right body CRC; None when the last one has.

    A broker writes one after the other: a wrong body before a right one is damage, and no reader of heads minds it.
    """
    torn: int | None = None
    for block in blocks:
        data = block.buffer.data
        for at, size, crc, offset in zip(
            block.body_at.tolist(),
            block.body_bytes.tolist(),
            block.body_crc.tolist(),
            block.physical_offset.tolist(),
            strict=True,
        ):
            if not size or zlib.crc32(data[at : at + size]) & 0x7FFFFFFF == crc:
                torn = None
            elif torn is None:
                torn = int(offset)
    return torn
