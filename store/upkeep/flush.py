"""Bringing the store to disk: the log by time or by request (group commit), queues and index about once a second.

Where more than MANY_DIRTY queues are written to, their units wait for a minute or a GiB of log. Everything that waits
for the disk runs on a thread; the loop only starts it and takes the result. A failed sync is final: the kernel may have
dropped the pages it could not write, so the store refuses messages until a restart.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

from gantrymq.timeouts import wait_for_event
from store.base import file_bytes
from store.base.config import MessageStoreConfig
from store.base.stats import StoreStatsService
from store.index.service import IndexService
from store.log.commit_log import CommitLog
from store.queues.consume_queue_table import ConsumeQueueTable, WriteJob, sync_paths, write_jobs
from store.startup.checkpoint import NOT_KNOWN, Checkpoint, Synced

logger = logging.getLogger(__name__)

LEAST_DIRTY_BYTES = 4 * 4096  # less waits for the thorough flush
THOROUGH_INTERVAL_S = 10.0
SYNC_QUEUES_INTERVAL_S = 3.0  # what was stored since the last one is read again after a crash
FEW_QUEUE_FILES = 256  # more are synced by their whole file system, in one call
MANY_DIRTY = 1024  # so many queues are written less often: their units wait in memory, and cost one write together
WRITE_MANY_INTERVAL_S = 60.0
WRITE_MANY_BYTES = 1 << 30  # or when the log has grown by so much: what is not written is read again after a crash
WRITE_MANY_UNITS = 1 << 20  # or when so many units wait, about 30 MiB of memory
STEPS_WRITTEN_TOGETHER = 64  # of recovery, 8 MiB each
QUEUES_PER_TURN = 256  # the loop gives that many to the writer at a time, in less than a millisecond


class _Waiter(NamedTuple):
    end_offset: int
    since: float
    callback: Callable[[bool], None]


class LogFlusher:
    """Flushes the commit log each interval, and at once while a producer waits for it."""

    def __init__(
        self,
        log: CommitLog,
        checkpoint: Checkpoint,
        config: MessageStoreConfig,
        stats: StoreStatsService,
        executor: Executor,
        on_failure: Callable[[OSError], None],
    ) -> None:
        self._log = log
        self._checkpoint = checkpoint
        self._interval_s = config.flush_interval_ms / 1000
        self._timeout_s = config.sync_flush_timeout_ms / 1000
        self._stats = stats
        self._executor = executor
        self._on_failure = on_failure
        self._waiting: deque[_Waiter] = deque()
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._last_thorough = time.monotonic()
        self._is_due = False
        self._sync_began: float | None = None

    @property
    def sync_lasts_s(self) -> float:
        """How long the disk has been busy with the log's sync that is under way, seconds; 0.0 when none is."""
        return time.monotonic() - self._sync_began if self._sync_began is not None else 0.0

    def when_flushed(self, end_offset: int, callback: Callable[[bool], None]) -> None:
        """Call back once the disk has everything below the offset: True, or False after the timeout or a failure."""
        if self._log.flushed_offset >= end_offset:
            callback(True)
            return
        self._waiting.append(_Waiter(end_offset, time.monotonic(), callback))
        self._wake.set()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._expire)

    def flush_soon(self) -> None:
        """Flush what there is, however little. It does not wait for the disk."""
        self._is_due = True
        self._wake.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                if not self._waiting:
                    self._wake.clear()
                    await self._pause()
                if self._is_worthwhile():
                    # Read before the sync, which does not vouch for what is stored while the disk works. Producers are
                    # told by `_complete` alone, from `flushed_offset`, which moves when the disk has confirmed.
                    stamp = self._log.store_timestamp
                    self._sync_began = time.monotonic()
                    try:
                        await loop.run_in_executor(self._executor, self._log.sync)
                    except OSError as exc:
                        self._on_failure(exc)
                        self._complete_all(False)
                        return
                    finally:
                        self._sync_began = None
                    self._checkpoint.physic_ms = stamp
                self._complete()
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def finish(self) -> None:
        """The last flush. Blocks; OSError. Waiting callbacks are called with its outcome."""
        try:
            self._checkpoint.physic_ms = self._log.store_timestamp
            self._log.sync()
        except OSError:
            self._complete_all(False)
            raise
        self._complete()

    async def _pause(self) -> None:
        await wait_for_event(self._wake, self._interval_s)

    def _is_worthwhile(self) -> bool:
        dirty_bytes = self._log.position - self._log.flushed_offset
        if dirty_bytes <= 0:
            return False
        now = time.monotonic()
        is_due = self._is_due or now - self._last_thorough >= THOROUGH_INTERVAL_S
        if self._waiting or is_due or dirty_bytes >= LEAST_DIRTY_BYTES:
            self._last_thorough, self._is_due = now, False
            return True
        return False

    def _complete(self) -> None:
        flushed, waiting = self._log.flushed_offset, self._waiting
        now = time.monotonic()
        while waiting and waiting[0].end_offset <= flushed:
            waiter = waiting.popleft()
            elapsed_ms = int((now - waiter.since) * 1000)
            if elapsed_ms > 0:
                self._stats.slow_put(elapsed_ms)
            waiter.callback(True)

    def _complete_all(self, flushed: bool) -> None:
        while self._waiting:
            self._waiting.popleft().callback(flushed)

    def _expire(self) -> None:
        """Call back those that waited too long; set the timer for the next."""
        self._timer = None
        deadline = time.monotonic() - self._timeout_s
        while self._waiting and self._waiting[0].since <= deadline:
            self._waiting.popleft().callback(False)
        if self._waiting:
            delay_s = max(self._waiting[0].since - deadline, 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)


