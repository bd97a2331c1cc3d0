"""One file of the key index, read only; and how many slots it has, found from its bytes.

The file does not say its number of slots. Its length gives the entries once the slots are known. The last entry must
end at the last byte that is not zero, and positions of entries are all equal modulo 20: that leaves one number.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from store.base.config import MessageStoreConfig
from store.index.file import ENTRY, HEADER, HEADER_BYTES, SLOT
from store.inspect.files import NumberedFile, data_chunks, last_data
from store.queues.descriptors import DescriptorCache

ENTRY_BYTES = ENTRY.size
SCAN_ENTRIES = 4096
SEARCHED_BYTES_MAX = 16 << 20  # files up to this length are tried with every number of slots


class IndexShape(NamedTuple):
    """Slots and entries of an index file (RocketMQ: maxHashSlotNum, maxIndexNum)."""

    slots: int
    entries: int

    @property
    def file_bytes(self) -> int:
        return HEADER_BYTES + SLOT.size * self.slots + ENTRY_BYTES * self.entries


DEFAULT_SHAPE = IndexShape(MessageStoreConfig.index_slots, MessageStoreConfig.index_entries)


class IndexHeader(NamedTuple):
    begin_ms: int
    end_ms: int
    begin_offset: int
    end_offset: int
    used_slots: int
    next_entry: int  # 1 in an empty file


class IndexEntry(NamedTuple):
    number: int
    key_hash: int
    physical_offset: int
    seconds: int
    previous: int


class IndexReader:
    """One file. The header is read at once and stays as it was then, so that a live file has a fixed end."""

    def __init__(self, file: NumberedFile, shape: IndexShape, reader: DescriptorCache) -> None:
        self.file = file
        self.shape = shape
        self.header = read_header(file, reader)
        self._entries_at = HEADER_BYTES + SLOT.size * shape.slots
        self._reader = reader

    def place_of(self, number: int) -> int:
        return self._entries_at + ENTRY_BYTES * number

    def entries(self) -> Iterator[IndexEntry]:
        """Yield all entries, oldest first."""
        number, end = 1, min(self.header.next_entry, self.shape.entries)
        while number < end:
            count = min(SCAN_ENTRIES, end - number)
            data = self._reader.read(self.file.path, count * ENTRY_BYTES, self.place_of(number))
            if len(data) < ENTRY_BYTES:
                return
            for fields in ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY_BYTES]):
                yield IndexEntry(number, *fields)
                number += 1

    def entry(self, number: int) -> IndexEntry | None:
        if not 0 < number < self.header.next_entry:
            return None
        data = self._reader.read(self.file.path, ENTRY_BYTES, self.place_of(number))
        return IndexEntry(number, *ENTRY.unpack(data)) if len(data) == ENTRY_BYTES else None

    def head_of(self, key_hash: int) -> int:
        """Return the newest entry's number of the chain that has this hash."""
        data = self._reader.read(self.file.path, SLOT.size, HEADER_BYTES + SLOT.size * (key_hash % self.shape.slots))
        return int(SLOT.unpack(data)[0]) if len(data) == SLOT.size else 0

    def find(self, key_hash: int) -> list[int]:
        """Return the physical offsets of all messages with this hash, newest first."""
        offsets = []
        entry = self.entry(self.head_of(key_hash))
        while entry is not None:
            if entry.key_hash == key_hash:
                offsets.append(entry.physical_offset)
            entry = self.entry(entry.previous) if entry.previous < entry.number else None
        return offsets

    def heads(self) -> array[int]:
        """Return all slots."""
        raw = bytearray(SLOT.size * self.shape.slots)
        for position, data in data_chunks(self._reader, self.file.path, HEADER_BYTES, self._entries_at):
            raw[position - HEADER_BYTES : position - HEADER_BYTES + len(data)] = data
        heads = array("i", bytes(raw))
        heads.byteswap()
        return heads


def read_header(file: NumberedFile, reader: DescriptorCache) -> IndexHeader:
    """Return the header; a file shorter than that reads as empty."""
    data = reader.read(file.path, HEADER_BYTES, 0)
    header = IndexHeader(*HEADER.unpack(data.ljust(HEADER_BYTES, b"\0")))
    return header._replace(next_entry=max(header.next_entry, 1))


def index_shape(
    files: list[NumberedFile], slots: int | None, entries: int | None, reader: DescriptorCache
) -> IndexShape | None:
    """Return the shape of the files: as told, as RocketMQ's defaults, or found from bytes. None: not found."""
    if slots and entries:
        return IndexShape(slots, entries)
    length = files[-1].size if files else 0
    if slots:
        return IndexShape(slots, (length - HEADER_BYTES - SLOT.size * slots) // ENTRY_BYTES)
    if entries:
        return IndexShape((length - HEADER_BYTES - ENTRY_BYTES * entries) // SLOT.size, entries)
    if length == DEFAULT_SHAPE.file_bytes:
        return DEFAULT_SHAPE
    for file in sorted(files, key=lambda file: read_header(file, reader).next_entry, reverse=True):
        shape = _shape_found(file, reader)
        if shape is not None:
            return shape
    return None


def _shape_found(file: NumberedFile, reader: DescriptorCache) -> IndexShape | None:
    count = read_header(file, reader).next_entry
    if count <= 1:
        return None
    last = last_data(reader, file.path, HEADER_BYTES, file.size)
    entry_at = last - (last - file.size) % ENTRY_BYTES
    candidates = [(entry_at - HEADER_BYTES - ENTRY_BYTES * (count - 1)) // SLOT.size]
    if file.size <= SEARCHED_BYTES_MAX:  # bytes of a former life may stand behind the last entry
        candidates += range((file.size - HEADER_BYTES) // SLOT.size % 5, (file.size - HEADER_BYTES) // SLOT.size, 5)
    for slots in candidates:
        if slots > 0:
            shape = IndexShape(slots, (file.size - HEADER_BYTES - SLOT.size * slots) // ENTRY_BYTES)
            if shape.file_bytes == file.size and shape.entries >= count and _fits(IndexReader(file, shape, reader)):
                return shape
    return None


def _fits(index: IndexReader) -> bool:
    """First and last entry are where the header and their slots say."""
    first, last = index.entry(1), index.entry(index.header.next_entry - 1)
    if first is None or last is None or last.key_hash < 0 or first.key_hash < 0:
        return False
    return (
        first.physical_offset == index.header.begin_offset
        and last.physical_offset == index.header.end_offset
        and index.head_of(last.key_hash) == last.number
        and index.head_of(first.key_hash) > 0
    )
