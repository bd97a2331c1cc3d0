"""MessageStore, the front door: put messages, get them, find them.

Everything but waiting for the disk happens on one thread, the loop's. A put packs the record, copies it into the mapped
log, and at once feeds queue, index and the arrival listener (RocketMQ has a thread follow the log for that). It takes
microseconds: no lock, no task, no log line, no object but the result. `run` owns the background work.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

from gantrymq.message import properties as names
from gantrymq.message import record, sysflag
from store import recovery
from store.batch_builder import build_batch, head_with_v6
from store.checkpoint import AbortMarker, Checkpoint, StoreLock, Synced
from store.config import MessageStoreConfig
from store.consume_queue import UNIT
from store.delay import DELAY_HINT, DELAY_MARK
from store.discard import Discard
from store.disk_space import DiskForecast
from store.dispatch import BitmapOf
from store.errors import StoreNotRunning
from store.flush import LogFlusher, QueueFlusher
from store.index_rebuild import IndexRebuilder
from store.index_service import PENDING_MAX
from store.read_ahead import read_places
from store.readable_store import ReadableStore
from store.results import PutMessageResult, PutMessageStatus, StoreBatch, StoreMessage
from store.retention import Cleaner
from store.running_state import RunningFlags
from store.timer import TIMER_MARK, TimerRules, without_timer
from store.topic_slot import TopicSlot
from store.transient_pool import Committer

logger = logging.getLogger(__name__)

# (topic, queue id, queue offset of the first message, tags codes of all): once for each put, single or batch
ArrivalListener = Callable[[str, int, int, Sequence[int]], None]

RECENT_BYTES = 64 << 20  # surely in the page cache
ALL_SYNCED = 1 << 62  # after a clean stop
TOPICS_A_TURN = 64
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


class MessageStore(ReadableStore):
    """One store folder. `load`, then `start`, then puts and gets; `run` for as long as it lives; `close` at the end."""

    def __init__(
        self,
        config: MessageStoreConfig,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config, clock, monotonic)
        self.arrival_listener: ArrivalListener | None = None
        root = config.root
        self._clock = clock
        self._monotonic = monotonic
        self._lock = StoreLock(root / "lock")
        self._abort = AbortMarker(root / "abort")
        self._checkpoint = Checkpoint(root / "checkpoint")
        self._discard = Discard(root / "deleted")
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
            self._dispatcher.put_pending,
            self._queue_state,
            self.stats,
        )
        self._index_rebuilder = IndexRebuilder(config, self._log, self._index, self._executor)
        self._cleaner = Cleaner(config, self._log, self._queues, self._index, self._executor, self._disk_full)
        self._ext_enable = config.consume_queue_ext_enable
        self._message_bytes_max = config.message_bytes_max
        self.timer_rules = TimerRules(enabled=config.timer_enable, delay_ms_max=config.timer_delay_max_s * 1000)
        self._loaded = False

    # -- life ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Lock the folder, read and repair it. Blocks. StoreLocked, StoreDamaged."""
        started = time.monotonic()
        if self.config.transient_pool_enable and self.config.is_sync_flush:
            logger.warning("transient pool not used", extra={"event": "transient_pool_unused", "why": "SYNC_FLUSH"})
        self._lock.acquire()
        try:
            clean = not self._abort.exists()
            self._discard.empty()
            self._checkpoint.load()
            self._log.load()
            self._queues.load(ALL_SYNCED if clean else self._checkpoint.synced.end_offset)
            if self._index.enabled:
                self._index.load()
            self._dispatcher.dispatched = recovery.recover(
                self._log,
                self._queues,
                self._index,
                self._checkpoint,
                self._dispatcher.redispatch,
                self._queue_flusher.bound_memory,
                root=self.config.root,
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
        if self._checkpoint.synced.closed_at == self._log.position == self._dispatcher.dispatched:
            ends = (queue.max_physical_offset for queue in self._queues)
            self._checkpoint.synced = Synced(
                self._dispatcher.dispatched, max(ends, default=0), self._index.last_update[1]
            )
        self._dispatcher.catch_up()
        self._dispatcher.put_pending()
        self._log.store_timestamp = max(self._log.store_timestamp, self._checkpoint.physic_ms)
        self._checkpoint.save()
        self._abort.create()
        self._cleaner.check_space()
        self._state.serve(True)

    async def run(self) -> None:
        """The background work: flushing, cleaning, sampling. Ends by cancellation."""
        async with asyncio.TaskGroup() as group:
            if self.config.transient_pool_enable and not self.config.is_sync_flush:
                group.create_task(self._commit_and_tell(), name="committer")
            group.create_task(self._log_flusher.run(), name="log-flusher")
            group.create_task(self._queue_flusher.run(), name="queue-flusher")
            group.create_task(self._cleaner.run(), name="cleaner")
            group.create_task(self._index_rebuilder.run(), name="index-rebuilder")
            group.create_task(self._sample(), name="store-stats")

    def close(self) -> None:
        """Flush everything, mark the stop as clean, unlock. Blocks. Harmless when called again."""
        if not self._loaded:
            return
        was_serving, self._loaded = self._state.serving, False
        self._state.serve(False)
        self._executor.shutdown()  # a flush that outlived run(): two at once would close one descriptor twice
        try:
            if was_serving:
                self._log_flusher.finish()
                self._queue_flusher.finish()
                if not self.flags & ~RunningFlags.DISK_FULL:
                    self._abort.remove()
        finally:
            self._log.close()
            self._queues.close()
            self._index.close()
            self._lock.release()

    @property
    def bitmap_of(self) -> BitmapOf | None:
        """What makes the filter bits of a message, with enableConsumeQueueExt; set it before `load`."""
        return self._dispatcher.bitmap_of

    @bitmap_of.setter
    def bitmap_of(self, bitmap_of: BitmapOf | None) -> None:
        self._dispatcher.bitmap_of = bitmap_of

    # -- put -----------------------------------------------------------------------------------------------------

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
            queue = slot.queues.get(message.queue_id) or self._queues.make(slot, message.queue_id)
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
        queue = slot.queues.get(batch.queue_id) or self._queues.make(slot, batch.queue_id)
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

    def read_ahead(self, places: Sequence[tuple[int, int]]) -> Future[None] | None:
        """Have old records (physical offset, bytes) read into the page cache by a thread; None: no need to wait.

        Looking at a record that is not there would keep the loop for as long as the disk takes.
        """
        recent = self._log.position - RECENT_BYTES
        cold = [
            (file.path, at - file.base, size)
            for at, size in places
            if at < recent and (file := self._log.queue.find(at))
        ]
        return self._executor.submit(read_places, cold) if cold else None

    def when_flushed(self, end_offset: int, callback: Callable[[bool], None]) -> None:
        """Call back on the loop once the disk has the log up to there: True, or False after the timeout."""
        self._log_flusher.when_flushed(end_offset, callback)

    # -- upkeep --------------------------------------------------------------------------------------------------

    def delete_topic(self, topic: str) -> None:
        """Forget a topic's queues and delete their files. Its messages stay in the log until that expires."""
        self._discard.folders(self._queues.remove_topic(topic), self._executor)

    def raise_min_offset(self, topic: str, queue_id: int, offset: int) -> None:
        """Let no message before a queue offset be read any more, until the store is loaded again."""
        queue = self._queues.find(topic, queue_id)
        if queue is not None:
            queue.raise_min(offset)

    def ask_before_delete(self, ask: Callable[[int], Awaitable[bool]]) -> None:
        """Have `ask` say, each time, whether the log below a physical offset may go."""
        self._cleaner.ask_before_delete = ask

    def delete_expired_files_soon(self) -> None:
        """An operator wants expired files gone, whatever the hour."""
        self._cleaner.delete_soon()

    async def clean_expired_queues(self) -> int:
        """Remove queues whose messages have all expired; return how many. The schedule topic's stay.

        Looks at TOPICS_A_TURN topics before others have a turn: there may be thousands, each with many queues.
        """
        removed = 0
        for number, slot in enumerate(list(self._slots.values()), 1):
            if not slot.is_schedule and not slot.is_gone:
                for queue in list(slot.queues.values()):
                    if queue.next_index and queue.max_physical_offset <= self._log.min_offset:
                        self._discard.folders(self._queues.remove_queue(queue), self._executor)
                        removed += 1
            if number % TOPICS_A_TURN == 0:
                await asyncio.sleep(0)
        return removed

    def disk_forecast(self) -> DiskForecast:
        """Return how fast the disk fills up and when it will be full at that rate."""
        return self._cleaner.forecast()

    # -- inside --------------------------------------------------------------------------------------------------

    def _failed(self, status: PutMessageStatus) -> PutMessageResult:
        self.stats.put_failed_times += 1
        return PutMessageResult(status)

    def _note_slow(self, elapsed_s: float) -> None:
        self.stats.slow_put(int(elapsed_s * 1000))
        self._state.note_append(elapsed_s)

    def _disk_full(self, full: bool) -> None:
        if full != bool(self.flags & RunningFlags.DISK_FULL):
            logger.log(
                logging.ERROR if full else logging.INFO,
                "disk full: writes are refused" if full else "disk has space again",
                extra={"event": "disk_full" if full else "disk_space", "folder": str(self.config.root)},
            )
            self.set_flag(RunningFlags.DISK_FULL, full)
        if not full and self.flags & RunningFlags.INDEX_ERROR:
            self._index.enabled = self.config.index_enable  # space came back: the next message tries again
            self.set_flag(RunningFlags.INDEX_ERROR, False)

    def _queue_state(self, error: OSError | None) -> None:
        if error is not None and not self.flags & RunningFlags.QUEUE_ERROR:
            logger.error("consume queues can't be written", extra={"event": "queue_error", "error": str(error)})
        if (error is not None) != bool(self.flags & RunningFlags.QUEUE_ERROR):
            self.set_flag(RunningFlags.QUEUE_ERROR, error is not None)

    def _sync_failed(self, error: OSError) -> None:
        logger.critical("commit log can't be synced", extra={"event": "sync_error", "error": str(error)})
        self.set_flag(RunningFlags.SYNC_ERROR, True)

    async def _commit_and_tell(self) -> None:
        """With the transient pool: listeners hear of a message when readers can see it."""
        listener = self.arrival_listener
        committer = Committer(self._log.commit, self.config.commit_interval_ms, self._executor)
        self.arrival_listener = committer.note
        try:
            await committer.run(listener or (lambda *_arrival: None), self._sync_failed)
        finally:
            self.arrival_listener = listener

    async def _sample(self) -> None:
        while True:
            self.stats.sample(self._clock())
            await asyncio.sleep(1)
