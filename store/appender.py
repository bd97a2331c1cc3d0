"""Writing: a message or a batch goes into the commit log, and at once into consume queue and index.

RocketMQ has a thread follow the log and fill queues and index; here the put does it itself. It takes microseconds: no
lock, no task, no log line, no object but the result. All of it runs on the loop's thread.

What holds before and after each put:

1. Below `log.position` stand whole records and, at the ends of files, blank records. They are in the mapped file, so
   they survive a killed process; a power cut takes those that were not synced yet.
2. The records of a queue carry the queue offsets 0, 1, 2, … in the order of the log; `queue.next_index` comes next.
3. Each record below `log.position` has its unit in its queue and its keys in the index or in the list `index.pending`.

A put first does all that can fail: it refuses, checks sizes, makes room. Then it copies the record and moves
`log.position` behind it, then it hands unit and keys on. A crash between any two steps costs nothing that was
acknowledged: a record that is only partly copied lies at the log's end, where recovery finds and cuts it; for a whole
record recovery makes unit and keys from the log.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

from gantrymq.message import properties as names
from gantrymq.message import record, sysflag, topics
from store.base.delay import DELAY_HINT, DELAY_MARK
from store.base.results import PutMessageResult, PutMessageStatus, StoreBatch, StoreMessage
from store.base.stats import SLOW_S
from store.base.timer import TIMER_MARK, TimerRules, due_ms_of, without_timer
from store.batch import FIXED_BYTES, build_batch, head_with_v6
from store.index.service import PENDING_MAX, Pending
from store.parts import StoreParts
from store.queues.consume_queue import UNIT, ConsumeQueue
from store.queues.topic_slot import TopicSlot

# (topic, queue id, queue offset of the first message, tags codes of all): once for each put, single or batch
ArrivalListener = Callable[[str, int, int, Sequence[int]], None]

PROPERTIES_BYTES_MAX = names.PROPERTIES_BYTES_MAX
MESSAGE_MAGIC = record.MESSAGE_MAGIC
V6_BITS = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6
TRANSACTION_MASK = sysflag.TRANSACTION_MASK
TRANSACTION_HIDDEN = (
    sysflag.TRANSACTION_PREPARED,
    sysflag.TRANSACTION_ROLLBACK,
)  # prepared and rolled back: in the log, in no queue
_PUT_OK = PutMessageStatus.PUT_OK
_ILLEGAL = PutMessageStatus.MESSAGE_ILLEGAL
_NO_CODES: tuple[int, ...] = ()

_pack_head = record.HEAD_V4.pack
_pack_length = struct.Struct(">h").pack
_pack_unit = UNIT.pack
_crc32 = zlib.crc32


class Appender:
    """The single writer of a store. Loop thread only."""

    def __init__(self, parts: StoreParts) -> None:
        config = parts.config
        self.arrival_listener: ArrivalListener | None = None
        self.timer_rules = TimerRules(enabled=config.timer_enable, delay_ms_max=config.timer_delay_max_s * 1000)
        self._clock = parts.clock
        self._monotonic = parts.monotonic
        self._state = parts.state
        self._stats = parts.stats
        self._log = parts.log
        self._queues = parts.queues
        self._slots = parts.queues.slots
        self._index = parts.index
        self._tags_codes = parts.tags_codes
        self._delay_levels = parts.delay_levels
        self._dispatcher = parts.dispatcher
        self._ext_enable = config.consume_queue_ext_enable
        self._message_bytes_max = config.message_bytes_max

    def topic_slot(self, topic: str) -> TopicSlot | None:
        """Return what a message or batch for this topic may bring along; None when no record can carry the name."""
        return self._queues.slot(topic)

    # -- one message ---------------------------------------------------------------------------------------------

    def put_message(self, message: StoreMessage, *, delay: bool = True, though_full: bool = False) -> PutMessageResult:
        """Append one message. delay=False: properties that delay it are not obeyed. though_full: see still_refusing."""
        if self._state.refusal is not None and (refusal := self._state.still_refusing(though_full)) is not None:
            return PutMessageResult(refusal)
        properties, body, log = message.properties, message.body, self._log
        is_shown = message.sys_flag & TRANSACTION_MASK not in TRANSACTION_HIDDEN
        if delay and DELAY_HINT in properties and is_shown and (delayed := self._delayed(message)) is not message:
            return self._put_delayed(delayed)
        slot = message.slot
        if slot is None or slot.topic is not message.topic or slot.is_gone:
            slot = self._slots.get(message.topic) or self._queues.slot(message.topic)
        body_bytes, properties_bytes = len(body), len(properties)
        if slot is None or properties_bytes > PROPERTIES_BYTES_MAX:
            return self._failed(_ILLEGAL if slot is None else PutMessageStatus.PROPERTIES_SIZE_EXCEEDED)
        host_bytes = len(message.born_host) + len(message.store_host)
        size = FIXED_BYTES + host_bytes + body_bytes + len(slot.encoded) + properties_bytes
        if body_bytes > self._message_bytes_max or size > log.record_bytes_max:
            return self._failed(_ILLEGAL)
        started, timestamp = self._monotonic(), int(self._clock() * 1000)
        if log.position + size > log.limit and not log.make_room(size):
            return self._failed(PutMessageStatus.CREATE_MAPED_FILE_FAILED)
        # Nothing refuses from here on. The position is read now: make_room may have gone on to the next file.
        position, queue, queue_offset = log.position, None, 0
        if is_shown:
            queue_id, first = message.queue_id, slot.first
            queue = first[queue_id] if 0 <= queue_id < len(first) else self._queues.of(slot, queue_id)
            queue_offset = queue.next_index
        if host_bytes == 16:
            head = _pack_head(
                size, MESSAGE_MAGIC, _crc32(body) & 0x7FFFFFFF, message.queue_id, message.flag, queue_offset, position,
                message.sys_flag & ~V6_BITS, message.born_timestamp, message.born_host, timestamp, message.store_host,
                message.reconsume_times, message.prepared_transaction_offset, body_bytes,
            )  # fmt: skip
        else:
            head = head_with_v6(message, size, queue_offset, position, timestamp)
        # CommitLog.append, inline: a call for it made puts of 100 bytes 2.4 % slower.
        if position + size > log.prepare_at:
            log.request_prepare()
        at = position - log.base
        data = b"".join((head, body, slot.encoded, _pack_length(properties_bytes), properties))
        log.map[at : at + size] = data  # type: ignore[index]  # make_room has opened the map
        log.position = position + size
        log.store_timestamp = timestamp
        # The record counts now. A crash before the next step leaves unit and keys to recovery.
        units, codes = b"", _NO_CODES
        if queue is not None:
            code = self._tags_codes.code(slot, properties, timestamp)
            units, codes = _pack_unit(position, size, code), (code,)
        self._hand_on(queue, size, units, codes, [(slot.prefix_hash, properties, position, timestamp)], started)
        return PutMessageResult(_PUT_OK, position, size, queue_offset, timestamp)

    def _delayed(self, message: StoreMessage) -> StoreMessage | PutMessageStatus:
        """Return the message as it waits, the same one when it need not, or why it can't. A level wins over a timer."""
        if DELAY_MARK in message.properties and self._delay_levels.level_of(message.properties) > 0:
            return self._delay_levels.schedule(without_timer(message))
        if TIMER_MARK in message.properties:
            return self.timer_rules.divert(message, int(self._clock() * 1000))
        return message

    def _put_delayed(self, delayed: StoreMessage | PutMessageStatus) -> PutMessageResult:
        if isinstance(delayed, PutMessageStatus):
            return self._failed(delayed)
        result = self.put_message(delayed, delay=False)
        result.waits_in = delayed.topic
        if delayed.topic == topics.TIMER_TOPIC:
            result.due_ms = due_ms_of(delayed.properties)
        return result

    # -- a batch -------------------------------------------------------------------------------------------------

    def put_batch(self, batch: StoreBatch) -> PutMessageResult:
        """Append the messages of a batch side by side, all or none. RecordError when the body is no batch.

        A crash in the middle of the copy leaves the first of the batch's messages: none was acknowledged.
        """
        if self._state.refusal is not None and (refusal := self._state.still_refusing()) is not None:
            return PutMessageResult(refusal)
        slot = batch.slot
        if slot is None or slot.topic is not batch.topic or slot.is_gone:
            slot = self._slots.get(batch.topic) or self._queues.slot(batch.topic)
        if (
            slot is None
            or len(batch.body) > self._message_bytes_max
            or batch.sys_flag & TRANSACTION_MASK
            or (DELAY_MARK in batch.properties and self._delay_levels.level_of(batch.properties) > 0)
            or TIMER_MARK in batch.properties
        ):
            return self._failed(_ILLEGAL)
        started = self._monotonic()
        timestamp = int(self._clock() * 1000)
        queue = self._queues.of(slot, batch.queue_id)
        log = self._log
        position, first_offset = log.position, queue.next_index
        built = build_batch(self._tags_codes, slot, batch, first_offset, position, timestamp)
        if built is None:
            return self._failed(PutMessageStatus.PROPERTIES_SIZE_EXCEEDED)
        size = built.end - position
        if not size or size > log.record_bytes_max:
            return self._failed(_ILLEGAL)
        if built.end > log.limit:
            if not log.make_room(size):
                return self._failed(PutMessageStatus.CREATE_MAPED_FILE_FAILED)
            if log.position != position:  # the next file: the records have to say other positions
                position = log.position
                built = build_batch(self._tags_codes, slot, batch, first_offset, position, timestamp)
                assert built is not None  # the same sizes as before
        log.append(built.parts, size, timestamp)
        # The records count now. A crash before the next step leaves units and keys to recovery.
        self._hand_on(queue, size, built.units, built.codes, built.pending, started)
        count = len(built.offsets)
        return PutMessageResult(_PUT_OK, position, size, first_offset, timestamp, count, built.offsets)

    # -- what both end with --------------------------------------------------------------------------------------

    def _hand_on(
        self,
        queue: ConsumeQueue | None,
        size: int,
        units: bytes,
        codes: Sequence[int],
        entries: list[Pending],
        started: float,
    ) -> None:
        """The log has the records: give the queue its units, the index its entries, and tell the arrival listener.

        `queue` is None for a message that no queue shows. Nothing here refuses; an index that can't grow switches
        itself off. The listener comes last: it may read what was put, or put more.
        """
        stats = self._stats
        stats.put_times += len(entries)
        stats.put_bytes += size
        if queue is not None:
            first_offset = queue.next_index
            queue.tail += self._extended_units(queue, units, entries) if self._ext_enable else units
            queue.next_index = first_offset + len(codes)
            if not queue.dirty:
                queue.dirty = True
                self._queues.dirty.append(queue)
        index = self._index
        if index.enabled:
            pending = index.pending
            pending += entries
            if len(pending) >= PENDING_MAX:
                self._dispatcher.put_pending()
        if queue is not None and self.arrival_listener is not None:
            self.arrival_listener(queue.topic, queue.queue_id, first_offset, codes)
        elapsed = self._monotonic() - started
        if elapsed >= SLOW_S:
            stats.slow_put(int(elapsed * 1000))
            self._state.note_append(elapsed)

    def _extended_units(self, queue: ConsumeQueue, units: bytes, entries: list[Pending]) -> bytes:
        """Put the third fields of the units into the queue's extension; return units that refer to them."""
        extended = self._dispatcher.extended
        return b"".join(
            _pack_unit(at, size, extended(queue, properties, code, timestamp))
            for (at, size, code), (_hash, properties, _at, timestamp) in zip(
                UNIT.iter_unpack(units), entries, strict=True
            )
        )

    def _failed(self, status: PutMessageStatus) -> PutMessageResult:
        self._stats.put_failed_times += 1
        return PutMessageResult(status)
