"""Cuts the unread part of a commit log into ranges of about one size, so that several cores read one file.

A file's start is a record boundary; every other one has to be found. A record holds its own physical offset, so bytes
that do are most likely a record; but a producer may have put such bytes into a body. A boundary found here is therefore
only proposed: the reader of the range before it must arrive exactly there, and the ranges are committed in order.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from gantrymq.contrib.arrow.record_blocks import LogFile, RecordScan

SEARCH_BYTES = 8 << 20  # two records of the largest size; without a boundary in them the file is not cut there
_WINDOW_BYTES = 1 << 16
_MAGIC = re.compile(rb"\xda\xa3\x20[\xa7\xab]")  # of both formats
_MAGIC_AT, _OFFSET_AT, _OFFSET_END = 4, 28, 36
_OFFSET = struct.Struct(">q")


class LogPiece(NamedTuple):
    """A part of one commit-log file, from a record boundary to another."""

    file: LogFile
    begin: int
    end: int

    @property
    def size_bytes(self) -> int:
        return self.end - self.begin

    @property
    def begins_file(self) -> bool:
        return self.begin == self.file.start


LogRange = tuple[LogPiece, ...]  # pieces that follow each other: the work of one task


def ranges_of(
    files: Sequence[LogFile], begin: int, end: int, *, range_bytes: int, uncut: Collection[int] = ()
) -> Iterator[LogRange]:
    """Yield the log between two record boundaries in ranges. `uncut`: starts of files that are not to be cut."""
    pieces: list[LogPiece] = []
    for file in files:
        position, file_end = max(begin, file.start), min(end, file.end)
        while position < file_end:
            room_bytes = range_bytes - sum(piece.size_bytes for piece in pieces)
            stop = file_end
            if file_end - position > room_bytes + range_bytes // 4 and file.start not in uncut:
                stop = find_boundary(file, position + room_bytes, file_end) or file_end
            pieces.append(LogPiece(file, position, stop))
            position = stop
            if sum(piece.size_bytes for piece in pieces) >= range_bytes - range_bytes // 4:
                yield tuple(pieces)
                pieces = []
    if pieces:
        yield tuple(pieces)


def find_boundary(file: LogFile, position: int, limit: int) -> int | None:
    """The first place from `position` on, before `limit`, where a record seems to begin; None when none is near."""
    return next_record(file, position, min(position + SEARCH_BYTES, limit))


def next_record(file: LogFile, position: int, limit: int) -> int | None:
    """As find_boundary, however far the search goes."""
    try:
        with file.path.open("rb", buffering=0) as opened:
            for begin in range(position, limit, _WINDOW_BYTES):
                data = os.pread(opened.fileno(), _WINDOW_BYTES + _OFFSET_END, begin - file.start)
                for match in _MAGIC.finditer(data):
                    at = match.start() - _MAGIC_AT
                    if at >= 0 and begin + at < limit and _is_record(file, data, at, begin + at):
                        return begin + at
    except FileNotFoundError:  # deleted just now; the task will notice
        return None
    return None


def _is_record(file: LogFile, data: bytes, at: int, physical_offset: int) -> bool:
    """Whether the bytes say that they stand there, and the rest of the record agrees."""
    if data[at + _OFFSET_AT : at + _OFFSET_END] != _OFFSET.pack(physical_offset):
        return False
    return any(len(block) for block in RecordScan(file, physical_offset, block_bytes=_WINDOW_BYTES))
