"""Putting: a message or a batch into the log, and at once into queue, index and the ears of who waits for it.

A put packs the record, copies it into the mapped log, and feeds the rest (RocketMQ has a thread follow the log for
that). It takes microseconds: no lock, no task, no log line, no object but the result.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

from gantrymq.message import properties as names
from gantrymq.message import record, sysflag
from store.base.config import MessageStoreConfig
from store.base.delay import DELAY_HINT, DELAY_MARK
from store.base.results import PutMessageResult, PutMessageStatus, StoreBatch, StoreMessage
from store.base.timer import TIMER_MARK, TimerRules, without_timer
from store.batch import build_batch, head_with_v6
from store.index.service import PENDING_MAX
from store.queues.consume_queue import UNIT
from store.queues.topic_slot import TopicSlot
from store.readable_store import ReadableStore

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

_pack_head = record.HEAD_V4.pack
_pack_length = struct.Struct(">h").pack
_pack_unit = UNIT.pack
_crc32 = zlib.crc32


class WritableStore(ReadableStore):
    """What puts need of a store. Loop thread only."""

    def __init__(self, config: MessageStoreConfig, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        super().__init__(config, clock, monotonic)
        self.arrival_listener: ArrivalListener | None = None
        self.timer_rules = TimerRules(enabled=config.timer_enable, delay_ms_max=config.timer_delay_max_s * 1000)
        self._clock = clock
        self._ext_enable = config.consume_queue_ext_enable
        self._message_bytes_max = config.message_bytes_max

    def put_message(self, message: StoreMessage, *, delay: bool = True) -> PutMessageResult:
        """Append one message. With delay=False a DELAY property is kept but not obeyed: its delivery is now."""
        if self._state.refusal is not None and (refusal := self._state.still_refusing()) is not None:
            return PutMessageResult(refusal)
        if delay and DELAY_HINT in message.properties and message.sys_flag & TRANSACTION_MASK not in TRANSACTION_HIDDEN:
            delayed = self._delayed(message)
            if delayed is not message:
                return self._put_delayed(delayed)
        slot = message.slot
        if slot is None or slot.topic is not message.topic or slot.is_gone:
            slot = self._slots.get(message.topic) or self._queues.slot(message.topic)
            if slot is None:
                return self._failed(PutMessageStatus.MESSAGE_ILLEGAL)
        body = message.body
        properties = message.properties
        born_host = message.born_host
        store_host = message.store_host
        sys_flag = message.sys_flag
        body_bytes = len(body)
        properties_bytes = len(properties)
        host_bytes = len(born_host) + len(store_host)
        size = 74 + host_bytes + body_bytes + len(slot.encoded) + properties_bytes
        if properties_bytes > PROPERTIES_BYTES_MAX:
            return self._failed(PutMessageStatus.PROPERTIES_SIZE_EXCEEDED)
        log = self._log
        if body_bytes > self._message_bytes_max or size > log.record_bytes_max:
            return self._failed(PutMessageStatus.MESSAGE_ILLEGAL)
        queue = None
        queue_offset = 0
        if sys_flag & TRANSACTION_MASK not in TRANSACTION_HIDDEN:
            queue_id, first = message.queue_id, slot.first
            queue = first[queue_id] if 0 <= queue_id < len(first) else self._queues.of(slot, queue_id)
            queue_offset = queue.next_index
        started = self._monotonic()
        timestamp = int(self._clock() * 1000)
        end = log.position + size
        if end > log.limit:
            if not log.make_room(size):
                return self._failed(PutMessageStatus.CREATE_MAPED_FILE_FAILED)
            end = log.position + size
        if end > log.prepare_at:
            log.request_prepare()
        position = end - size
        if host_bytes == 16:
            head = _pack_head(
                size, MESSAGE_MAGIC, _crc32(body) & 0x7FFFFFFF, message.queue_id, message.flag, queue_offset, position,
                sys_flag & ~V6_BITS, message.born_timestamp, born_host, timestamp, store_host, message.reconsume_times,
                message.prepared_transaction_offset, body_bytes,
            )  # fmt: skip
        else:
            head = head_with_v6(message, size, queue_offset, position, timestamp)
        at = position - log.base
        log.map[at : at + size] = b"".join(  # type: ignore[index]  # make_room has seen to the map
            (head, body, slot.encoded, _pack_length(properties_bytes), properties)
        )
        log.position = end
        log.store_timestamp = timestamp
        stats = self.stats
        stats.put_times += 1
        stats.put_bytes += size

        tags_code = 0
        if queue is not None:
            tags_code = self._tags_codes.code(slot, properties, timestamp)
            if self._ext_enable:
                queue.tail += _pack_unit(
                    position, size, self._dispatcher.extended(queue, properties, tags_code, timestamp)
                )
            else:
                queue.tail += _pack_unit(position, size, tags_code)
            queue.next_index = queue_offset + 1
            if not queue.dirty:
                queue.dirty = True
                self._queues.dirty.append(queue)
        index = self._index
        if index.enabled:
            pending = index.pending
            pending.append((slot.prefix_hash, properties, position, timestamp))
            if len(pending) >= PENDING_MAX:
                self._dispatcher.put_pending()
        if queue is not None and self.arrival_listener is not None:
            self.arrival_listener(slot.topic, message.queue_id, queue_offset, (tags_code,))
        elapsed = self._monotonic() - started
        if elapsed >= 0.001:
            self._note_slow(elapsed)
        return PutMessageResult(_PUT_OK, position, size, queue_offset, timestamp)

    def _delayed(self, message: StoreMessage) -> StoreMessage | PutMessageStatus:
        """Return the message as it waits, the same one when it need not, or why it can't. A level wins over a timer."""
        if DELAY_MARK in message.properties and self.delay_levels.level_of(message.properties) > 0:
            return self.delay_levels.schedule(without_timer(message))
        if TIMER_MARK in message.properties:
            return self.timer_rules.divert(message, int(self._clock() * 1000))
        return message

    def _put_delayed(self, delayed: StoreMessage | PutMessageStatus) -> PutMessageResult:
        if isinstance(delayed, PutMessageStatus):
            return self._failed(delayed)
        result = self.put_message(delayed, delay=False)
        result.waits_in = delayed.topic
        return result

    def topic_slot(self, topic: str) -> TopicSlot | None:
        """Return what a message or batch for this topic may bring along; None when no record could carry the name."""
        return self._queues.slot(topic)

    def put_batch(self, batch: StoreBatch) -> PutMessageResult:
        """Append the messages of a batch side by side, all or none. RecordError when the body is no batch."""
        if self._state.refusal is not None and (refusal := self._state.still_refusing()) is not None:
            return PutMessageResult(refusal)
        slot = batch.slot
        if slot is None or slot.topic is not batch.topic or slot.is_gone:
            slot = self._slots.get(batch.topic) or self._queues.slot(batch.topic)
        if (
            slot is None
            or len(batch.body) > self._message_bytes_max
            or batch.sys_flag & TRANSACTION_MASK
            or (DELAY_MARK in batch.properties and self.delay_levels.level_of(batch.properties) > 0)
            or TIMER_MARK in batch.properties
        ):
            return self._failed(PutMessageStatus.MESSAGE_ILLEGAL)
        log = self._log
        started = self._monotonic()
        timestamp = int(self._clock() * 1000)
        queue = self._queues.of(slot, batch.queue_id)
        first_position, first_offset = log.position, queue.next_index
        built = build_batch(self._tags_codes, slot, batch, first_offset, first_position, timestamp)
        if built is None:
            return self._failed(PutMessageStatus.PROPERTIES_SIZE_EXCEEDED)
        total = built.end - first_position
        if not total or total > log.record_bytes_max:
            return self._failed(PutMessageStatus.MESSAGE_ILLEGAL)
        if built.end > log.limit:
            if not log.make_room(total):
                return self._failed(PutMessageStatus.CREATE_MAPED_FILE_FAILED)
            if log.position != first_position:  # the next file: the records have to say other positions
                first_position = log.position
                built = build_batch(self._tags_codes, slot, batch, first_offset, first_position, timestamp)
                assert built is not None
        if built.end > log.prepare_at:
            log.request_prepare()
        at = first_position - log.base
        log.map[at : at + total] = b"".join(built.parts)  # type: ignore[index]  # make_room has seen to the map
        log.position = built.end
        log.store_timestamp = timestamp
        count = len(built.offsets)
        self.stats.put_times += count
        self.stats.put_bytes += total

        if self._ext_enable:
            plain = UNIT.iter_unpack(built.units)
            extended = self._dispatcher.extended
            built.units = b"".join(
                _pack_unit(at, size, extended(queue, pending[1], code, timestamp))
                for (at, size, code), pending in zip(plain, built.pending, strict=True)
            )
        queue.tail += built.units
        queue.next_index = first_offset + count
        if not queue.dirty:
            queue.dirty = True
            self._queues.dirty.append(queue)
        index = self._index
        if index.enabled:
            pending = index.pending
            pending += built.pending
            if len(pending) >= PENDING_MAX:
                self._dispatcher.put_pending()
        if self.arrival_listener is not None:
            self.arrival_listener(slot.topic, batch.queue_id, first_offset, built.codes)
        elapsed = self._monotonic() - started
        if elapsed >= 0.001:
            self._note_slow(elapsed)
        return PutMessageResult(_PUT_OK, first_position, total, first_offset, timestamp, count, built.offsets)

    # -- inside --------------------------------------------------------------------------------------------------

    def _failed(self, status: PutMessageStatus) -> PutMessageResult:
        self.stats.put_failed_times += 1
        return PutMessageResult(status)

    def _note_slow(self, elapsed_s: float) -> None:
        self.stats.slow_put(int(elapsed_s * 1000))
        self._state.note_append(elapsed_s)
