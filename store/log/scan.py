"""Reading the commit log from front to back, fast: what recovery and catching up do with every record.

One unpack takes from a record what queues and index need; hosts and flags stay where they are. The rare shapes (IPv6
hosts, anything that looks wrong) go through the record codec, which decides.
"""

from __future__ import annotations

import logging
import struct
import time
import zlib
from collections.abc import Callable
from typing import NamedTuple

from gantrymq.errors import RecordError
from gantrymq.message import record, sysflag
from store.base.config import SECTOR_BYTES
from store.log.mapped_file import MappedFile

logger = logging.getLogger(__name__)

REPORT_EVERY_S = 2.0
STRIDE_BYTES = 8 << 20  # between two looks at the clock
V6_BITS = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6
BODY_AT = record.HEAD_V4.size
# size, magic, CRC, queue id, queue offset, physical offset, sys flag, store timestamp, body length
_SCAN = struct.Struct(">iiii4xqqi16xq20xi")
_unpack = _SCAN.unpack_from
_crc32 = zlib.crc32
_MAGIC = record.MESSAGE_MAGIC.to_bytes(4, "big", signed=True)
_new = tuple.__new__


class ScannedRecord(NamedTuple):
    """What queues and index are made of. The names are RecordFields' own."""

    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    size_bytes: int
    store_timestamp: int
    properties: bytes


OnRecord = Callable[[ScannedRecord, int], object]  # what it returns is not looked at

# (view, its physical offset, first position, last one, whether to check CRCs) to where the first record starts that it
# did not take. It does with plain records side by side what OnRecord does with each, and leaves the others to that.
OnPlainRecords = Callable[[memoryview, int, int, int, bool], int]


