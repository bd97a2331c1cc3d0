"""Units of the consume queue extension: what a plain unit has no room for (RocketMQ: ConsumeQueueExt).

    i16 size of the unit    i64 tags code or due time    i64 store timestamp ms    i16 bitmap length    bitmap

The queue's third field then holds the address: the position in the extension plus -2**63. A file ends with i16 -1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from store.base.config import NAME_DIGITS
from store.inspect.files import NumberedFile, numbered_files
from store.queues.descriptors import DescriptorCache

HEAD = struct.Struct(">hqqh")
SIZE = struct.Struct(">h")
ADDRESS_BASE = -(1 << 63)
ADDRESS_MAX = -(1 << 31) - 1  # any third field up to this is an address
END_OF_FILE = -1


class ExtUnit(NamedTuple):
    """`position` counts bytes from the start of the whole extension."""

    position: int
    size_bytes: int
    tags_code: int
    store_timestamp: int
    bitmap: bytes


def is_address(tags_code: int) -> bool:
    return tags_code <= ADDRESS_MAX


class ExtReader:
    """The extension of one queue."""

    def __init__(self, folder: Path, reader: DescriptorCache) -> None:
        self.folder = folder
        self.files: list[NumberedFile] = numbered_files([folder], NAME_DIGITS)
        self._reader = reader

    def unit_of(self, tags_code: int) -> ExtUnit | None:
        """Return the unit that a queue's third field names, None when no unit can stand there."""
        return self.unit_at(tags_code - ADDRESS_BASE)

    def unit_at(self, position: int) -> ExtUnit | None:
        for file in self.files:
            if file.base <= position < file.end:
                head = self._reader.read(file.path, HEAD.size, position - file.base)
                if len(head) < HEAD.size:
                    return None
                size, tags_code, timestamp, bitmap_bytes = HEAD.unpack(head)
                if size < HEAD.size or bitmap_bytes < 0 or size != HEAD.size + bitmap_bytes:
                    return None
                if position + size > file.end:
                    return None
                bitmap = self._reader.read(file.path, bitmap_bytes, position - file.base + HEAD.size)
                return ExtUnit(position, size, tags_code, timestamp, bitmap)
        return None

    def units(self) -> Iterator[ExtUnit]:
        """Yield the units from the first file on, up to the first bytes that are none."""
        for file in self.files:
            position = file.base
            while position + SIZE.size <= file.end:
                unit = self.unit_at(position)
                if unit is None:
                    (size,) = SIZE.unpack(self._reader.read(file.path, SIZE.size, position - file.base))
                    if size == END_OF_FILE:
                        break
                    return
                yield unit
                position += unit.size_bytes
