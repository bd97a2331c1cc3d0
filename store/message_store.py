"""MessageStore, the front door: put messages, get them, find them.

Everything but waiting for the disk happens on one thread, the loop's. A put packs the record, copies it into the mapped
log, and at once feeds queue, index and the arrival listener (RocketMQ has a thread follow the log for that). It takes
microseconds: no lock, no task, no log line, no object but the result. `run` owns the background work.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gantrymq.errors import RecordError
from gantrymq.message import batch as batches
from gantrymq.message import properties as names
from gantrymq.message import record, sysflag
from gantrymq.message.model import MessageExt
from gantrymq.message.topics import SCHEDULE_TOPIC
from store import recovery
from store.checkpoint import AbortMarker, Checkpoint, StoreLock, Synced
from store.commit_log import CommitLog
from store.config import MessageStoreConfig
from store.consume_queue import UNIT, ConsumeQueue
from store.consume_queue_ext import ADDRESS_MAX
from store.consume_queue_table import ConsumeQueueTable
from store.delay import DELAY_MARK, DelayLevels
from store.discard import Discard
from store.disk_space import DiskForecast, disk_ratio
from store.errors import StoreNotRunning
from store.flush import LogFlusher, QueueFlusher
from store.index_service import PENDING_MAX, IndexService, Pending
from store.log_scan import ScannedRecord
from store.reader import StoreReader
from store.results import (
    ConsumeQueueUnit,
    GetMessageResult,
    PutMessageResult,
    PutMessageStatus,
    QueryMessageResult,
    StoreBatch,
    StoreMessage,
    TagFilter,
)
from store.retention import Cleaner
from store.stats import StoreStatsService
from store.topic_slot import TopicSlot

logger = logging.getLogger(__name__)

# (topic, queue id, queue offset of the first message, tags codes of all): once for each put, single or batch
ArrivalListener = Callable[[str, int, int, Sequence[int]], None]

NO_POOL = (
    "transientStorePoolEnable keeps writers off the page cache by answering before readers, or a restarted process, "
    "can see the message; here pages are ready before they are written: an append is as fast and nothing is lost"
)
TAGS_CACHED_MAX = 16384
ALL_SYNCED = 1 << 62  # after a clean stop
GAP_UNITS_MAX = 1_000_000  # a hole in a queue wider than this is no hole but a damaged record
PROPERTIES_BYTES_MAX = names.PROPERTIES_BYTES_MAX
MESSAGE_MAGIC = record.MESSAGE_MAGIC
V6_BITS = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6
TRANSACTION_MASK = sysflag.TRANSACTION_MASK
TRANSACTION_HIDDEN = (
    sysflag.TRANSACTION_PREPARED,
    sysflag.TRANSACTION_ROLLBACK,
)  # prepared and rolled back: in the log, in no queue
_TAGS = names.TAGS.encode()
_TAGS_MARK = _TAGS + b"\x01"
_PUT_OK = PutMessageStatus.PUT_OK

_pack_head = record.HEAD_V4.pack
_pack_length = struct.Struct(">h").pack
_pack_unit = UNIT.pack
_unpack_batch_head = batches.HEAD.unpack_from
_crc32 = zlib.crc32


class RunningFlags(enum.IntFlag):
    """Why a store may refuse (RocketMQ: RunningFlags, with one more)."""

    NOT_READABLE = 1
    NOT_WRITEABLE = 2
    QUEUE_ERROR = 4
    INDEX_ERROR = 8
    DISK_FULL = 16
    SYNC_ERROR = 32  # the disk failed to take what it was given: nothing is certain until a restart


class MessageStore:
    """One store folder. `load`, then `start`, then puts and gets; `run` for as long as it lives; `close` at the end."""

    def __init__(self, config: MessageStoreConfig, *, clock: Callable[[], float] = time.time) -> None:
        self.config = config
        self.arrival_listener: ArrivalListener | None = None
        self.delay_levels = DelayLevels(config.delay_levels)
        self.stats = StoreStatsService(clock())
        self.flags = RunningFlags(0)
        root = config.root
        self._clock = clock
        self._lock = StoreLock(root / "lock")
        self._abort = AbortMarker(root / "abort")
        self._checkpoint = Checkpoint(root / "checkpoint")
        self._log = CommitLog(config)
        self._queues = ConsumeQueueTable(root / "consumequeue", config)
        self._index = IndexService(root / "index", config, clock)
        self._index_enable = config.index_enable
        self._ext_enable = config.consume_queue_ext_enable
        self._discard = Discard(root / "deleted")
        self._slots = self._queues.slots
        self._reader = StoreReader(config, self._log, self._queues, self._index)
        self._executor = ThreadPoolExecutor(max_workers=4, thread_name_prefix="store")
        self._log_flusher = LogFlusher(
            self._log, self._checkpoint, config, self.stats, self._executor, self._sync_failed
        )
        self._queue_flusher = QueueFlusher(
            self._log,
            self._queues,
            self._index,
            self._checkpoint,
            config,
            self._executor,
            self._put_pending,
            self._queue_state,
        )
        self._cleaner = Cleaner(config, self._log, self._queues, self._index, self._executor, self._disk_full)
        self._message_bytes_max = config.message_bytes_max
        self._tags_codes: dict[bytes, int] = {}
        self._dispatched = 0
        self._busy_until = 0.0
        self._loaded = False
        self._serving = False
        self._refusal: PutMessageStatus | None = PutMessageStatus.SERVICE_NOT_AVAILABLE

    # -- life ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Lock the folder, read and repair it. Blocks. StoreLocked, StoreDamaged."""
        started = time.monotonic()
        if self.config.transient_pool_enable:
            logger.warning("transient store pool declined", extra={"event": "transient_pool_declined", "why": NO_POOL})
        self._lock.acquire()
        try:
            clean = not self._abort.exists()
            self._discard.empty()
            self._checkpoint.load()
            self._log.load()
            self._queues.load(ALL_SYNCED if clean else self._checkpoint.synced.end_offset)
            if self._index_enable:
                self._index.load()
            self._dispatched = recovery.recover(
                self._log,
                self._queues,
                self._index,
                self._checkpoint,
                self._redispatch,
                self._queue_flusher.bound_memory,
                clean=clean,
                check_crc=self.config.check_crc_on_recover,
            )
        except BaseException:
            self._lock.release()
            raise
        self._loaded = True
        logger.info(
            "store loaded",
            extra={
                "event": "store_loaded",
                "folder": str(self.config.root),
                "clean": clean,
                "min_physical_offset": self._log.min_offset,
                "max_physical_offset": self._log.position,
                "topics": len(self._slots),
                "seconds": round(time.monotonic() - started, 3),
            },
        )

    def start(self) -> None:
        """Feed queues what they lack, set the abort marker, accept messages. Blocks."""
        if not self._loaded:
            raise StoreNotRunning("load() comes before start()")
        if self._checkpoint.synced.closed_at == self._log.position == self._dispatched:
            ends = (queue.max_physical_offset for queue in self._queues)
            self._checkpoint.synced = Synced(self._dispatched, max(ends, default=0), self._index.last_update[1])
        self._catch_up()
        self._put_pending()
        self._log.store_timestamp = max(self._log.store_timestamp, self._checkpoint.physic_ms)
        self._checkpoint.save()
        self._abort.create()
        self._cleaner.check_space()
        self._serving = True
        self._set_refusal()

    async def run(self) -> None:
        """The background work: flushing, cleaning, sampling. Ends by cancellation."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._log_flusher.run(), name="log-flusher")
            group.create_task(self._queue_flusher.run(), name="queue-flusher")
            group.create_task(self._cleaner.run(), name="cleaner")
            group.create_task(self._sample(), name="store-stats")

    def close(self) -> None:
        """Flush everything, mark the stop as clean, unlock. Blocks. Harmless when called again."""
        if not self._loaded:
            return
        was_serving, self._serving, self._loaded = self._serving, False, False
        self._set_refusal()
        self._executor.shutdown()  # a flush that outlived run(): two at once would close one descriptor twice
        try:
            if was_serving:
                self._catch_up()
                self._log_flusher.finish()
                self._queue_flusher.finish()
                if not self.flags & ~RunningFlags.DISK_FULL:
                    self._abort.remove()
        finally:
            self._log.close()
            self._queues.close()
            self._index.close()
            self._lock.release()

    # -- put -----------------------------------------------------------------------------------------------------

    def put_message(self, message: StoreMessage, *, delay: bool = True) -> PutMessageResult:
        """Append one message. With delay=False a DELAY property is kept but not obeyed: its delivery is now."""
        if self._refusal is not None and (refusal := self._still_refusing()) is not None:
            return PutMessageResult(refusal)
        if delay and DELAY_MARK in message.properties and message.sys_flag & TRANSACTION_MASK not in TRANSACTION_HIDDEN:
            message = self.delay_levels.schedule(message)
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
            queue = slot.queues.get(message.queue_id) or self._queues.make(slot, message.queue_id)
            queue_offset = queue.next_index
        now = self._clock()
        timestamp = int(now * 1000)
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
            head = _head_with_v6(message, size, queue_offset, position, timestamp)
        at = position - log.base
        log.map[at : at + size] = b"".join(  # type: ignore[index]  # make_room has seen to the map
            (head, body, slot.encoded, _pack_length(properties_bytes), properties)
        )
        log.position = end
        log.store_timestamp = timestamp
        stats = self.stats
        stats.put_times += 1
        stats.put_bytes += size
        self._dispatched = end

        tags_code = 0
        if queue is not None:
            tags_code = self._tags_code(slot, properties, timestamp)
            if self._ext_enable:
                queue.tail += _pack_unit(position, size, _extended(queue, tags_code, timestamp))
            else:
                queue.tail += _pack_unit(position, size, tags_code)
            queue.next_index = queue_offset + 1
            queue.max_physical_offset = end
            if not queue.dirty:
                queue.dirty = True
                self._queues.dirty.append(queue)
        if self._index_enable:
            pending = self._index.pending
            pending.append((slot, properties, position, timestamp))
            if len(pending) >= PENDING_MAX:
                self._put_pending()
        if queue is not None and self.arrival_listener is not None:
            self.arrival_listener(slot.topic, message.queue_id, queue_offset, (tags_code,))
        elapsed = self._clock() - now
        if elapsed >= 0.001:
            self._note_slow(elapsed)
        return PutMessageResult(_PUT_OK, position, size, queue_offset, timestamp)

    def put_batch(self, batch: StoreBatch) -> PutMessageResult:
        """Append the messages of a batch side by side, all or none. RecordError when the body is no batch."""
        if self._refusal is not None and (refusal := self._still_refusing()) is not None:
            return PutMessageResult(refusal)
        slot = self._slots.get(batch.topic) or self._queues.slot(batch.topic)
        if (
            slot is None
            or len(batch.body) > self._message_bytes_max
            or batch.sys_flag & TRANSACTION_MASK
            or (DELAY_MARK in batch.properties and self.delay_levels.level_of(batch.properties) > 0)
        ):
            return self._failed(PutMessageStatus.MESSAGE_ILLEGAL)
        log = self._log
        now = self._clock()
        timestamp = int(now * 1000)
        queue = slot.queues.get(batch.queue_id) or self._queues.make(slot, batch.queue_id)
        first_position, first_offset = log.position, queue.next_index
        built = self._build_batch(slot, batch, first_offset, first_position, timestamp)
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
                built = self._build_batch(slot, batch, first_offset, first_position, timestamp)
                assert built is not None
        if built.end > log.prepare_at:
            log.request_prepare()
        at = first_position - log.base
        log.map[at : at + total] = b"".join(built.parts)  # type: ignore[index]  # make_room has seen to the map
        log.position = self._dispatched = built.end
        log.store_timestamp = timestamp
        count = len(built.offsets)
        self.stats.put_times += count
        self.stats.put_bytes += total

        if self._ext_enable:
            plain = UNIT.iter_unpack(b"".join(built.units))
            built.units = [_pack_unit(at, size, _extended(queue, code, timestamp)) for at, size, code in plain]
        queue.tail += b"".join(built.units)
        queue.next_index = first_offset + count
        queue.max_physical_offset = built.end
        if not queue.dirty:
            queue.dirty = True
            self._queues.dirty.append(queue)
        if self._index_enable:
            pending = self._index.pending
            pending += built.pending
            if len(pending) >= PENDING_MAX:
                self._put_pending()
        if self.arrival_listener is not None:
            self.arrival_listener(slot.topic, batch.queue_id, first_offset, built.codes)
        elapsed = self._clock() - now
        if elapsed >= 0.001:
            self._note_slow(elapsed)
        return PutMessageResult(_PUT_OK, first_position, total, first_offset, timestamp, count, tuple(built.offsets))

    def when_flushed(self, end_offset: int, callback: Callable[[bool], None]) -> None:
        """Call back on the loop once the disk has the log up to there: True, or False after the timeout."""
        self._log_flusher.when_flushed(end_offset, callback)

    # -- get -----------------------------------------------------------------------------------------------------

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int,
        tag_filter: TagFilter | None = None,
    ) -> GetMessageResult:
        """Return messages of a queue from an offset on. `group` is for statistics only. StoreNotRunning."""
        if not self._serving or self.flags & 1:
            raise StoreNotRunning("the store is closed or not readable")
        result = self._reader.get_message(topic, queue_id, offset, max_messages, tag_filter)
        stats = self.stats
        if result.message_count:
            stats.get_found_times += 1
            stats.get_transferred += result.message_count
        else:
            stats.get_miss_times += 1
        return result

    def message_bytes(self, physical_offset: int) -> memoryview | None:
        """Return one record's bytes, None when no record starts there."""
        return self._reader.message_bytes(physical_offset)

    def look_message_by_offset(self, physical_offset: int) -> MessageExt | None:
        """Return the message whose record starts there, None when there is none."""
        return self._reader.look_message_by_offset(physical_offset)

    def query_message(self, topic: str, key: str, max_messages: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        """Return records by unique key or key; equal hashes of other keys may be among them."""
        self._put_pending()
        return self._reader.query_message(topic, key, max_messages, begin_ms, end_ms)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Return the first queue offset whose message is kept; 0 for an unknown queue."""
        queue = self._queues.find(topic, queue_id)
        return queue.min_index if queue is not None else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Return the queue offset the next message will get; 0 for an unknown queue."""
        queue = self._queues.find(topic, queue_id)
        return queue.next_index if queue is not None else 0

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Return the queue offset of the message stored nearest to a time."""
        return self._reader.offset_by_time(topic, queue_id, timestamp_ms)

    def store_timestamp(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Return when a message was stored, ms; -1 when it is not there."""
        return self._reader.store_timestamp(topic, queue_id, queue_offset)

    def earliest_store_timestamp(self, topic: str | None = None, queue_id: int = 0) -> int:
        """Return when the oldest message of a queue, or of the store, was stored; -1 when there is none."""
        return self._reader.earliest_store_timestamp(topic, queue_id)

    def consume_queue_units(self, topic: str, queue_id: int, offset: int, count: int) -> list[ConsumeQueueUnit]:
        """Return units from a queue offset on; fewer than `count` where a file or the queue ends."""
        units = self._reader.units(topic, queue_id, offset, count)
        if topic == SCHEDULE_TOPIC and any(unit.tags_code <= ADDRESS_MAX for unit in units):
            return [unit._replace(tags_code=self._due_ms(queue_id, unit)) for unit in units]
        return units

    # -- topics --------------------------------------------------------------------------------------------------

    def topics(self) -> set[str]:
        """Return the topics that have queues."""
        return {topic for topic, slot in self._slots.items() if slot.queues}

    def queue_ids(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues that have held a message."""
        slot = self._slots.get(topic)
        return sorted(slot.queues) if slot is not None else []

    def delete_topic(self, topic: str) -> None:
        """Forget a topic's queues and delete their files. Its messages stay in the log until that expires."""
        self._discard.folders(self._queues.remove_topic(topic), self._executor)

    def delete_expired_files_soon(self) -> None:
        """An operator wants expired files gone, whatever the hour."""
        self._cleaner.delete_soon()

    def clean_expired_queues(self) -> int:
        """Remove queues whose messages have all expired; return how many. The schedule topic's stay."""
        removed = 0
        for queue in list(self._queues):
            slot = self._slots[queue.topic]
            if not slot.is_schedule and queue.next_index and queue.max_physical_offset <= self._log.min_offset:
                self._discard.folders(self._queues.remove_queue(queue), self._executor)
                removed += 1
        return removed

    # -- state ---------------------------------------------------------------------------------------------------

    @property
    def min_physical_offset(self) -> int:
        return self._log.min_offset

    @property
    def max_physical_offset(self) -> int:
        return self._log.position

    @property
    def flushed_offset(self) -> int:
        return self._log.flushed_offset

    @property
    def dispatch_behind_bytes(self) -> int:
        return self._log.position - self._dispatched

    @property
    def is_writeable(self) -> bool:
        return self._refusal is not PutMessageStatus.SERVICE_NOT_AVAILABLE

    @property
    def is_readable(self) -> bool:
        return self._serving and not self.flags & RunningFlags.NOT_READABLE

    def disk_ratio(self) -> float:
        """Return how full the commit log's disk is, 0.0 … 1.0; of several the one with most room. -1.0: not known."""
        return min((ratio for ratio in self.disk_ratios().values() if ratio >= 0), default=-1.0)

    def disk_ratios(self) -> dict[Path, float]:
        """Return how full the disk of each commit-log folder is."""
        return {folder: disk_ratio(folder) for folder in self.config.commit_log_folders}

    def consume_queue_disk_ratio(self) -> float:
        return disk_ratio(self.config.root / "consumequeue")

    def disk_forecast(self) -> DiskForecast:
        """Return how fast the disk fills up and when it will be full at that rate."""
        return self._cleaner.forecast()

    def is_page_cache_busy(self) -> bool:
        """Say if an append has just taken too long: the disk can't keep up, senders should wait."""
        return self._clock() < self._busy_until

    def set_flag(self, flag: RunningFlags, on: bool) -> None:
        """Raise or lower a reason to refuse."""
        self.flags = self.flags | flag if on else self.flags & ~flag
        self._set_refusal()

    # -- inside --------------------------------------------------------------------------------------------------

    def _tags_code(self, slot: TopicSlot, properties: bytes, timestamp: int) -> int:
        """Return the third field of a unit: the tag's hash, or the time a delayed message is due."""
        if slot.is_schedule:
            level = self.delay_levels.level_of(properties)
            if level > 0:
                return timestamp + self.delay_levels.delay_ms(level)
        at = properties.rfind(_TAGS_MARK)
        if at < 0:
            return 0
        if at and properties[at - 1] != 2:
            tag = names.find_property(properties, _TAGS) or b""
        else:
            at += 5
            stop = properties.find(b"\x02", at)
            tag = properties[at:] if stop < 0 else properties[at:stop]
        code = self._tags_codes.get(tag)
        if code is None:
            if len(self._tags_codes) >= TAGS_CACHED_MAX:
                self._tags_codes.clear()
            code = self._tags_codes[tag] = names.string_hash_code(tag.decode("utf-8", "replace"))
        return code

    def _due_ms(self, queue_id: int, unit: ConsumeQueueUnit) -> int:
        """Return when a delayed message is due, be it in the unit, in its extension, or to be worked out again."""
        queue = self._queues.find(SCHEDULE_TOPIC, queue_id)
        if unit.tags_code > ADDRESS_MAX or queue is None:
            return unit.tags_code
        extended = queue.ext.unit(unit.tags_code) if queue.ext is not None else None
        if extended is not None:
            return extended.tags_code
        return self._log.store_timestamp_at(unit.physical_offset) + self.delay_levels.delay_ms(queue_id + 1)

    def _put_pending(self) -> None:
        """Index what is pending. When the disk is full, messages are stored but not found by key until it has space."""
        try:
            self._index.put_pending()
        except OSError as exc:
            self._index_enable = False
            logger.error("key index can't grow", extra={"event": "index_error", "error": str(exc)})
            self.set_flag(RunningFlags.INDEX_ERROR, True)

    def _build_batch(
        self, slot: TopicSlot, batch: StoreBatch, queue_offset: int, position: int, timestamp: int
    ) -> _BuiltBatch | None:
        """Make records and units of a batch's messages, to stand at `position`; nothing is changed.

        None when own and common properties together are longer than a record can say: RocketMQ stores such a record and
        can read neither it nor anything behind it ever again. RecordError when the body is no batch.
        """
        body = batch.body if isinstance(batch.body, bytes) else bytes(batch.body)
        common, encoded = batch.properties, slot.encoded
        separated = b"\x02" + common
        queue_id, born_timestamp, born_host, store_host = (
            batch.queue_id, batch.born_timestamp, batch.born_host, batch.store_host,
        )  # fmt: skip
        sys_flag, reconsume, prepared = batch.sys_flag & ~V6_BITS, batch.reconsume_times, 0
        v4 = len(born_host) + len(store_host) == 16
        fixed = 74 + len(born_host) + len(store_host) + len(encoded)
        is_plain, code_of, tags_codes = not slot.is_schedule, self._tags_code, self._tags_codes
        built = _BuiltBatch()
        parts, units, codes, offsets, pending = built.parts, built.units, built.codes, built.offsets, built.pending
        at, end = 0, len(body)
        while at < end:
            start = at + 20
            try:
                _total, _magic, _crc, flag, body_bytes = _unpack_batch_head(body, at)
                stop = start + body_bytes
                properties_bytes = (body[stop] << 8) + body[stop + 1]
            except (struct.error, IndexError) as exc:
                raise RecordError("batch body ends inside a message", position=at) from exc
            at = stop + 2 + properties_bytes
            if body_bytes < 0 or properties_bytes > PROPERTIES_BYTES_MAX or at > end:
                raise RecordError("batch body says lengths it does not have", position=start - 20)
            properties = body[stop + 2 : at]
            if common:
                properties += separated if properties_bytes and body[at - 1] != 2 else common
                properties_bytes = len(properties)
                if properties_bytes > PROPERTIES_BYTES_MAX:
                    return None
            content = body[start:stop]
            size = fixed + body_bytes + properties_bytes
            if v4:
                head = _pack_head(
                    size, MESSAGE_MAGIC, _crc32(content) & 0x7FFFFFFF, queue_id, flag, queue_offset, position, sys_flag,
                    born_timestamp, born_host, timestamp, store_host, reconsume, prepared, body_bytes,
                )  # fmt: skip
            else:
                single = StoreMessage(
                    slot.topic, queue_id, content, properties, flag, sys_flag, born_timestamp, born_host, store_host,
                    reconsume, prepared,
                )  # fmt: skip
                head = _head_with_v6(single, size, queue_offset, position, timestamp)
            parts += (head, content, encoded, _pack_length(properties_bytes), properties)
            code: int | None = None
            if is_plain:
                tag_at = properties.rfind(_TAGS_MARK)
                if tag_at < 0:
                    code = 0
                elif not tag_at or properties[tag_at - 1] == 2:
                    tag_stop = properties.find(b"\x02", tag_at)
                    code = tags_codes.get(
                        properties[tag_at + 5 : tag_stop] if tag_stop > 0 else properties[tag_at + 5 :]
                    )
            if code is None:
                code = code_of(slot, properties, timestamp)
            codes.append(code)
            units.append(_pack_unit(position, size, code))
            offsets.append(position)
            pending.append((slot, properties, position, timestamp))
            position += size
            queue_offset += 1
        built.end = position
        return built

    def _redispatch(self, fields: ScannedRecord, physical_offset: int) -> None:
        """Feed queue and index from a record that is already in the log; both skip what they have."""
        topic, queue_id, index, sys_flag, size_bytes, timestamp, properties = fields
        try:
            name = topic.decode()
        except UnicodeDecodeError:
            return
        slot = self._slots.get(name) or self._queues.slot(name)
        if slot is None:
            return
        if sys_flag & TRANSACTION_MASK not in TRANSACTION_HIDDEN:
            queue = slot.queues.get(queue_id) or self._queues.make(slot, queue_id)
            if physical_offset + size_bytes > queue.max_physical_offset:
                if index < queue.next_index:  # the queue was deleted and began anew
                    queue.cut(index)
                if queue.next_index < index <= queue.next_index + GAP_UNITS_MAX or queue.next_index == 0 < index:
                    queue.skip_to(index)
                tags_code = self._tags_code(slot, properties, timestamp)
                if self._ext_enable:
                    tags_code = _extended(queue, tags_code, timestamp)
                queue.append(physical_offset, size_bytes, tags_code)
                if not queue.dirty:
                    queue.dirty = True
                    self._queues.dirty.append(queue)
        if self._index_enable:
            pending = self._index.pending
            pending.append((slot, properties, physical_offset, timestamp))
            if len(pending) >= PENDING_MAX:
                self._put_pending()
        self._log.store_timestamp = timestamp

    def _catch_up(self) -> None:
        """Dispatch what the log has and the queues lack."""
        if self._dispatched < self._log.position:
            self._dispatched = recovery.find_end(
                self._log, self._dispatched, check_crc=False, on_record=self._redispatch
            )

    def _failed(self, status: PutMessageStatus) -> PutMessageResult:
        self.stats.put_failed_times += 1
        return PutMessageResult(status)

    def _note_slow(self, elapsed_s: float) -> None:
        self.stats.slow_put(int(elapsed_s * 1000))
        busy_s = self.config.page_cache_busy_ms / 1000
        if elapsed_s > busy_s:
            self._busy_until = self._clock() + busy_s
            self._set_refusal()
            logger.warning("slow append", extra={"event": "slow_append", "seconds": round(elapsed_s, 3)})

    def _set_refusal(self) -> None:
        if not self._serving or self.flags & ~RunningFlags.NOT_READABLE:
            self._refusal = PutMessageStatus.SERVICE_NOT_AVAILABLE
        else:
            self._refusal = PutMessageStatus.OS_PAGE_CACHE_BUSY if self.is_page_cache_busy() else None

    def _still_refusing(self) -> PutMessageStatus | None:
        """Return why a put is refused; being busy ends by itself."""
        if self._refusal is PutMessageStatus.OS_PAGE_CACHE_BUSY:
            self._set_refusal()
        return self._refusal

    def _disk_full(self, full: bool) -> None:
        if full != bool(self.flags & RunningFlags.DISK_FULL):
            logger.log(
                logging.ERROR if full else logging.INFO,
                "disk full: writes are refused" if full else "disk has space again",
                extra={"event": "disk_full" if full else "disk_space", "folder": str(self.config.root)},
            )
            self.set_flag(RunningFlags.DISK_FULL, full)
        if not full and self.flags & RunningFlags.INDEX_ERROR:
            self._index_enable = self.config.index_enable  # space came back: the next message tries again
            self.set_flag(RunningFlags.INDEX_ERROR, False)

    def _queue_state(self, error: OSError | None) -> None:
        if error is not None and not self.flags & RunningFlags.QUEUE_ERROR:
            logger.error("consume queues can't be written", extra={"event": "queue_error", "error": str(error)})
        if (error is not None) != bool(self.flags & RunningFlags.QUEUE_ERROR):
            self.set_flag(RunningFlags.QUEUE_ERROR, error is not None)

    def _sync_failed(self, error: OSError) -> None:
        logger.critical("commit log can't be synced", extra={"event": "sync_error", "error": str(error)})
        self.set_flag(RunningFlags.SYNC_ERROR, True)

    async def _sample(self) -> None:
        while True:
            self.stats.sample(self._clock())
            await asyncio.sleep(1)


class _BuiltBatch:
    """The records of a batch, ready to be joined, with all that dispatch needs of them."""

    __slots__ = ("codes", "end", "offsets", "parts", "pending", "units")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.units: list[bytes] = []
        self.codes: list[int] = []
        self.offsets: list[int] = []
        self.pending: list[Pending] = []
        self.end = 0


def _extended(queue: ConsumeQueue, tags_code: int, store_timestamp: int) -> int:
    """Put the third field of a unit into the queue's extension; return what stands in its place."""
    assert queue.ext is not None
    return queue.ext.append(tags_code, store_timestamp)


def _head_with_v6(message: StoreMessage, size: int, queue_offset: int, position: int, timestamp: int) -> bytes:
    """Pack a record's head when a host is IPv6."""
    sys_flag = record.sys_flag_for_hosts(message.sys_flag, message.born_host, message.store_host)
    return b"".join(
        (
            record.HEAD.pack(
                size, record.MESSAGE_MAGIC, record.body_crc(message.body), message.queue_id, message.flag,
                queue_offset, position, sys_flag, message.born_timestamp,
            ),
            message.born_host,
            record.TIMESTAMP.pack(timestamp),
            message.store_host,
            record.TAIL.pack(message.reconsume_times, message.prepared_transaction_offset, len(message.body)),
        )
    )  # fmt: skip