class QueueFlusher:
    """Writes new consume-queue units to their files, syncs them and the index, and moves the checkpoint on."""

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueueTable,
        index: IndexService,
        checkpoint: Checkpoint,
        config: MessageStoreConfig,
        executor: Executor,
        put_pending: Callable[[], None],
        on_state: Callable[[OSError | None], None],
        stats: StoreStatsService,
    ) -> None:
        self._log = log
        self._stats = stats
        self._puts_written = 0
        self._queues = queues
        self._index = index
        self._checkpoint = checkpoint
        self._interval_s = config.consume_queue_flush_interval_ms / 1000
        self._executor = executor
        self._put_pending = put_pending  # index entries: on the loop, before anything is synced
        self._on_state = on_state
        self._unsynced: set[Path] = set()
        self._last_write = self._last_sync = time.monotonic()
        self._written_to = 0
        self._steps = 0
        self._queue_end = 0  # end of the last message of all that was written

    async def run(self) -> None:
        """Every interval: write, and now and then sync. A full disk is reported and tried again."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._interval_s)
            self._put_pending()
            due = time.monotonic() - self._last_write >= WRITE_MANY_INTERVAL_S
            due |= self._log.position - self._written_to >= WRITE_MANY_BYTES
            due |= self._stats.put_times - self._puts_written >= WRITE_MANY_UNITS
            due |= self._queues.has_lost_queues  # else the next start would miss their files
            if len(self._queues.dirty) > MANY_DIRTY and not due:
                continue
            self._puts_written = self._stats.put_times
            self._last_write = time.monotonic()
            # Every record below `end` has its unit in a tail or file now, since a put ends within one turn of the loop.
            # So once all tails that are dirty now are written, and then synced, the checkpoint may say `end`.
            # A message whose keys still wait, because the index can't grow, and those behind it are left out.
            waiting = self._index.pending
            stamp, end = self._log.store_timestamp, waiting[0][2] if waiting else self._log.position
            self._written_to = end
            jobs: list[WriteJob] = []
            try:
                for _ in range(0, len(self._queues.dirty), QUEUES_PER_TURN):
                    jobs = self._take_jobs()
                    writing = loop.run_in_executor(self._executor, write_jobs, jobs)
                    self._written(jobs, await _to_its_end(writing))
                jobs = []
                lags = self._unsynced or self._checkpoint.synced.end_offset < self._log.flushed_offset
                is_due = lags and time.monotonic() - self._last_sync >= SYNC_QUEUES_INTERVAL_S
                if is_due or self._queues.has_lost_queues:
                    await loop.run_in_executor(self._executor, self.sync, stamp, end)
            except OSError as exc:
                self._queues.jobs_failed(jobs)
                self._on_state(exc)
            except asyncio.CancelledError:
                self._queues.jobs_failed(jobs)  # the last flush writes them
                raise
            else:
                self._on_state(None)

    def finish(self) -> None:
        """The last round. Blocks; OSError."""
        self._put_pending()
        stamp, end = self._log.store_timestamp, self._log.position
        self.write_out()
        self.sync(stamp, end, closed_at=end)

    def bound_memory(self) -> None:
        """Between two steps of recovery: write what it has made, every so often. Blocks."""
        self._steps += 1
        if self._steps % STEPS_WRITTEN_TOGETHER == 0:
            self.write_out()

    def write_out(self) -> None:
        """Write all units that the files lack, synced or not. Blocks; not while `run` runs."""
        while jobs := self._take_jobs():
            self._written(jobs, write_jobs(jobs))

    def sync(self, stamp: int, end: int, closed_at: int = -1) -> None:
        """Sync all that was written, and note in the checkpoint that it has everything below `end`.

        stamp: store time of the last message below `end`, ms. The checkpoint of a closed store names no such offset:
        a folder that is made to look crashed by hand has to be read from the start. Blocks; OSError.
        """
        # What the checkpoint will say has to hold on disk before it says so, whatever is written meanwhile:
        # 1. The files are those written so far. Files written from here on are left for the next sync.
        paths, self._unsynced = self._unsynced, set()
        # 2. Log, queues and index count together: what the log's own sync has not brought to disk yet is left out.
        synced_end = min(end, self._log.flushed_offset) if closed_at < 0 else 0
        if self._queues.has_lost_queues:  # perhaps that with the newest message
            ends = (queue.max_physical_offset for queue in self._queues)
            self._queue_end = min(self._queue_end, max(ends, default=0))
        queue_files = self._queues.files_below(synced_end) if closed_at < 0 else -1
        # 3. The disk confirms, queues and index; when it does not, all of it is tried again and nothing is promised.
        try:
            _sync_files(paths)
            index_end = self._index.last_update[1]
            index_stamp = self._index.sync()
        except OSError:
            self._unsynced |= paths
            raise
        # 4. Only now the promise, which is synced itself.
        self._last_sync = time.monotonic()
        checkpoint = self._checkpoint
        checkpoint.logics_ms = stamp  # earlier than before where the clock was set back, as RocketMQ's
        checkpoint.index_ms = max(checkpoint.index_ms, index_stamp)
        if checkpoint.kept_from == NOT_KNOWN:  # the first file has come since the start
            checkpoint.keep_from(self._log.min_offset)
        units = sum(queue.unit_count for queue in self._queues) if closed_at >= 0 else -1
        checkpoint.synced = Synced(synced_end, self._queue_end, index_end, closed_at, units, queue_files)
        checkpoint.save()

    def _take_jobs(self) -> list[WriteJob]:
        jobs = self._queues.take_jobs(QUEUES_PER_TURN)
        self._queue_end = max(self._queue_end, max((job.queue.max_physical_offset for job in jobs), default=0))
        return jobs

    def _written(self, jobs: list[WriteJob], paths: list[Path]) -> None:
        if len(self._unsynced) <= FEW_QUEUE_FILES:  # of more the whole file system is synced: no need to name them
            self._unsynced.update(paths)
        self._queues.jobs_done(jobs)


def _sync_files(paths: set[Path]) -> None:
    """Sync these files and the folders that name them."""
    if len(paths) > FEW_QUEUE_FILES:
        for folder in {path.parents[2] for path in paths}:  # extensions may be on another disk
            file_bytes.sync_file_system(folder)
        return
    sync_paths(paths)
    folders = {folder for path in paths for folder in path.parents[:3]}  # queue, topic, consumequeue
    for folder in folders:
        if folder.exists():
            file_bytes.sync_folder(folder)


async def _to_its_end(writing: asyncio.Future[list[Path]]) -> list[Path]:
    """Wait for a write even when cancelled: two writers must not be at the same files."""
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait({writing})
        raise
