"""Decodes stored bytes to checked records, a block at a time: of a commit log, or of the answer to a pull.

A plain loop follows the chain of record sizes, which is sequential; then numpy reads the header fields of all records
of the block at once and checks them. One log may have both IP widths and both magics, so the positions of all fields
after the born host are computed, instead of one fixed header.

A record is valid if its magic is known, its physical offset is its position, and its total size is the sum of its
parts. The scan ends at the first invalid one. The caller knows whether that is the end of the log or damage.
`bodies_are_sound` compares bodies with their checksums; topics and properties have none. Format:
gantrymq.message.record, RocketMQ's CommitLog.java.
"""

from __future__ import annotations

import enum
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAGIC_V1 = 0xDAA320A7  # topic length is one byte
MAGIC_V2 = 0xDAA320AB  # topic length is two bytes (topics longer than 127, RocketMQ 5)
MAGIC_BLANK = 0xCBD43194  # "the rest of this file is empty"
RECORD_BYTES_MIN = 91 + 1  # the fields of an IPv4 record and a topic of one character
BORN_HOST_V6 = 1 << 4  # sys flag: the born host is 16 + 4 bytes
STORE_HOST_V6 = 1 << 5

BLOCK_BYTES = 8 << 20  # one read: large enough for fast vector operations, and a worker needs about 100 MB

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Truths = NDArray[np.bool_]

_SIZE_AND_MAGIC = struct.Struct(">iI")
_HEAD = np.dtype(  # the 48 bytes before the born host, the same in every record
    [
        ("size", ">i4"), ("magic", ">u4"), ("body_crc", ">i4"), ("queue_id", ">i4"), ("flag", ">i4"),
        ("queue_offset", ">i8"), ("physical_offset", ">i8"), ("sys_flag", ">i4"), ("born_timestamp", ">i8"),
    ]
)  # fmt: skip
_TAIL = np.dtype([("reconsume_times", ">i4"), ("prepared_offset", ">i8"), ("body_bytes", ">i4")])


@dataclass(frozen=True, slots=True)
class LogFile:
    """One commit-log file. Its name is the physical offset of its first byte, which is always a record boundary."""

    path: Path
    start: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.start + self.size_bytes


@dataclass(slots=True)
class RecordBlock:
    """Consecutive valid records. All arrays have one entry for each record; `*_at` are positions in `buffer`."""

    buffer: Bytes
    positions: Ints
    size_bytes: Ints
    physical_offset: Ints
    queue_id: Ints
    queue_offset: Ints
    flag: Ints
    sys_flag: Ints
    born_timestamp: Ints
    store_timestamp: Ints
    store_host_at: Ints
    reconsume_times: Ints
    body_crc: Ints
    body_at: Ints
    body_bytes: Ints
    topic_at: Ints
    topic_bytes: Ints
    properties_at: Ints
    properties_bytes: Ints

    def __len__(self) -> int:
        return len(self.positions)

    def head(self, count: int) -> RecordBlock:
        """The first `count` records."""
        return self.take(slice(count))

    def take(self, rows: slice | Ints | Truths) -> RecordBlock:
        """Some of the records: a range, their indexes, or a truth for each."""
        return RecordBlock(self.buffer, *(getattr(self, name)[rows] for name in self.__slots__[1:]))


class ScanEnd(enum.Enum):
    """Why a scan stopped."""

    LIMIT = "limit"  # the requested range has been read
    BLANK = "blank"  # the file's closing blank record: the log goes on in the next file
    INVALID = "invalid"  # no valid record here: the log's end, or damage


class RecordScan:
    """Iterates once over one file's records from `begin` up to `end`; afterwards see `position` and `ended`."""

    def __init__(self, file: LogFile, begin: int, end: int | None = None, *, block_bytes: int = BLOCK_BYTES) -> None:
        self.file = file
        self.position: int = begin  # physical offset after the last valid record
        self.ended: ScanEnd = ScanEnd.LIMIT
        self._end = file.end if end is None else min(end, file.end)
        self._block_bytes = block_bytes

    def __iter__(self) -> Iterator[RecordBlock]:
        descriptor = os.open(self.file.path, os.O_RDONLY)
        try:
            block_bytes = self._block_bytes
            while self.position < self._end:
                wanted_bytes = min(block_bytes, self._end - self.position)
                buffer = self._read(descriptor, wanted_bytes)
                positions, missing_bytes, end = follow_chain(buffer, self._end - self.position)
                block = decode_block(buffer, positions, self.position)
                if len(block):
                    self.position += int(block.positions[-1] + block.size_bytes[-1])
                    yield block
                is_cut_off = not len(block) and len(buffer) < wanted_bytes  # the file has become shorter
                if len(block) < len(positions) or is_cut_off:
                    end = ScanEnd.INVALID
                if end is not ScanEnd.LIMIT:
                    self.ended = end
                    return
                block_bytes = max(self._block_bytes, missing_bytes)  # one record may be larger than a block
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int, size_bytes: int) -> Bytes:
        buffer = np.empty(size_bytes, dtype=np.uint8)
        read_bytes = os.preadv(descriptor, [buffer.data], self.position - self.file.start)
        return buffer[:read_bytes]


