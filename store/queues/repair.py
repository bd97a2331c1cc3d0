"""Repair of consume-queue units that can't be right: they are rebuilt from the log while the store runs.

A disk may lose or flip bits anywhere, not only at the end of what was written, and a start checks the ends alone. So
units that come from a file are compared with each other and with the records they name before anything is sent.
RocketMQ sends the bytes that the unit names, and takes a zeroed unit for the end of the queue.

The right unit is found by reading the log between the records of the nearest sound neighbours, and is written back.
A long range is read on a thread, and readers wait meanwhile. A message whose record itself is damaged is lost: that is
logged once with file and position, and readers skip it. Bodies are not looked at for each reader: one that finds a
damaged message asks for it a second time, and says so.
"""

from __future__ import annotations

import itertools
import logging
import operator
import struct
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future

from gantrymq.log_limit import LogLimit
from gantrymq.message import record
from store.base import file_bytes
from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.log.commit_log import CommitLog
from store.log.scan import next_record, whole_size
from store.queues.consume_queue import FILLER, FILLER_SIZE, UNIT, ConsumeQueue
from store.queues.consume_queue_table import ConsumeQueueTable
from store.queues.tags import TagsCodes

logger = logging.getLogger(__name__)

SCAN_NOW_BYTES = 2 << 20  # some thousand records, a few milliseconds
NEIGHBOURS_MAX = 4096  # how many units to each side are searched for a sound one
REMEMBERED_MAX = 4096  # lost messages, and scans under way
_unpack_head = struct.Struct(">ii4xi4xqq").unpack_from  # size, magic, queue id, queue offset, physical offset
_unpack_identity = struct.Struct(">ii12xqq").unpack_from  # size, magic, queue offset, physical offset

Found = dict[int, tuple[int, int, int]]  # by queue offset: the right unit


def are_plausible(values: tuple[int, ...]) -> bool:
    """Say whether units (three numbers each) can be one queue's: no record starts before the last one's end."""
    offsets, sizes = values[::3], values[1::3]
    return min(sizes) > 0 and all(map(operator.le, map(operator.add, offsets, sizes), offsets[1:]))


def are_messages(view: memoryview, base: int, offsets: Sequence[int], sizes: Sequence[int], queue_offset: int) -> bool:
    """Say whether records stand at these physical offsets that name them, these sizes, and rising queue offsets.

    The first record's queue offset is `queue_offset`; the view starts at the physical offset `base`.
    """
    positions = map(base.__rsub__, offsets)
    try:
        found = list(map(_unpack_identity, itertools.repeat(view), positions))
    except struct.error:  # too near the file's end
        return False
    return found == list(zip(sizes, itertools.repeat(record.MESSAGE_MAGIC), itertools.count(queue_offset), offsets))


