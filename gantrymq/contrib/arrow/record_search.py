"""Where records go on in a commit-log file, from a place that is no record boundary: a cut, or damage.

A record holds its own physical offset, so bytes that do are most likely a record; but a producer may have put such
bytes into a body.
"""

from __future__ import annotations

import os
import re
import struct

from gantrymq.contrib.arrow.record_blocks import LogFile, RecordScan

SEARCH_BYTES = 8 << 20  # two records of the largest size
_WINDOW_BYTES = 1 << 16
_MAGIC = re.compile(rb"\xda\xa3\x20[\xa7\xab]")  # of both formats
_MAGIC_AT, _OFFSET_AT, _OFFSET_END = 4, 28, 36
_OFFSET = struct.Struct(">q")


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
