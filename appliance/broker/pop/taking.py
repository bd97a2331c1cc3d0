"""Hands out messages: reads them from the queues of a topic and its retry topic, and has the book lease them.

One pop takes of all queues in turn, beginning at another one each time; one in five looks into the retry topic first,
as RocketMQ's do, the others last. What no member of the group wants is passed over, and counts as done.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from appliance.broker.delivery.hot_data import is_hot
from appliance.broker.pop.handles import ORDER_QUEUE, OWN_TOPIC, RETRY_TOPIC, REVIVE_QUEUE, Handle
from appliance.broker.pop.lease_book import LEASES_A_QUEUE_MAX, LEASES_MAX, LeaseBook
from appliance.broker.pop.leases import Key, QueueLeases
from appliance.broker.pop.redelivery import PopServiceParts
from appliance.broker.pop.requests import ANY_QUEUE, FROM_MIN, PopFields
from gantrymq.errors import MessageRejected, RecordError
from gantrymq.message.properties import (
    FIRST_POP_TIME,
    POP_CK,
    PROPERTIES_BYTES_MAX,
    decode_properties,
    encode_properties,
)
from gantrymq.message.record import HEAD, encode_fields, split_record
from gantrymq.message.topics import pop_retry_topic
from store.base.errors import NotReadableNow
from store.base.results import GetMessageResult, GetMessageStatus
from store.queues.filter import Filter

RETRY_FIRST_EVERY = 5
_MOVED = {  # the asked offset is not in the queue: read on where it says
    GetMessageStatus.OFFSET_TOO_SMALL,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY,
}
_PASSED = {
    GetMessageStatus.NO_MATCHED_MESSAGE,
    GetMessageStatus.MESSAGE_WAS_REMOVING,
    GetMessageStatus.OFFSET_FOUND_NULL,
}


class Batch(NamedTuple):
    """What one queue gave. counts: offset and how often that message was handed out before, in order."""

    kind: str
    queue_id: int
    start_offset: int
    counts: list[tuple[int, int]]
    buffers: Sequence[memoryview | bytes]

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _times in self.counts]


class Popped(NamedTuple):
    """What a pop gave. rest: messages that it left in the queues it looked at; has_passed: it passed over some."""

    pop_ms: int
    batches: list[Batch]
    rest: int
    has_passed: bool

    @property
    def message_count(self) -> int:
        return sum(len(batch.counts) for batch in self.batches)


class Taking:
    """One broker's. clock: seconds since the epoch."""

    def __init__(
        self,
        parts: PopServiceParts,
        book: LeaseBook,
        offsets: Callable[[str, str, int], int],
        broker_name: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._parts = parts
        self._book = book
        self._offset_of = offsets
        self._broker_name = broker_name
        self._clock = clock
        self._turn = itertools.count()

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    @property
    def is_full(self) -> bool:
        """Whether so many messages are out that no more go out."""
        return self._book.count + 1 > LEASES_MAX

    def take(self, asked: PopFields, wanted: Filter | None) -> Popped:
        """Hand out up to count_max messages. MessageRejected: its offset has no room, and it leased nothing."""
        pop_ms = self.now_ms()
        left, rest = asked.count_max, 0
        taken: list[Batch] = []
        for key in self._keys(asked):
            try:
                batch = self._take_of(key, asked, wanted, left, pop_ms) if left and not self.is_full else None
            except MessageRejected:
                if not taken:
                    raise
                break  # what is leased already is to be answered
            if batch is not None:
                taken.append(batch)
                left -= len(batch.counts)
            rest += self._rest(key, asked)
        batches = [batch for batch in taken if batch.counts]
        return Popped(pop_ms, batches, rest, has_passed=len(batches) < len(taken))

    def has_any(self, asked: PopFields) -> bool:
        """Whether a pop might find something, its filter aside."""
        now_ms = self.now_ms()
        for key in self._keys(asked):
            queue = self._book.queue(key)
            if queue is not None and asked.is_ordered:
                if queue.is_blocked(now_ms, asked.attempt):
                    continue
                if queue.leases:
                    return True
            if self._rest(key, asked) > 0:
                return True
        return False

    # -- which queues -------------------------------------------------------------------------------------------------

    def _keys(self, asked: PopFields) -> Iterator[Key]:
        turn = next(self._turn)
        own = self._queues(asked.group, asked.topic, asked.queue_id, turn)
        if asked.is_ordered:  # nothing of it goes to a retry topic
            return iter(sorted(own, key=lambda key: not self._is_of(key, asked.attempt))) if asked.attempt else own
        retry = self._queues(asked.group, pop_retry_topic(asked.group, asked.topic), ANY_QUEUE, turn)
        return itertools.chain(own, retry) if turn % RETRY_FIRST_EVERY else itertools.chain(retry, own)

    def _is_of(self, key: Key, attempt: str) -> bool:
        """In order: whether the queue waits for that attempt, whose answer may have been lost."""
        queue = self._book.queues.get(key)
        return queue is not None and queue.attempt == attempt

    def _queues(self, group: str, topic: str, queue_id: int, turn: int) -> Iterator[Key]:
        config = self._parts.topics.configs.get(topic)
        if config is None:
            return
        if queue_id != ANY_QUEUE:
            yield Key(group, topic, queue_id)
            return
        count = config.read_queue_nums
        for at in range(count):
            yield Key(group, topic, (turn + at) % count)

    # -- one queue ----------------------------------------------------------------------------------------------------

    def _take_of(self, key: Key, asked: PopFields, wanted: Filter | None, left: int, pop_ms: int) -> Batch | None:
        queue = self._book.queue(key)
        due_ms = pop_ms + asked.invisible_ms
        if queue is not None and asked.is_ordered:
            if queue.is_blocked(pop_ms, asked.attempt):
                return None
            try:
                again = self._again(key, queue, asked, left)
            except NotReadableNow:  # those behind it wait for it
                return None
            if again is not None:
                return self._out(key, asked, again, queue.read_offset, pop_ms, due_ms)
        elif queue is not None and len(queue.leases) >= LEASES_A_QUEUE_MAX:
            return None
        start = queue.read_offset if queue is not None else self._first_offset(key, asked.init_mode)
        result = self._read(key, start, left, wanted)
        if result is None:
            # The group begins here, whatever comes before its next pop.
            if not self._come_back(key, start) and self._offset_of(*key) < 0:
                self._book.go_to(key, start)
            return None
        found, next_offset = list(_records(result)), result.next_begin_offset
        return self._out(key, asked, found, next_offset, pop_ms, due_ms, start)

    def _again(self, key: Key, queue: QueueLeases, asked: PopFields, left: int) -> list[tuple[int, memoryview]] | None:
        """In order: what was out before and has come back. What the log no longer has is done with.

        NotReadableNow: the oldest can't be handed out yet.
        """
        records: list[tuple[int, memoryview]] = []
        gone: list[int] = []
        for offset in queue.again(left):
            try:
                record = self.record_at(key, offset)
            except NotReadableNow:
                if not records:
                    raise
                break
            if record is None:
                gone.append(offset)
            else:
                records.append((offset, record))
        if gone:
            self._book.end(key, gone)
        return records or None

    def record_at(self, key: Key, offset: int) -> memoryview | None:
        """A message as it is stored; None when the log no longer has it. NotReadableNow."""
        return self._parts.store.shown_message_at(key.topic, key.queue_id, offset)

    def _out(
        self,
        key: Key,
        asked: PopFields,
        found: list[tuple[int, memoryview]],
        next_offset: int,
        pop_ms: int,
        due_ms: int,
        start: int | None = None,
    ) -> Batch | None:
        """Lease what was found, and show it as the topic's own. An empty batch: messages were passed over."""
        offsets = [offset for offset, _record in found]
        is_same = start is None or next_offset == start
        if not offsets and is_same:
            return None
        self._book.hand_out(
            key, offsets, next_offset, pop_ms, due_ms,
            is_ordered=asked.is_ordered, attempt=asked.attempt, client=asked.client,
        )  # fmt: skip
        if not offsets:
            return Batch(OWN_TOPIC, key.queue_id, next_offset, [], [])
        leases = self._book.queues[key].leases
        first = offsets[0] if start is None else start
        counts = [(offset, leases[offset].times) for offset in offsets]
        if key.topic == asked.topic:
            return Batch(OWN_TOPIC, key.queue_id, first, counts, [record for _offset, record in found])
        shown = [self._as_own(record, key, asked, offset, first, pop_ms) for offset, record in found]
        return Batch(RETRY_TOPIC, key.queue_id, first, counts, shown)

    def _as_own(self, record: memoryview, key: Key, asked: PopFields, offset: int, first: int, pop_ms: int) -> bytes:
        """A message of the retry topic as one of the topic that was asked for, with its handle."""
        fields = split_record(record)
        revive = ORDER_QUEUE if asked.is_ordered else REVIVE_QUEUE
        handle = Handle(first, pop_ms, asked.invisible_ms, revive, RETRY_TOPIC, self._broker_name, key.queue_id, offset)
        properties = decode_properties(fields.properties)
        properties[POP_CK] = str(handle)
        properties.setdefault(FIRST_POP_TIME, str(pop_ms))
        encoded = encode_properties(properties).encode()
        if len(encoded) > PROPERTIES_BYTES_MAX:  # it goes as it is: clients make the handle of the answer's header
            return bytes(record)
        body = record[fields.body_position : fields.body_position + fields.body_bytes]
        return encode_fields(fields._replace(topic=asked.topic.encode(), properties=encoded), body)

    def _first_offset(self, key: Key, init_mode: int) -> int:
        """Where the group stands, or begins: see RocketMQ's initMode."""
        offset = self._offset_of(*key)
        if offset >= 0:
            return offset
        store = self._parts.store
        least = store.min_offset(key.topic, key.queue_id)
        if init_mode == FROM_MIN or key.topic == pop_retry_topic(key.group, key.topic) or self._is_young(key, least):
            return max(least, 0)
        return max(store.shown_max_offset(key.topic, key.queue_id) - 1, least)

    def _is_young(self, key: Key, least: int) -> bool:
        """Whether the whole queue is there and recent: then a new group misses nothing of it."""
        if least > 0:
            return False
        first = self._parts.store.consume_queue_units(key.topic, key.queue_id, 0, 1)
        return not first or is_hot(self._parts.store, first[0].physical_offset)

    def _read(self, key: Key, start: int, count_max: int, wanted: Filter | None) -> GetMessageResult | None:
        """What there is from an offset on; None: nothing, and nothing was passed over."""
        get = self._parts.store.get_message
        result = get(key.group, key.topic, key.queue_id, start, count_max, wanted)
        if result.status in _MOVED:
            result = get(key.group, key.topic, key.queue_id, result.next_begin_offset, count_max, wanted)
        if result.status is GetMessageStatus.FOUND or result.status in _PASSED:
            return result
        return None

    def _come_back(self, key: Key, start: int) -> bool:
        """Say if a group stands beyond its queue's end, and have it go on there: it would pass over what comes."""
        end = self._parts.store.max_offset(key.topic, key.queue_id)
        if start <= end:
            return False
        self._book.go_to(key, end)
        return True

    def _rest(self, key: Key, asked: PopFields) -> int:
        """How many messages of a queue wait, in order only if the queue is free."""
        queue = self._book.queues.get(key)
        if queue is not None and asked.is_ordered and queue.is_blocked(self.now_ms(), ""):
            return 0
        end = self._parts.store.shown_max_offset(key.topic, key.queue_id)
        start = queue.read_offset if queue is not None else self._first_offset(key, asked.init_mode)
        if start > end:
            self._come_back(key, start)
            return 0
        return end - start


def _records(result: GetMessageResult) -> Iterator[tuple[int, memoryview]]:
    """Yield each message with its queue offset."""
    for view in result.buffers:
        position = 0
        while position < len(view):
            size, _magic, _crc, _queue_id, _flag, queue_offset, *_rest = HEAD.unpack_from(view, position)
            if size <= 0:
                raise RecordError("record without a size", position=position)
            yield queue_offset, view[position : position + size]
            position += size
