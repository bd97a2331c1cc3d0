"""MessageStore, the front door: its life and upkeep. Putting is in writable_store.py, reading in readable_store.py.

Everything but waiting for the disk happens on one thread, the loop's. `run` owns the background work.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

from store.base.config import MessageStoreConfig
from store.base.errors import StoreNotRunning
from store.base.running_state import RunningFlags
from store.index.rebuild import IndexRebuilder
from store.log.transient_pool import Committer
from store.startup import recovery
from store.startup.checkpoint import AbortMarker, Checkpoint, StoreLock, Synced
from store.startup.dispatch import BitmapOf
from store.startup.format_stamp import STORE, bring_up_to_date
from store.upkeep.discard import Discard
from store.upkeep.disk_share import DiskShares
from store.upkeep.disk_space import DiskForecast
from store.upkeep.flush import LogFlusher, QueueFlusher
from store.upkeep.read_ahead import read_places
from store.upkeep.retention import Cleaner
from store.writable_store import WritableStore

logger = logging.getLogger(__name__)

RECENT_BYTES = 64 << 20  # surely in the page cache
ALL_SYNCED = 1 << 62  # after a clean stop
TOPICS_A_TURN = 64
NO_SPACE_TOLD_S = 10.0  # after the last message that found no room; nobody knows if the next one would
SLOW_SYNC_S = 1.0  # a disk that takes longer is told: whoever waits for it with SYNC_FLUSH wants to know why


class MessageStore(WritableStore):
    """One store folder. `load`, then `start`, then puts and gets; `run` for as long as it lives; `close` at the end."""

    def __init__(
        self,
        config: MessageStoreConfig,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config, clock, monotonic)
        root = config.root
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
        self._loaded = False
        self._slow_since: float | None = None  # of the clock that never jumps
        self._last_error = ""

    # -- life ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Lock the folder, read and repair it. Blocks. StoreLocked, StoreDamaged, NewerFormat."""
        started = time.monotonic()
        if self.config.transient_pool_enable and self.config.is_sync_flush:
            logger.warning("transient pool not used", extra={"event": "transient_pool_unused", "why": "SYNC_FLUSH"})
        self._lock.acquire()
        try:
            bring_up_to_date(self.config.root, STORE)
            clean = not self._abort.exists()
            self._discard.empty()
            self._checkpoint.load()
            self._log.load()
            self._queues.load(ALL_SYNCED if clean else self._checkpoint.synced.end_offset)
            if self._index.enabled:
                self._index.load()
            self._dispatcher.dispatched = recovery.recover(
                recovery.StoreFiles(self.config.root, self._log, self._queues, self._index, self._checkpoint),
                self._dispatcher,
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
        self._start_threads()
        self._queues.count_files()
        if self._checkpoint.synced.closed_at == self._log.position == self._dispatcher.dispatched:
            ends = (queue.max_physical_offset for queue in self._queues)
            self._checkpoint.synced = Synced(
                self._dispatcher.dispatched,
                max(ends, default=0),
                self._index.last_update[1],
                queue_files=self._queues.files_below(self._dispatcher.dispatched),
            )
        self._dispatcher.catch_up()
        self._dispatcher.put_pending()
        self._log.store_timestamp = max(self._log.store_timestamp, self._checkpoint.physic_ms)
        self._checkpoint.save()
        self._abort.create()
        self._cleaner.begin()
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
        self._repair.log_left_out(at_end=True)
        self._executor.shutdown()  # a flush that outlived run(): two at once would close one descriptor twice
        try:
            if was_serving:
                self._log_flusher.finish()
                self._queue_flusher.finish()
                if not self.flags & ~RunningFlags.DISK_FULL:
                    self._abort.remove()
        except OSError as exc:  # the abort marker stays, so the next start reads the log and makes it good
            logger.error("store not closed cleanly", extra={"event": "store_not_closed", "error": str(exc)})
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
        """Let no message before a queue offset be read, until that is taken back or the store is loaded again."""
        queue = self._queues.find(topic, queue_id)
        if queue is not None:
            queue.raise_min(offset)

    def forget_raised_min_offset(self, topic: str, queue_id: int) -> None:
        """Let all messages of the queue be read that the log still has."""
        queue = self._queues.find(topic, queue_id)
        if queue is not None:
            queue.forget_raised_min(self._log.min_offset)

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

    def disk_shares(self) -> DiskShares | None:
        """Return whose bytes the disks hold, as counted within about ten seconds; None before the first time."""
        return self._cleaner.shares

    @property
    def others_fill_disk(self) -> bool:
        """Whether young messages stay on a disk above the mark since others filled it: only refusing is left."""
        return self._cleaner.others_fill

    def why_full(self) -> str:
        """Say in a sentence whose bytes fill the disk while messages are refused for it; "" otherwise."""
        shares = self._cleaner.shares
        if shares is None or not self.flags & RunningFlags.DISK_FULL:
            return ""
        by_whom = ", others filled it" if self.others_fill_disk else ""
        return (
            f"the disk is full{by_whom}: {shares.store_bytes >> 20} MiB are this store's, "
            f"{shares.others_bytes >> 20} MiB are others'"
        )

    def trouble(self) -> str:
        """Say in a sentence what is wrong between the store and its disks; "" when nothing is."""
        flags = self.flags
        if flags & RunningFlags.SYNC_ERROR:
            return f"the disk did not take the commit log ({self._last_error}): messages are refused until a restart"
        if flags & RunningFlags.DISK_FULL:
            return self.why_full() or "the disk is full: messages are refused"
        if flags & (RunningFlags.QUEUE_ERROR | RunningFlags.INDEX_ERROR):
            what = "consume queues" if flags & RunningFlags.QUEUE_ERROR else "the key index"
            return f"{what} can't be written ({self._last_error}): messages are refused"
        if self._log.no_space and time.monotonic() - self._log.no_space_at < NO_SPACE_TOLD_S:
            return f"the commit log can't grow ({self._log.no_space}): messages are refused"
        if (lasts_s := self._log_flusher.sync_lasts_s) > SLOW_SYNC_S:
            return f"the disk is slow: a sync of the commit log has lasted {lasts_s:.1f} s"
        return ""

    # -- inside --------------------------------------------------------------------------------------------------

    def _note_slow_disk(self) -> None:
        lasts_s = self._log_flusher.sync_lasts_s
        if lasts_s > SLOW_SYNC_S and self._slow_since is None:
            self._slow_since = self._monotonic() - lasts_s
            logger.warning("disk is slow", extra={"event": "disk_slow", "sync_lasts_s": round(lasts_s, 1)})
        elif lasts_s <= SLOW_SYNC_S and self._slow_since is not None:
            took_s = self._monotonic() - self._slow_since - lasts_s
            logger.info("disk took the log", extra={"event": "disk_took_log", "seconds": round(took_s, 1)})
            self._slow_since = None

    def _disk_full(self, full: bool) -> None:
        if full != bool(self.flags & RunningFlags.DISK_FULL):
            self.set_flag(RunningFlags.DISK_FULL, full)
            logger.log(
                logging.ERROR if full else logging.INFO,
                "disk full: writes are refused" if full else "disk has space again",
                extra={
                    "event": "disk_full" if full else "disk_space",
                    "folder": str(self.config.root),
                    **({"why": self.why_full()} if full else {}),
                },
            )
        if not full and self.flags & RunningFlags.INDEX_ERROR:
            self._index.enabled = self.config.index_enable  # space came back: the next message tries again
            self.set_flag(RunningFlags.INDEX_ERROR, False)

    def _queue_state(self, error: OSError | None) -> None:
        if error is not None:
            self._last_error = str(error)
        if error is not None and not self.flags & RunningFlags.QUEUE_ERROR:
            logger.error("consume queues can't be written", extra={"event": "queue_error", "error": str(error)})
        if (error is not None) != bool(self.flags & RunningFlags.QUEUE_ERROR):
            self.set_flag(RunningFlags.QUEUE_ERROR, error is not None)

    def _sync_failed(self, error: OSError) -> None:
        self._last_error = str(error)
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
            self._repair.log_left_out()
            self._note_slow_disk()
            await asyncio.sleep(1)
