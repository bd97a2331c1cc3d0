"""One look at a consume-queue file: how many units it has, its first and last, and whether the rest is empty.

A start does this for every queue, up to many ten thousand, so it must take few system calls: one descriptor, one page
for a short queue, halving for a long one.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import NamedTuple

from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.base.config import PAGE_BYTES
from store.base.results import ConsumeQueueUnit

UNIT = struct.Struct(">qiq")
FIRST_LOOK_UNITS = PAGE_BYTES // UNIT_BYTES
SCAN_UNITS = 4096


class QueueFile(NamedTuple):
    """What stands in a file: so many valid units from its start on."""

    units: int
    first: ConsumeQueueUnit | None
    last: ConsumeQueueUnit | None
    has_residue: bool  # something stands behind the last unit, or it is not known
    has_hole: bool = False  # what stands behind are units of messages that the store had: one in between is damaged


def scan_queue_file(path: str, file_units: int, synced_end: int) -> QueueFile:
    """Look at a file. Units of messages below `synced_end` are there without a gap; behind them each is looked at."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        page = os.pread(fd, min(FIRST_LOOK_UNITS, file_units) * UNIT_BYTES, 0)
        units = len(page) // UNIT_BYTES
        count = _count_valid(page)
        if count == units < file_units and units:
            count = _count_further(fd, count, file_units, synced_end)
        if not count:
            return QueueFile(0, None, None, True)
        first = _unit(page, 0)
        last = _unit(page, count - 1) if count <= units else _read_unit(fd, count - 1)
        residue_at = _find_residue(fd, count * UNIT_BYTES)
        known_to = last.physical_offset + last.size_bytes if last is not None else 0
        has_hole = residue_at is not None and residue_at >= 0 and _has_units(fd, residue_at, known_to, synced_end)
        return QueueFile(count, first, last, residue_at is None or residue_at >= 0, has_hole)
    finally:
        os.close(fd)


def _count_valid(data: bytes) -> int:
    count = 0
    for physical_offset, size_bytes, _tags_code in UNIT.iter_unpack(data[: len(data) - len(data) % UNIT_BYTES]):
        if physical_offset < 0 or size_bytes <= 0:
            break
        count += 1
    return count


def _count_further(fd: int, count: int, file_units: int, synced_end: int) -> int:
    """The first `count` units are valid: find the first that is not."""
    if _is_below(_read_unit(fd, file_units - 1), synced_end):
        return file_units
    high = file_units - 1
    while count < high:
        middle = (count + high) // 2
        if _is_below(_read_unit(fd, middle), synced_end):
            count = middle + 1
        else:
            high = middle
    while True:
        data = os.pread(fd, SCAN_UNITS * UNIT_BYTES, count * UNIT_BYTES)
        found = _count_valid(data)
        count += found
        if found < SCAN_UNITS:
            return count


def _find_residue(fd: int, end: int) -> int | None:
    """Return where anything but zeros may stand behind the end, -1 for nowhere, None when the file system can't tell.

    Pages that were never written are holes.
    """
    page_end = -(-end // PAGE_BYTES) * PAGE_BYTES
    behind = os.pread(fd, page_end - end, end)
    if behind != bytes(len(behind)):
        return end
    try:
        return os.lseek(fd, page_end, os.SEEK_DATA)
    except OSError as exc:
        return -1 if exc.errno == errno.ENXIO else None


def _has_units(fd: int, position: int, low: int, high: int) -> bool:
    """Return whether units of messages between two physical offsets stand from `position` on."""
    position -= position % UNIT_BYTES
    while data := os.pread(fd, SCAN_UNITS * UNIT_BYTES, position):
        for physical_offset, size_bytes, _tags_code in UNIT.iter_unpack(data[: len(data) - len(data) % UNIT_BYTES]):
            if low <= physical_offset and size_bytes > 0 and physical_offset + size_bytes <= high:
                return True
        position += len(data)
    return False


def _unit(data: bytes, index: int) -> ConsumeQueueUnit:
    return ConsumeQueueUnit._make(UNIT.unpack_from(data, index * UNIT_BYTES))


def _read_unit(fd: int, index: int) -> ConsumeQueueUnit | None:
    data = os.pread(fd, UNIT_BYTES, index * UNIT_BYTES)
    return _unit(data, 0) if len(data) == UNIT_BYTES else None


def _is_below(unit: ConsumeQueueUnit | None, physical_end: int) -> bool:
    return unit is not None and 0 <= unit.physical_offset < physical_end and unit.size_bytes > 0
