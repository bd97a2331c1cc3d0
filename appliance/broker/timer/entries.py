"""One waiting message: when it is due and where it lies. 32 bytes on disk, 20 in memory.

The size of one that recalls another (recalls.py) is negative.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

HEAD = struct.Struct(">qqqi")  # due time in ms, offset in the timer's queue, physical offset, bytes of the record
CHECK = struct.Struct(">I")  # CRC-32 of the head: what a power cut left behind is no entry
ENTRY_BYTES = HEAD.size + CHECK.size
PLACE = struct.Struct(">qqi")  # the head without the due time

_crc32 = zlib.crc32


class Place(NamedTuple):
    """Where a waiting message lies."""

    queue_offset: int
    physical_offset: int
    size_bytes: int


class Entry(NamedTuple):
    """A waiting message."""

    due_ms: int
    queue_offset: int
    physical_offset: int
    size_bytes: int


def pack_entry(due_ms: int, queue_offset: int, physical_offset: int, size_bytes: int) -> bytes:
    head = HEAD.pack(due_ms, queue_offset, physical_offset, size_bytes)
    return head + CHECK.pack(_crc32(head))


def unpack_entries(data: bytes) -> Iterator[Entry]:
    """Yield the entries of a run of them; what is none is left out."""
    whole = len(data) - len(data) % ENTRY_BYTES
    for at in range(0, whole, ENTRY_BYTES):
        head = data[at : at + HEAD.size]
        if CHECK.unpack_from(data, at + HEAD.size)[0] == _crc32(head):
            yield Entry._make(HEAD.unpack(head))
