"""Consume-queue units that can't be right, made anew from the log while the store runs.

A disk may lose or turn bits anywhere, not only at the end of what was written, and a start looks at ends alone. So
units that come from a file are compared with each other and with the records they name before anything is sent.
RocketMQ sends whatever stands there, or takes a zeroed unit for the end of the queue.

A unit that is wrong is found again between the records of its sound neighbours, and written back. Where that is a long
way a thread walks it, and readers wait. A message whose record itself is damaged is lost: that is reported with file
and position, once, and its reader passes over it.
"""

from __future__ import annotations

import itertools
import logging
import operator
import struct
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future

from gantrymq.message import record
from store.base import file_bytes
from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.base.line_limit import LineLimit
from store.log.commit_log import CommitLog
from store.log.scan import next_record, whole_size
from store.queues.consume_queue import FILLER, FILLER_SIZE, UNIT, ConsumeQueue
from store.queues.consume_queue_table import ConsumeQueueTable
from store.queues.tags import TagsCodes

logger = logging.getLogger(__name__)

SCAN_NOW_BYTES = 2 << 20  # some thousand records, a few milliseconds
NEIGHBOURS_MAX = 4096  # so far a sound unit is looked for
REMEMBERED_MAX = 4096  # lost messages, and walks under way
_unpack_head = struct.Struct(">ii4xi4xqq").unpack_from  # size, magic, queue id, queue offset, physical offset
_unpack_identity = struct.Struct(">ii12xqq").unpack_from  # size, magic, queue offset, physical offset

Found = dict[int, tuple[int, int, int]]  # by queue offset: what the unit should say


def are_plausible(values: tuple[int, ...]) -> bool:
    """Say if units (three numbers each) can be a queue's: every record behind the one before."""
    offsets, sizes = values[::3], values[1::3]
    return min(sizes) > 0 and all(map(operator.le, map(operator.add, offsets, sizes), offsets[1:]))


def are_messages(view: memoryview, base: int, offsets: Sequence[int], sizes: Sequence[int], queue_offset: int) -> bool:
    """Say if records of these sizes stand there that say these physical offsets, and queue offsets from one on.

    `base` is the physical offset at which the view starts.
    """
    positions = map(base.__rsub__, offsets)
    try:
        found = list(map(_unpack_identity, itertools.repeat(view), positions))
    except struct.error:  # too near the file's end
        return False
    return found == list(zip(sizes, itertools.repeat(record.MESSAGE_MAGIC), itertools.count(queue_offset), offsets))


class UnitMender:
    """Called by the reader, on the loop, with units that it does not believe."""

    def __init__(self, log: CommitLog, queues: ConsumeQueueTable, tags_codes: TagsCodes, executor: Executor) -> None:
        self.repaired = 0  # units, since the start
        self.lost = 0
        self._log = log
        self._queues = queues
        self._tags_codes = tags_codes
        self._executor = executor
        self._lines = LineLimit()
        self._lost: OrderedDict[tuple[ConsumeQueue, int], None] = OrderedDict()
        self._walks: OrderedDict[tuple[ConsumeQueue, int], Future[Found]] = OrderedDict()

    def mend(self, queue: ConsumeQueue, index: int, data: bytes | bytearray) -> bytes | None:
        """Return the units of `data`, which start at `index`, as they should be; fillers for lost ones.

        None: that takes a while, ask again.
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

    def tell_left_out(self, *, at_end: bool = False) -> None:
        """Say how many lines about messages lost and units repaired were not written; ask now and then."""
        for event, count in self._lines.left_out(at_end=at_end).items():
            logger.warning(
                "damage in many places: not every one has its line",
                extra={"event": "lines_left_out", "of": event, "count": count, "all_since_start": self._total(event)},
            )

    def _total(self, event: str) -> int:
        return self.lost if event == "message_lost" else self.repaired

    def _is_sound(self, queue: ConsumeQueue, index: int, unit: tuple[int, int, int]) -> bool:
        physical_offset, size_bytes, _tags_code = unit
        if size_bytes == FILLER_SIZE and physical_offset == 0:
            return True  # known to be lost
        if 0 <= physical_offset < self._log.min_offset and size_bytes > 0:
            before = queue.unit_at(index - 1)  # messages go in order
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
        """Look for the messages of these queue offsets in the log; None while a thread is at it."""
        walk = self._walks.get((queue, wanted[0]))
        if walk is not None:
            if not walk.done():
                return None
            del self._walks[queue, wanted[0]]
            return walk.result()
        start, end = self._bounds(queue, wanted)
        if end - start <= SCAN_NOW_BYTES:
            return self._walk(queue, set(wanted), start, end)
        while len(self._walks) >= REMEMBERED_MAX:
            self._walks.popitem(last=False)
        self._walks[queue, wanted[0]] = self._executor.submit(self._walk, queue, set(wanted), start, end)
        return None

    def _bounds(self, queue: ConsumeQueue, wanted: list[int]) -> tuple[int, int]:
        """Return between which physical offsets the messages lie: those of the nearest sound units."""
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

    def _walk(self, queue: ConsumeQueue, wanted: set[int], start: int, end: int) -> Found:
        """Read the log between the offsets. May run on a thread: it changes nothing."""
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
        """Yield (file's view, position in it, physical offset) of whole records; damaged ones are passed over."""
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
        if not self._lines.allows("unit_repaired"):
            return
        logger.warning(
            "consume queue unit made anew from the log",
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
        """Say where the record should be, as far as its unit tells."""
        while len(self._lost) >= REMEMBERED_MAX:
            self._lost.popitem(last=False)
        self._lost[queue, index] = None
        self.lost += 1
        if not self._lines.allows("message_lost"):
            return
        unit = queue.unit_at(index)
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
            },
        )
