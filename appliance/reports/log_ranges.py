"""Cuts the unread part of a commit log into ranges of about one size, so that several cores read one file.

A file's start is a record boundary; every other one has to be found, and one that is found is only proposed: the reader
of the range before it must arrive exactly there, and the ranges are committed in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from gantrymq.contrib.arrow.record_blocks import LogFile
from gantrymq.contrib.arrow.record_search import find_boundary


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