class Progress:
    """How far the reading is; a log line every two seconds while it lasts. `after_stride` is called now and then."""

    def __init__(self, folder: str, total_bytes: int, after_stride: Callable[[], None]) -> None:
        self._after_stride = after_stride
        self.folder = folder
        self.done_bytes = 0
        self.total_bytes = total_bytes
        self._next = time.monotonic() + REPORT_EVERY_S

    def add(self, done_bytes: int) -> None:
        self._after_stride()
        self.done_bytes += done_bytes
        now = time.monotonic()
        if now >= self._next:
            self._next = now + REPORT_EVERY_S
            logger.info(
                "store recovering",
                extra={
                    "event": "store_recovering",
                    "folder": self.folder,
                    "done_bytes": self.done_bytes,
                    "total_bytes": self.total_bytes,
                    "percent": min(100 * self.done_bytes // max(self.total_bytes, 1), 100),
                },
            )


def scan_file(
    file: MappedFile,
    start: int,
    *,
    check_crc: bool,
    on_record: OnRecord | None,
    on_plain: OnPlainRecords | None = None,
    progress: Progress | None = None,
    stop: int | None = None,
) -> int:
    """Read a file's records from `start` on, up to the first that is not valid or starts at `stop`; return where.

    Positions count from the file's start. A record is valid when its lengths agree, it says its own physical offset
    and, if asked, its body has the CRC and no sector of it was lost.
    """
    view = file.view
    last = file.size - record.RECORD_BYTES_MIN if stop is None else min(file.size - record.RECORD_BYTES_MIN, stop - 1)
    position, is_valid = start, True
    # From `start` to `position` valid records lie side by side, and on_record was told of each, in order.
    while is_valid and position <= last:
        stride_start, stride_last = position, min(last, position + STRIDE_BYTES - 1)
        position, is_valid = _scan_stride(view, file.base, position, stride_last, check_crc, on_record, on_plain)
        if progress is not None:
            progress.add(position - stride_start)
    return position


def scan_filled(
    file: MappedFile, start: int, end: int, on_record: OnRecord, on_plain: OnPlainRecords | None = None
) -> int:
    """Read the records from `start` on that are whole below `end`, without CRCs; return where the first other starts.

    For a file that is being filled: what stands behind `end` is not looked at.
    """
    last = end - record.RECORD_BYTES_MIN
    return _scan_stride(file.view[:end], file.base, start, last, False, on_record, on_plain)[0]


def _scan_stride(
    view: memoryview,
    base: int,
    position: int,
    last: int,
    check_crc: bool,
    on_record: OnRecord | None,
    on_plain: OnPlainRecords | None,
) -> tuple[int, bool]:
    """Read the records that start at `position` … `last`; return where they end, and whether all were valid."""
    while position <= last:
        if on_plain is not None:
            position = on_plain(view, base, position, last, check_crc)
            if position > last:
                break
        (size, magic, crc, queue_id, queue_offset, physical_offset, sys_flag, timestamp, body_bytes) = _unpack(
            view, position
        )
        # What another life of the file left here says another place; one that is longer than all is not whole.
        if physical_offset != base + position or magic != record.MESSAGE_MAGIC or size > len(view) - position:
            return position, False
        topic_at = position + BODY_AT + body_bytes + 1
        end = position + size
        found: ScannedRecord | None = None
        if sys_flag & V6_BITS or body_bytes < 0 or size < record.RECORD_BYTES_MIN or not topic_at < end <= len(view):
            found = _slowly(view, position, check_crc)
            if found is None:
                return position, False
        else:
            # A topic's length is a signed byte: the sum of all lengths tells when its sign is set.
            properties_at = topic_at + (view[topic_at - 1] & 0x7F) + 2
            if (
                properties_at > end
                or properties_at + (view[properties_at - 2] << 8) + view[properties_at - 1] != end
                or end - properties_at > 0x7FFF
                or (check_crc and _crc32(view[position + BODY_AT : topic_at - 1]) & 0x7FFFFFFF != crc)
            ):
                return position, False
            topic, properties = bytes(view[topic_at : properties_at - 2]), bytes(view[properties_at:end])
            # The CRC covers the body alone. A zero byte is rare in the other two, and the call would cost much here.
            if check_crc and (0 in topic or 0 in properties) and _is_torn(view, topic, topic_at, properties, end):
                return position, False
            if on_record is not None:
                found = _new(ScannedRecord, (topic, queue_id, queue_offset, sys_flag, size, timestamp, properties))
        if on_record is not None and found is not None:
            on_record(found, base + position)
        position = end
    return position, True


def _is_torn(view: memoryview, topic: bytes, topic_at: int, properties: bytes, end: int) -> bool:
    """Return whether a sector of topic or properties, which end with the record at `end`, never reached the disk."""
    return (0 in topic and _has_lost_sector(view, topic_at, topic_at + len(topic))) or (
        0 in properties and _has_lost_sector(view, end - len(properties), end)
    )


def _has_lost_sector(view: memoryview, start: int, end: int) -> bool:
    """Return whether a disk's sector reads as zeros between the two positions: a power cut came before it was written.

    The CRC covers the body alone. RocketMQ believes a record whose topic or properties never reached the disk.
    """
    return any(
        not any(view[max(start, sector) : min(end, sector + SECTOR_BYTES)])
        for sector in range(start - start % SECTOR_BYTES, end, SECTOR_BYTES)
    )


def _slowly(view: memoryview, position: int, check_crc: bool) -> ScannedRecord | None:
    """Take any record apart; None when it is not valid."""
    try:
        fields = record.split_record(view, position)
    except RecordError:
        return None
    body = view[fields.body_position : fields.body_position + fields.body_bytes]
    if check_crc:
        topic_at, end = fields.body_position + fields.body_bytes + 1, position + fields.size_bytes
        if record.body_crc(body) != fields.body_crc or _is_torn(view, fields.topic, topic_at, fields.properties, end):
            return None
    return ScannedRecord(
        fields.topic,
        fields.queue_id,
        fields.queue_offset,
        fields.sys_flag,
        fields.size_bytes,
        fields.store_timestamp,
        fields.properties,
    )


def whole_size(view: memoryview, position: int, base: int) -> int:
    """Return the size of the record that stands there, 0 when it is none that can be read."""
    if position + record.RECORD_BYTES_MIN > len(view):
        return 0
    try:
        fields = record.split_record(view, position)
    except RecordError:
        return 0
    return fields.size_bytes if fields.physical_offset == base + position else 0


def next_record(view: memoryview, position: int, base: int, stop: int) -> int | None:
    """Return where the next record may stand behind a damaged one, None when there is none before `stop`."""
    while position < stop:
        window = bytes(view[position : min(position + (1 << 20), stop)])
        at = window.find(_MAGIC, 5)
        while at >= 4:
            if whole_size(view, position + at - 4, base):
                return position + at - 4
            at = window.find(_MAGIC, at + 1)
        if position + len(window) >= stop:
            return None
        position += len(window) - 8  # a magic number may lie across
    return None


def has_queue_unit(sys_flag: int) -> bool:
    """Messages of an undecided or undone transaction have no place in a queue."""
    return sysflag.transaction_type(sys_flag) in (sysflag.TRANSACTION_NONE, sysflag.TRANSACTION_COMMIT)
