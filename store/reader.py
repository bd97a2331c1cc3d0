"""Reading: messages of a queue for a pull, one message by offset, messages by key, offsets by time.

A pull without a filter over recent data costs one unpack for all units, one sum of their sizes, and one view where the
records lie side by side, else a view each. Everything rarer goes unit by unit.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import struct
from collections.abc import Generator

from gantrymq.errors import RecordError
from gantrymq.message import record
from gantrymq.message.model import MessageExt
from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.base.config import MessageStoreConfig
from store.base.errors import NotReadableNow
from store.base.results import (
    ConsumeQueueUnit,
    GetMessageResult,
    GetMessageStatus,
    QueryMessageResult,
)
from store.parts import StoreParts
from store.queues.consume_queue import FILLER_SIZE, UNIT, ConsumeQueue
from store.queues.filter import Filter
from store.queues.repair import ConsumeQueueRepair, are_messages, are_plausible
from store.queues.sizes import size_of_units
from store.unit_scan import Limits, Stop, Unit, UnitScan

FILTER_UNITS_MIN = 800  # RocketMQ reads so many units at once for a filter: 16000 bytes
UNITS_PER_LOOK = 128
QUERY_ROUNDS = 3
QUERY_BYTES_MAX = 15 << 20  # an answer longer than a frame, 16 MiB, would end the connection at the client

_FOUND = GetMessageStatus.FOUND
_UNITS = tuple(struct.Struct(">" + "qiq" * count) for count in range(UNITS_PER_LOOK + 1))


class StoreReader:
    """Looks at log, queues and index; changes none of them."""

    def __init__(self, parts: StoreParts, repair: ConsumeQueueRepair) -> None:
        config = parts.config
        self._log = parts.log
        self._queues = parts.queues
        self._index = parts.index
        self._repair = repair
        self._query_max = config.query_messages_max
        self.limits = Limits(
            hot_bytes(config),
            config.transfer_count_in_memory_max,
            config.transfer_bytes_in_memory_max,
            config.transfer_count_in_disk_max,
            config.transfer_bytes_in_disk_max,
        )

    def read_queue(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int,
        wanted: Filter | None,
    ) -> GetMessageResult:
        """Return up to `max_messages` records from a queue offset on, or the status that says why there are none."""
        slot = self._queues.slots.get(topic)
        queue = slot.queues.get(queue_id) if slot is not None else None
        if queue is None or queue.next_index == 0:
            return GetMessageResult(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        low, high = queue.min_index, queue.next_index
        if self._log.shown_below < self._log.position:
            high = self.shown_index(queue)
        if offset < low:
            return GetMessageResult(GetMessageStatus.OFFSET_TOO_SMALL, low, low, high)
        if offset >= high:
            if offset <= queue.next_index:  # who is ahead of what is shown now waits for it
                return GetMessageResult(GetMessageStatus.OFFSET_OVERFLOW_ONE, offset, low, high)
            return GetMessageResult(GetMessageStatus.OFFSET_OVERFLOW_BADLY, high, low, high)
        if max_messages < 1:
            max_messages = 1  # RocketMQ always takes the first
        if wanted is None:
            result = self._get_recent(queue, offset, max_messages)
            if result is not None:
                return result
        return self._get_one_by_one(queue, offset, max_messages, wanted)

    def _get_recent(self, queue: ConsumeQueue, offset: int, max_messages: int) -> GetMessageResult | None:
        """The usual case: hot records in one file, within all limits. None when it is another case."""
        count = queue.next_index - offset
        if count > max_messages:
            count = max_messages
        limits = self.limits
        if count > limits.memory_count_max:
            count = limits.memory_count_max
        if count > UNITS_PER_LOOK:
            return None
        is_doubtful = offset < queue.doubted_below
        if offset >= queue.tail_index:
            values = _UNITS[count].unpack_from(queue.tail, (offset - queue.tail_index) * UNIT_BYTES)
        else:
            data = queue.read(offset, count)
            count = len(data) // UNIT_BYTES
            if count == 0:
                return None
            values = _UNITS[count].unpack(data)
            if is_doubtful and not are_plausible(values):
                return None
        log = self._log
        first, last_end = values[0], values[-3] + values[-2]
        sizes = values[1::3]
        size_bytes: int = sum(sizes)
        if size_bytes > limits.memory_bytes_max or log.position - first > limits.hot_bytes:
            return None
        file = log.queue.find(first)
        if file is None or last_end > file.end or last_end > log.shown_end:
            return None
        view, base = file.view, file.base
        if last_end - first == size_bytes:
            if (
                is_doubtful
                and not (  # with both ends right and no gap, so is what lies between
                    are_messages(view, base, values[:1], sizes[:1], offset)
                    and are_messages(view, base, values[-3:-2], sizes[-1:], offset + count - 1)
                )
            ):
                return None
            buffers = [view[first - base : last_end - base]]
        else:
            if is_doubtful and not are_messages(view, base, values[::3], sizes, offset):
                return None
            buffers = [view[at - base : at - base + size] for at, size in zip(values[::3], sizes, strict=True)]
        return GetMessageResult(_FOUND, offset + count, queue.min_index, queue.next_index, buffers, count, size_bytes)

    def _get_one_by_one(
        self, queue: ConsumeQueue, offset: int, max_messages: int, wanted: Filter | None
    ) -> GetMessageResult:
        """Every case: bring the queue's units to a scan, until that stops, the queue ends, or enough were looked at.

        All units in [offset, index) are decided, and no other one.
        """
        log = self._log
        scan = UnitScan(
            log.queue, log.shown_end, self.limits, max_messages, wanted, queue.ext, written_end=log.position
        )
        take, stop = scan.take, None
        index = offset
        units_left = max(FILTER_UNITS_MIN, max_messages)
        while units_left > 0 and stop is None:
            data: bytes | bytearray | None = queue.read(index, min(units_left, UNITS_PER_LOOK))
            if not data:
                break
            scan.prove = None
            if index < queue.doubted_below:  # units of another run: none is believed before its record was seen
                scan.prove = functools.partial(self._prove, queue)
                data = self._believable(queue, index, data)
                if data is None:
                    stop = Stop.REPAIR
                    break
            units_left -= len(data) // UNIT_BYTES
            for unit in UNIT.iter_unpack(data):
                stop = take(unit, index)
                if stop is not None:
                    break
                index += 1
        if index == offset:
            return _nothing_decided(queue, offset, stop)
        status = _FOUND if scan.count else scan.why_empty
        return GetMessageResult(
            status, index, queue.min_index, queue.next_index, scan.close(), scan.count, scan.size_bytes
        )

    def _believable(self, queue: ConsumeQueue, index: int, data: bytes | bytearray) -> bytes | bytearray | None:
        """Return units that came from a file, rebuilt where they can't be right; None while that takes time."""
        if are_plausible(tuple(itertools.chain.from_iterable(UNIT.iter_unpack(data)))):
            return data
        return self._repair.repaired_units(queue, index, data)

    def _prove(self, queue: ConsumeQueue, unit: Unit, index: int) -> Unit | None:
        """Return a unit whose record says this queue offset: the one given, or as the log says; see UnitScan.take."""
        physical_offset = unit[0]
        if physical_offset < self._log.readable_end:
            file = self._log.queue.find(physical_offset)
            if file is None or are_messages(file.view, file.base, unit[:1], unit[1:2], index):
                return unit
        repaired = self._repair.repaired_units(queue, index, UNIT.pack(*unit))
        return UNIT.unpack(repaired) if repaired is not None else None

    def properties_of(self, topic: str, queue_id: int, offset: int, count: int) -> list[bytes]:
        """Return the encoded properties of the messages at these queue offsets; of fewer where some are not there."""
        found = []
        for unit in self.units(topic, queue_id, offset, count):
            data = self._log.read(unit.physical_offset, unit.size_bytes)
            if data is not None:
                with contextlib.suppress(RecordError):
                    found.append(record.properties_of(data, 0, unit.size_bytes))
        return found

    # -- one message ---------------------------------------------------------------------------------------------

    def message_at(self, topic: str, queue_id: int, offset: int) -> memoryview | None:
        """Return the record at a queue offset, None when it is gone for ever. NotReadableNow."""
        queue = self._queues.find(topic, queue_id)
        unit: Unit | None = queue.unit_at(offset) if queue is not None else None
        if queue is None or unit is None:
            return None
        if offset < queue.doubted_below:
            unit = self._prove(queue, unit, offset)
            if unit is None:
                raise NotReadableNow(f"the place of message {offset} of {topic} is being looked for")
        physical_offset, size_bytes, _tags_code = unit
        return self._log.read_record(physical_offset) if size_bytes != FILLER_SIZE else None

    def message_bytes(self, physical_offset: int) -> memoryview | None:
        """Return one record's bytes, None when no record starts there."""
        return self._log.read_record(physical_offset)

    def look_message_by_offset(self, physical_offset: int) -> MessageExt | None:
        """Return the message whose record starts there, None when there is none."""
        data = self._log.read_record(physical_offset)
        return record.decode_record(data) if data is not None else None

    def query_message(self, topic: str, key: str, max_messages: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        """Return records by key, however long it takes to find them."""
        steps = self.query_steps(topic, key, max_messages, begin_ms, end_ms)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # a generator's own result

    def query_steps(
        self, topic: str, key: str, max_messages: int, begin_ms: int, end_ms: int
    ) -> Generator[None, None, QueryMessageResult]:
        """Return records by key, in steps of less than a millisecond that others may come between.

        Up to three rounds, each reaching further back, until one finds something. As in RocketMQ the index says how far
        it has come only where it has an entry for the key.
        """
        result = QueryMessageResult()
        slot = self._queues.slot(topic)
        if slot is None:
            return result
        limit = min(max_messages, self._query_max)
        for _ in range(QUERY_ROUNDS):
            found = yield from self._index.search(slot, key, limit, begin_ms, end_ms)
            offsets = sorted(set(found))
            if not offsets:
                break
            result.index_last_update_timestamp, result.index_last_update_physical_offset = self._index.last_update
            result.buffers = self._newest_that_fit(offsets)
            end_ms = self._log.store_timestamp_at(offsets[0])
            if result.buffers or end_ms < begin_ms:
                break
        return result

    def _newest_that_fit(self, offsets: list[int]) -> list[bytes]:
        """Of these records as many as a client takes in one answer, and one in any case, in the order of the log."""
        buffers: list[bytes] = []
        room = QUERY_BYTES_MAX
        for offset in reversed(offsets):
            data = self._log.read_record(offset) if offset < self._log.shown_below else None
            if data is not None:
                room -= len(data)
                if room < 0 and buffers:
                    break
                buffers.append(bytes(data))
        return buffers[::-1]

    # -- offsets -------------------------------------------------------------------------------------------------

    def units(self, topic: str, queue_id: int, offset: int, count: int) -> list[ConsumeQueueUnit]:
        """Return consume-queue units from an offset on: fewer than `count` where a file or the queue ends."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or not queue.first_index <= offset < queue.next_index or count <= 0:
            return []
        data: bytes | bytearray | None = queue.read(offset, count)
        if data and offset < queue.doubted_below:
            data = self._believable(queue, offset, data)
        return [ConsumeQueueUnit._make(unit) for unit in UNIT.iter_unpack(data or b"")]

    def size_of_units(self, topic: str, queue_id: int, offset: int, count: int) -> tuple[int, int]:
        """Return how many units one read has from an offset on, at most `count`, and their messages' bytes."""
        queue = self._queues.find(topic, queue_id)
        return size_of_units(queue, offset, count) if queue is not None else (0, 0)

    def store_timestamp(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Return when the message was stored, ms; -1 when it is not there."""
        queue = self._queues.find(topic, queue_id)
        unit = queue.unit_at(queue_offset) if queue is not None else None
        return self._log.store_timestamp_at(unit.physical_offset) if unit is not None else -1

    def shown_max(self, queue: ConsumeQueue) -> int:
        """Return the queue offset behind the last message that consumers may see; at once when that is all."""
        return queue.next_index if self._log.shown_below >= self._log.position else self.shown_index(queue)

    def shown_index(self, queue: ConsumeQueue) -> int:
        """Return the queue offset behind the last message that consumers may see."""
        end = self._log.shown_end
        low, high = queue.min_index, queue.next_index
        while low < high:
            middle = (low + high) // 2
            unit = queue.unit_at(middle)
            size_bytes = 0 if unit is None or unit.size_bytes == FILLER_SIZE else unit.size_bytes
            if unit is not None and unit.physical_offset + size_bytes > end:
                high = middle
            else:
                low = middle + 1
        return low

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Return the queue offset whose store time is nearest (the earlier one of two equally near), 0 for no queue.

        Behind the last message this is the last message's offset, as in RocketMQ, not the queue's end. What consumers
        may not see yet is not looked at.
        """
        queue = self._queues.find(topic, queue_id)
        end = self.shown_max(queue) if queue is not None else 0
        if queue is None or end <= queue.min_index:
            return end
        low, high = queue.min_index, end
        while low < high:  # the first message stored at or after the time
            middle = (low + high) // 2
            if self._unit_time(queue, middle) < timestamp_ms:
                low = middle + 1
            else:
                high = middle
        if low == queue.min_index:
            return low
        if low == end:
            return low - 1
        after = self._unit_time(queue, low) - timestamp_ms
        before = timestamp_ms - self._unit_time(queue, low - 1)
        return low if after == 0 or after < before else low - 1

    def earliest_store_timestamp(self, topic: str | None = None, queue_id: int = 0) -> int:
        """Return when the oldest message was stored, of a queue or of the whole store; -1 when there is none."""
        if topic is None:
            return self._log.store_timestamp_at(self._log.min_offset)
        queue = self._queues.find(topic, queue_id)
        return self.store_timestamp(topic, queue_id, queue.min_index) if queue is not None else -1

    def _unit_time(self, queue: ConsumeQueue, index: int) -> int:
        unit = queue.unit_at(index)
        return self._log.store_timestamp_at(unit.physical_offset) if unit is not None else -1


def _nothing_decided(queue: ConsumeQueue, offset: int, stop: Stop | None) -> GetMessageResult:
    """The answer when the unit at the asked offset is undecided: stay there, unless that would be for ever."""
    status, next_offset = GetMessageStatus.OFFSET_FOUND_NULL, offset
    if stop is Stop.LOG_END:
        status = GetMessageStatus.OFFSET_OVERFLOW_ONE
    elif stop is None:  # no unit could be read: go on with the queue's next file
        next_offset = offset - offset % queue.file_units + queue.file_units
    return GetMessageResult(status, next_offset, queue.min_index, queue.next_index)


def hot_bytes(config: MessageStoreConfig) -> int:
    """Return how far behind the log's end a record counts as in memory (RocketMQ: accessMessageInMemoryMaxRatio)."""
    return total_memory_bytes() * config.in_memory_ratio_max // 100


def total_memory_bytes() -> int:
    """Return the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