class ConsumeQueueRepair:
    """Called by the reader, on the loop, with units that fail its checks."""

    def __init__(self, log: CommitLog, queues: ConsumeQueueTable, tags_codes: TagsCodes, executor: Executor) -> None:
        self.repaired = 0  # units, since the start
        self.lost = 0  # messages, since the start
        self.last_lost = ""  # where the last of them was
        self._log = log
        self._queues = queues
        self._tags_codes = tags_codes
        self._executor = executor
        self._log_limit = LogLimit()
        self._lost: OrderedDict[tuple[ConsumeQueue, int], None] = OrderedDict()
        self._scans: OrderedDict[tuple[ConsumeQueue, int], Future[Found]] = OrderedDict()

    def repaired_units(self, queue: ConsumeQueue, index: int, data: bytes | bytearray) -> bytes | None:
        """Return the right units in place of `data`, which starts at queue offset `index`; fillers for lost messages.

        None while a thread reads the log for them: ask again later.
        """
        units = bytearray(data)
        wrong = [
            index + number
            for number, unit in enumerate(UNIT.iter_unpack(data))
            if not self._is_sound(queue, index + number, unit)
        ]
        unknown = [each for each in wrong if (queue, each) not in self._lost]
        if unknown:
            found = self._find(queue, unknown)
            if found is None:
                return None
            for each in unknown:
                if each in found:
                    self._write(queue, each, UNIT.pack(*found[each]))
                    units[(each - index) * UNIT_BYTES : (each - index + 1) * UNIT_BYTES] = UNIT.pack(*found[each])
                else:
                    self._note_lost(queue, each)
        for each in wrong:
            if (queue, each) in self._lost:
                units[(each - index) * UNIT_BYTES : (each - index + 1) * UNIT_BYTES] = FILLER
        return bytes(units)

    def examine(self, queue: ConsumeQueue, index: int) -> None:
        """A reader found this message damaged twice: look at the whole record, and say where it is if it is so."""
        unit = queue.unit_at(index)
        if unit is None or (queue, index) in self._lost:
            return
        file = self._log.queue.find(unit.physical_offset)
        if (
            file is None
            or unit.size_bytes == FILLER_SIZE
            or unit.physical_offset + unit.size_bytes > self._log.position
        ):
            return
        position = unit.physical_offset - file.base
        if self._is_sound(queue, index, unit) and whole_size(file.view, position, file.base) == unit.size_bytes:
            fields = record.split_record(file.view, position)
            body = file.view[fields.body_position : fields.body_position + fields.body_bytes]
            if record.body_crc(body) == fields.body_crc:
                return
        self._note_lost(queue, index)

    def log_left_out(self, *, at_end: bool = False) -> None:
        """Log how many lines about lost messages and repaired units were left out; called once a second."""
        for event, count in self._log_limit.end_windows(at_end=at_end).items():
            self._log_count(event, count)

    def _log_count(self, event: str, count: int) -> None:
        logger.warning(
            "damage in many places: not every one has its line",
            extra={"event": "lines_left_out", "of": event, "count": count, "all_since_start": self._total(event)},
        )

    def _may_log(self, event: str) -> bool:
        """Say whether one more line of this kind may be written; first log what was left out since the last one."""
        left_out = self._log_limit.left_out(event)
        if left_out:
            self._log_count(event, left_out)
        return left_out is not None

    def _total(self, event: str) -> int:
        return self.lost if event == "message_lost" else self.repaired

    def _is_sound(self, queue: ConsumeQueue, index: int, unit: tuple[int, int, int]) -> bool:
        physical_offset, size_bytes, _tags_code = unit
        if size_bytes == FILLER_SIZE and physical_offset == 0:
            return True  # a filler: the message is known to be lost
        if 0 <= physical_offset < self._log.min_offset and size_bytes > 0:
            before = queue.unit_at(index - 1)  # the record is gone, but messages go in order
            return before is None or before.physical_offset < physical_offset
        file = self._log.queue.find(physical_offset)
        if file is None or physical_offset + size_bytes > self._log.position:
            return False
        position = physical_offset - file.base
        if are_messages(file.view, file.base, (physical_offset,), (size_bytes,), index):
            return True
        if whole_size(file.view, position, file.base) != size_bytes:
            return False
        fields = record.split_record(file.view, position)  # another queue's message may stand in this one too
        return fields.queue_id != queue.queue_id or fields.topic != queue.topic.encode()

    def _find(self, queue: ConsumeQueue, wanted: list[int]) -> Found | None:
        """Search the log for the messages of these queue offsets; None while a thread does."""
        scan = self._scans.get((queue, wanted[0]))
        if scan is not None:
            if not scan.done():
                return None
            del self._scans[queue, wanted[0]]
            return scan.result()
        start, end = self._bounds(queue, wanted)
        if end - start <= SCAN_NOW_BYTES:
            return self._scan(queue, set(wanted), start, end)
        while len(self._scans) >= REMEMBERED_MAX:
            self._scans.popitem(last=False)
        self._scans[queue, wanted[0]] = self._executor.submit(self._scan, queue, set(wanted), start, end)
        return None

    def _bounds(self, queue: ConsumeQueue, wanted: list[int]) -> tuple[int, int]:
        """Return the physical offsets between which the messages lie: the ends of the nearest sound neighbours."""
        start, end = max(self._log.min_offset, 0), self._log.position
        for index in range(wanted[0] - 1, max(queue.min_index - 1, wanted[0] - NEIGHBOURS_MAX), -1):
            unit = queue.unit_at(index)
            if unit is not None and unit.size_bytes != FILLER_SIZE and self._is_sound(queue, index, unit):
                start = max(start, unit.physical_offset + unit.size_bytes)
                break
        for index in range(wanted[-1] + 1, min(queue.next_index, wanted[-1] + NEIGHBOURS_MAX)):
            unit = queue.unit_at(index)
            if unit is not None and unit.size_bytes != FILLER_SIZE and self._is_sound(queue, index, unit):
                end = min(end, unit.physical_offset)
                break
        return start, end

    def _scan(self, queue: ConsumeQueue, wanted: set[int], start: int, end: int) -> Found:
        """Return the right units, found by reading the log between the offsets. Changes nothing: safe on a thread."""
        found: Found = {}
        topic = queue.topic.encode()
        slot = self._queues.slots[queue.topic]
        for view, position, physical_offset in self._records(start, end):
            size, _magic, queue_id, queue_offset, _own = _unpack_head(view, position)
            if queue_id != queue.queue_id or queue_offset not in wanted:
                continue
            fields = record.split_record(view, position)
            if fields.topic == topic:
                code = self._tags_codes.code(slot, fields.properties, fields.store_timestamp)
                found[queue_offset] = (physical_offset, size, code)
        return found

    def _records(self, start: int, end: int) -> Iterator[tuple[memoryview, int, int]]:
        """Yield (file's view, position in it, physical offset) of whole records; skip damaged ones."""
        while start < end:
            file = self._log.queue.find(start)
            if file is None:
                return
            view, base, stop = file.view, file.base, min(end, file.end)
            position: int | None = start - base
            while position is not None and base + position < stop:
                size = whole_size(view, position, base)
                if size:
                    yield view, position, base + position
                    position += size
                else:
                    position = next_record(view, position, base, stop - base)
            start = file.end

    def _write(self, queue: ConsumeQueue, index: int, unit: bytes) -> None:
        path = queue.path_of(index - index % queue.file_units)
        position = index % queue.file_units * UNIT_BYTES
        with path.open("r+b") as file:
            file_bytes.write_all(file.fileno(), unit, position)
        self.repaired += 1
        if not self._may_log("unit_repaired"):
            return
        logger.warning(
            "consume queue unit rebuilt from the log",
            extra={
                "event": "unit_repaired",
                "path": str(path),
                "position": position,
                "topic": queue.topic,
                "queue_id": queue.queue_id,
                "queue_offset": index,
            },
        )

    def _note_lost(self, queue: ConsumeQueue, index: int) -> None:
        """Remember the message as lost; log where its record should be, as far as its unit tells."""
        while len(self._lost) >= REMEMBERED_MAX:
            self._lost.popitem(last=False)
        self._lost[queue, index] = None
        self.lost += 1
        unit = queue.unit_at(index)
        place = unit.physical_offset if unit is not None else -1
        self.last_lost = f"{queue.topic}-{queue.queue_id} queue offset {index} physical offset {place}"
        if not self._may_log("message_lost"):
            return
        file = self._log.queue.find(unit.physical_offset) if unit is not None and unit.size_bytes > 0 else None
        logger.error(
            "message lost: its record in the commit log is damaged",
            extra={
                "event": "message_lost",
                "path": str(file.path) if file is not None else None,
                "position": unit.physical_offset - file.base if file is not None and unit is not None else None,
                "topic": queue.topic,
                "queue_id": queue.queue_id,
                "queue_offset": index,
                "physical_offset": place,
            },
        )