def follow_chain(buffer: Bytes, bytes_until_limit: int) -> tuple[Ints, int, ScanEnd]:
    """Return the positions of the complete records, the size of an incomplete next one, and what ended the chain.

    LIMIT means that the chain continues after this buffer. A record that extends beyond the limit is invalid.
    """
    positions: list[int] = []
    position, length, view = 0, len(buffer), buffer.data
    unpack, append = _SIZE_AND_MAGIC.unpack_from, positions.append
    end, missing_bytes = ScanEnd.LIMIT, 0
    while position + 8 <= length:
        size_bytes, magic = unpack(view, position)
        if magic != MAGIC_V1 and magic != MAGIC_V2:
            end = ScanEnd.BLANK if magic == MAGIC_BLANK and size_bytes >= 8 else ScanEnd.INVALID
            break
        if size_bytes < RECORD_BYTES_MIN or position + size_bytes > bytes_until_limit:
            end = ScanEnd.INVALID
            break
        if position + size_bytes > length:
            missing_bytes = size_bytes
            break
        append(position)
        position += size_bytes
    if end is ScanEnd.LIMIT and not positions and not missing_bytes:
        end = ScanEnd.INVALID  # fewer than 8 bytes are left, or the file is shorter than it should be
    return np.array(positions, dtype=np.int64), missing_bytes, end


def decode_block(buffer: Bytes, positions: Ints, base: int) -> RecordBlock:
    """Decode the records at `positions`, up to the first invalid one. base: what a position lacks to the physical
    offset."""
    block, valid = decode_each(buffer, positions, base)
    return block if valid.all() else block.head(int(np.argmin(valid)))


def decode_each(buffer: Bytes, positions: Ints, base: int | Ints | None) -> tuple[RecordBlock, Truths]:
    """Decode the records at `positions`, and say of each whether it is valid; the fields of others are arbitrary.
    base: as for decode_block, one for all or one for each; None: that is not known."""
    head = _gather(buffer, positions, _HEAD)
    size_bytes = head["size"].astype(np.int64)
    sys_flag = head["sys_flag"].astype(np.int64)
    born_bytes = np.where(sys_flag & BORN_HOST_V6, 20, 8)
    store_bytes = np.where(sys_flag & STORE_HOST_V6, 20, 8)
    is_v2 = (head["magic"] == MAGIC_V2).astype(np.int64)
    store_at = positions + 48 + born_bytes
    store_timestamp = _gather(buffer, store_at, np.dtype(">i8")).astype(np.int64)
    tail = _gather(buffer, store_at + 8 + store_bytes, _TAIL)
    body_at = store_at + 24 + store_bytes
    body_bytes = tail["body_bytes"].astype(np.int64)
    topic_bytes = _topic_lengths(buffer, body_at + body_bytes, is_v2)
    topic_at = body_at + body_bytes + 1 + is_v2
    properties_bytes = _gather(buffer, topic_at + topic_bytes, np.dtype(">i2")).astype(np.int64)
    # Lengths of damaged records are arbitrary, so the parts must add up to the total size exactly.
    fixed_bytes = 75 + born_bytes + store_bytes + is_v2
    valid: Truths = (
        ((head["magic"] == MAGIC_V1) | (head["magic"] == MAGIC_V2))
        & (True if base is None else head["physical_offset"] == positions + base)
        & (body_bytes >= 0)
        & (topic_bytes > 0)
        & (properties_bytes >= 0)
        & (fixed_bytes + body_bytes + topic_bytes + properties_bytes == size_bytes)
    )
    block = RecordBlock(
        buffer=buffer,
        positions=positions,
        size_bytes=size_bytes,
        physical_offset=head["physical_offset"].astype(np.int64),
        queue_id=head["queue_id"].astype(np.int64),
        queue_offset=head["queue_offset"].astype(np.int64),
        flag=head["flag"].astype(np.int64),
        sys_flag=sys_flag,
        born_timestamp=head["born_timestamp"].astype(np.int64),
        store_timestamp=store_timestamp,
        store_host_at=store_at + 8,
        reconsume_times=tail["reconsume_times"].astype(np.int64),
        body_crc=head["body_crc"].astype(np.int64),
        body_at=body_at,
        body_bytes=body_bytes,
        topic_at=topic_at,
        topic_bytes=topic_bytes,
        properties_at=topic_at + topic_bytes + 2,
        properties_bytes=properties_bytes,
    )
    return block, valid


def bodies_are_sound(block: RecordBlock) -> Truths:
    """Say of each record whether its body is the one whose checksum was stored with it."""
    data = block.buffer.data
    places = zip(block.body_at.tolist(), block.body_bytes.tolist(), strict=True)
    found = np.fromiter((zlib.crc32(data[at : at + size]) for at, size in places), dtype=np.int64, count=len(block))
    sound: Truths = (block.body_bytes == 0) | (found & 0x7FFFFFFF == block.body_crc)
    return sound


def _topic_lengths(buffer: Bytes, positions: Ints, is_v2: Ints) -> Ints:
    short = _gather(buffer, positions, np.dtype(">i1")).astype(np.int64)
    return np.where(is_v2, _gather(buffer, positions, np.dtype(">i2")), short) if is_v2.any() else short


def _gather(buffer: Bytes, positions: Ints, dtype: np.dtype) -> np.ndarray:
    """Read one `dtype` at each position. Positions outside the buffer (damaged lengths) are clamped; checks follow."""
    if not len(positions):
        return np.empty(0, dtype=dtype)
    last = len(buffer) - dtype.itemsize
    windows = np.ndarray((last + 1,), dtype=f"V{dtype.itemsize}", buffer=buffer, strides=(1,))
    return windows[np.clip(positions, 0, last)].view(dtype)
