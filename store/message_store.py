"""MessageStore, the front of the store: its life and upkeep. Reading is StoreView's, putting is Appender's.

Everything but waiting for the disk happens on one thread, the loop's. `run` owns the background work.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from store.appender import Appender, ArrivalListener
from store.base.config import MessageStoreConfig
from store.base.errors import NoRoomForCopy, StoreNotRunning
from store.base.results import PutMessageResult, StoreBatch, StoreMessage
from store.base.running_state import RunningFlags
from store.index.rebuild import IndexRebuilder
from store.log.transient_pool import Committer
from store.parts import StoreParts
from store.queues.repair import ConsumeQueueRepair
from store.queues.topic_slot import TopicSlot
from store.raw_appender import RawAppender
from store.startup import recovery
from store.startup.checkpoint import AbortMarker, Checkpoint, StoreLock, Synced
from store.startup.dispatch import BitmapOf
from store.startup.format_stamp import STORE, bring_up_to_date
from store.upkeep.discard import Discard
from store.upkeep.flush import LogFlusher, QueueFlusher
from store.upkeep.health import StoreHealth
from store.upkeep.retention import Cleaner
from store.view import StoreView

logger = logging.getLogger(__name__)

ALL_SYNCED = 1 << 62  # after a clean stop
TOPICS_A_TURN = 64


class MessageStore(StoreView):
    """One store folder. `load`, then `start`, then puts and gets; `run` for as long as it lives; `close` at the end.

    All that reads is StoreView's; Appender stores messages, and RunningState says whether they are taken.
    Its parts are public where others use them: `cleaner`, `health`, the flushers, and `parts` with log, queues and
    index. is_copy: it refuses messages, and takes the bytes of another broker's log through `copy`.
    """

    def __init__(
        self,
        config: MessageStoreConfig,
        *,
        is_copy: bool = False,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.parts = parts = StoreParts(config, clock, monotonic)
        parts.state.is_copy, parts.log.is_written_by_map = is_copy, not is_copy
        self.stats = parts.stats
        self.delay_levels = parts.delay_levels
        self._make_upkeep(parts)
        self._repair = ConsumeQueueRepair(parts.log, parts.queues, parts.tags_codes, parts.scanner)
        super().__init__(parts, self._repair)
        self._appender = Appender(parts)
        self.copy = RawAppender(parts)  # the writer of a store that is a copy; it refuses messages
        self.timer_rules = self._appender.timer_rules
        self._loaded = False

    def _make_upkeep(self, parts: StoreParts) -> None:
        """Make what works in the background, and the files that only a start and a stop touch."""
        config, root = parts.config, parts.config.root
        self._lock = StoreLock(root / "lock")
        self._abort = AbortMarker(root / "abort")
        self.is_closed_cleanly = False  # and all of it is on the disk
        self.is_after_crash = False  # the last run may have lost its end: what others keep on disk may be further
        self._discard = Discard(root / "deleted")
        self.checkpoint = Checkpoint(root / "checkpoint")
        self.health = StoreHealth(config, parts.state, parts.log, parts.index, parts.monotonic)
        self.log_flusher = LogFlusher(
            parts.log, self.checkpoint, config, parts.stats, parts.executor, self.health.sync_failed
        )
        self.queue_flusher = QueueFlusher(
            parts.log,
            parts.queues,
            parts.index,
            self.checkpoint,
            config,
            parts.executor,
            parts.dispatcher.put_pending,
            self.health.queues_flushed,
            parts.stats,
        )
        self.index_rebuilder = IndexRebuilder(config, parts.log, parts.index, parts.executor)
        self.cleaner = Cleaner(
            config, parts.log, parts.queues, parts.index, self.checkpoint, parts.executor, self.health.space_seen
        )

    @property
    def arrival_listener(self) -> ArrivalListener | None:
        """Called at the end of each put of messages that a queue shows, on the loop."""
        return self._appender.arrival_listener

    @arrival_listener.setter
    def arrival_listener(self, listener: ArrivalListener | None) -> None:
        self._appender.arrival_listener = self.copy.arrival_listener = listener

    @property
    def bitmap_of(self) -> BitmapOf | None:
        """What makes the filter bits of a message, with enableConsumeQueueExt; set it before `load`."""
        return self.parts.dispatcher.bitmap_of

    @bitmap_of.setter
    def bitmap_of(self, bitmap_of: BitmapOf | None) -> None:
        self.parts.dispatcher.bitmap_of = bitmap_of

    # -- messages ------------------------------------------------------------------------------------------------

    def topic_slot(self, topic: str) -> TopicSlot | None:
        """See Appender.topic_slot."""
        return self._appender.topic_slot(topic)

    def put_message(self, message: StoreMessage, *, delay: bool = True, though_full: bool = False) -> PutMessageResult:
        """See Appender.put_message."""
        return self._appender.put_message(message, delay=delay, though_full=though_full)

    def put_batch(self, batch: StoreBatch) -> PutMessageResult:
        """See Appender.put_batch."""
        return self._appender.put_batch(batch)

    # -- life ----------------------------------------------------------------------------------------------------

    def load(self, *, cut_to: int | None = None) -> None:
        """Lock the folder, read and repair it. Blocks. StoreLocked, StoreDamaged, NewerFormat.

        cut_to: end the log there, see recovery.cut_log.
        """
        started = time.monotonic()
        if self.config.transient_pool_enable and self.config.is_sync_flush:
            logger.warning("transient pool not used", extra={"event": "transient_pool_unused", "why": "SYNC_FLUSH"})
        parts = self.parts
        self._lock.acquire()
        try:
            bring_up_to_date(self.config.root, STORE)
            clean = not self._abort.exists()
            self.is_after_crash = not clean
            self._discard.empty()
            self.checkpoint.load()
            parts.log.load()
            parts.queues.load(ALL_SYNCED if clean else self.checkpoint.synced.end_offset)
            if parts.index.enabled:
                parts.index.load()
            files = recovery.StoreFiles(self.config.root, parts.log, parts.queues, parts.index, self.checkpoint)
            parts.dispatcher.dispatched = recovery.recover(
                files,
                parts.dispatcher,
                self.queue_flusher.bound_memory,
                clean=clean,
                check_crc=self.config.check_crc_on_recover,
            )
            if cut_to is not None:
                recovery.cut_log(files, parts.dispatcher, cut_to)
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
                "min_physical_offset": parts.log.min_offset,
                "max_physical_offset": parts.log.position,
                "topics": len(parts.queues.slots),
                "seconds": round(time.monotonic() - started, 3),
            },
        )

    def start(self) -> None:
        """Feed the queues what they lack, set the abort marker, accept messages. Blocks."""
        if not self._loaded:
            raise StoreNotRunning("load() comes before start()")
        log, queues, dispatcher = self.parts.log, self.parts.queues, self.parts.dispatcher
        self.parts.start_threads()
        queues.count_files()
        if self.checkpoint.synced.closed_at == log.position == dispatcher.dispatched:
            ends = (queue.max_physical_offset for queue in queues)
            self.checkpoint.synced = Synced(
                dispatcher.dispatched,
                max(ends, default=0),
                self.parts.index.last_update[1],
                queue_files=queues.files_below(dispatcher.dispatched),
            )
        dispatcher.catch_up()
        dispatcher.put_pending()
        log.store_timestamp = log.store_timestamp or self.checkpoint.physic_ms
        self.checkpoint.keep_from(log.min_offset)
        self.checkpoint.save()
        self._abort.create()  # before the first message: from here on a stop without close() is a crash
        self.cleaner.begin()
        self.parts.state.serve(True)

    async def run(self) -> None:
        """The background work: flushing, cleaning, sampling. Ends by cancellation."""
        async with asyncio.TaskGroup() as group:
            if self.config.transient_pool_enable and not self.config.is_sync_flush:
                group.create_task(self._commit_and_tell(), name="committer")
            group.create_task(self.log_flusher.run(), name="log-flusher")
            group.create_task(self.queue_flusher.run(), name="queue-flusher")
            group.create_task(self.cleaner.run(), name="cleaner")
            group.create_task(self.index_rebuilder.run(), name="index-rebuilder")
            group.create_task(self._sample(), name="store-stats")

    def flush(self) -> None:
        """Sync everything: log, queues, index, checkpoint. Blocks; not while `run` runs. OSError."""
        self.log_flusher.finish()
        self.queue_flusher.finish()

    def close(self) -> None:
        """Flush everything, mark the stop as clean, unlock. Blocks. Harmless when called again."""
        if not self._loaded:
            return
        was_serving = self._stop_serving()
        self._repair.log_left_out(at_end=True)
        try:
            # After a sync that failed, one that goes well proves nothing: the last promise stays, as after a crash.
            if was_serving and not self.flags & RunningFlags.SYNC_ERROR:
                self.copy.forget_part()
                self.flush()
                if not self.flags & ~RunningFlags.DISK_FULL:
                    self._abort.remove()
                    self.is_closed_cleanly = True
        except (OSError, NoRoomForCopy) as exc:  # the abort marker stays: the next start reads the log again
            logger.error("store not closed cleanly", extra={"event": "store_not_closed", "error": str(exc)})
        finally:
            self.parts.log.close()
            self.parts.queues.close()
            self.parts.index.close()
            self._lock.release()

    def abandon(self) -> None:
        """Leave the folder as a killed process does: nothing is flushed, no stop is marked. For tests of crashes.

        What the kernel takes back from a dead process is given back here: descriptors, maps, threads, lock. `run` must
        have ended. Views of records stay valid. Harmless when called again.
        """
        if not self._loaded:
            return
        self._stop_serving()
        self.parts.log.abandon()
        self.parts.queues.close()
        self.parts.index.close()
        self._lock.release()

    def _stop_serving(self) -> bool:
        """Refuse what comes from now on and end the threads; return whether the store was serving."""
        was_serving, self._loaded = self.parts.state.serving, False
        self.parts.state.serve(False)
        self.parts.stop_threads()  # a flush that outlived run(): two at once would close one descriptor twice
        return was_serving

    def examine(self, topic: str, queue_id: int, queue_offset: int) -> None:
        """A consumer found the message damaged, twice: look at it, and say so in the log."""
        queue = self.parts.queues.find(topic, queue_id)
        if queue is not None:
            self._repair.examine(queue, queue_offset)

    @property
    def lost_messages(self) -> tuple[int, str]:
        """How many messages were found damaged since the start, and where the last of them was; "" for none."""
        return self._repair.lost, self._repair.last_lost

    # -- upkeep --------------------------------------------------------------------------------------------------

    def delete_topic(self, topic: str) -> None:
        """Forget a topic's queues and delete their files. Its messages stay in the log until that expires."""
        self._discard.folders(self.parts.queues.remove_topic(topic), self.parts.deleter)

    def raise_min_offset(self, topic: str, queue_id: int, offset: int) -> None:
        """Let no message before a queue offset be read, until that is taken back or the store is loaded again."""
        queue = self.parts.queues.find(topic, queue_id)
        if queue is not None:
            queue.raise_min(offset)

    def forget_raised_min_offset(self, topic: str, queue_id: int) -> None:
        """Let all messages of the queue be read that the log still has."""
        queue = self.parts.queues.find(topic, queue_id)
        if queue is not None:
            queue.forget_raised_min(self.parts.log.min_offset)

    async def clean_expired_queues(self, on_removed: Callable[[str, int], None] | None = None) -> int:
        """Remove queues whose messages have all expired; return how many. The schedule topic's stay.

        on_removed: gets topic and queue id before another message comes, which is at offset 0.
        Looks at TOPICS_A_TURN topics before others have a turn: there may be thousands, each with many queues.
        """
        log, queues = self.parts.log, self.parts.queues
        removed = 0
        for number, slot in enumerate(list(queues.slots.values()), 1):
            if not slot.is_schedule and not slot.is_gone:
                for queue in list(slot.queues.values()):
                    if queue.next_index and queue.max_physical_offset <= log.min_offset:
                        self._discard.folders(queues.remove_queue(queue), self.parts.deleter)
                        if on_removed is not None:
                            on_removed(queue.topic, queue.queue_id)
                        removed += 1
            if number % TOPICS_A_TURN == 0:
                await asyncio.sleep(0)
        return removed

    # -- state ---------------------------------------------------------------------------------------------------

    @property
    def min_physical_offset(self) -> int:
        """Where the oldest file of the commit log starts; -1 when there is none."""
        return self.parts.log.min_offset

    @property
    def max_physical_offset(self) -> int:
        """Where the next record of the commit log goes."""
        return self.parts.log.position

    @property
    def shown_below(self) -> int:
        """Consumers don't see messages that are stored from there on."""
        return self.parts.log.shown_below

    def hold(self, held: bool) -> None:
        """Refuse messages while another broker takes over from this one, or no longer."""
        self.parts.state.hold(held)

    def require_copies(self, lacking: str) -> None:
        """Refuse messages for lack of copies, which `lacking` says in a sentence; "" when there are enough."""
        self.parts.state.require_copies(lacking)

    def when_flushed(self, end_offset: int, callback: Callable[[bool], None]) -> None:
        """See LogFlusher.when_flushed."""
        self.log_flusher.when_flushed(end_offset, callback)

    def flush_soon(self) -> None:
        """See LogFlusher.flush_soon."""
        self.log_flusher.flush_soon()

    async def until_flushed(self, end_offset: int | None = None) -> bool:
        """Wait until the disk has the log below an offset, or all of it; False when it is too slow, or has failed."""
        flushed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def note(is_flushed: bool) -> None:
            if not flushed.done():  # who waits may have been cancelled
                flushed.set_result(is_flushed)

        self.log_flusher.when_flushed(self.parts.log.position if end_offset is None else end_offset, note)
        return await flushed

    def show_below(self, physical_offset: int) -> None:
        """Show consumers what is stored below the offset, which is a record's end, and no more."""
        self.parts.log.shown_below = physical_offset

    @property
    def flushed_offset(self) -> int:
        """Up to here the disk has the commit log."""
        return self.parts.log.flushed_offset

    @property
    def dispatch_behind_bytes(self) -> int:
        """How much of the log queues and index lack while the store starts; 0 then, since each put fills them."""
        if self.parts.state.serving:
            return 0
        return max(self.parts.log.position - self.parts.dispatcher.dispatched, 0)

    @property
    def is_writeable(self) -> bool:
        return self.parts.state.is_writeable

    @property
    def is_readable(self) -> bool:
        return self.parts.state.is_readable

    @property
    def flags(self) -> RunningFlags:
        """Why messages are refused."""
        return self.parts.state.flags

    def trouble(self) -> str:
        """Say in a sentence what is wrong between the store and its disks; "" when nothing is."""
        return self.health.trouble(self.log_flusher.sync_lasts_s)

    def why_refused(self) -> str:
        """Say in a sentence why no message is taken; "" when it is not known."""
        if self.parts.state.is_copy:
            return "this broker is a slave: messages go to its master"
        if self.parts.state.rival:
            return f"two brokers began the epoch of this log: {self.parts.state.rival}"
        if self.parts.state.is_held:
            return "another broker takes over from this one"
        return self.parts.state.lacks_copies or self.trouble()

    # -- inside --------------------------------------------------------------------------------------------------

    async def _commit_and_tell(self) -> None:
        """With the transient pool: the listener hears of a message when readers can see it."""
        listener = self.arrival_listener
        committer = Committer(self.parts.log.commit, self.config.commit_interval_ms, self.parts.executor)
        self.arrival_listener = committer.note
        try:
            await committer.run(listener or (lambda *_arrival: None), self.health.sync_failed)
        finally:
            self.arrival_listener = listener

    async def _sample(self) -> None:
        while True:
            self.stats.sample(self.parts.clock())
            self._repair.log_left_out()
            self.health.sync_seen(self.log_flusher.sync_lasts_s)
            await asyncio.sleep(1)
