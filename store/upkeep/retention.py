"""Deleting what is too old or does not fit: by age at a set hour, by disk use or size at any time, or on request.

A commit-log file goes by its modification time, never the last one; consume-queue and index files follow when all their
messages are gone. Deciding is quick and happens on the loop; looking at disks and removing names happens on a thread.

Files that are not old enough go only when the store filled the disk (disk_share.py), not when others did: no
acknowledged message is deleted for others' bytes, new ones are refused instead. While the disk has room, what a report
reads just now stays a while (reader_marks.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from pathlib import Path

from gantrymq.byte_size import readable
from gantrymq.timeouts import wait_for_event
from store.base.config import MessageStoreConfig
from store.index.service import IndexService
from store.log.commit_log import CommitLog
from store.log.mapped_file import MappedFile
from store.queues.consume_queue import ConsumeQueue
from store.queues.consume_queue_ext import delete_files
from store.queues.consume_queue_table import ConsumeQueueTable
from store.startup.checkpoint import Checkpoint
from store.upkeep.disk_share import DiskShares, ShareCounter
from store.upkeep.disk_space import (
    DiskForecast,
    DiskForecaster,
    DiskSpace,
    disk_ratio,
    joint_space,
)
from store.upkeep.reader_marks import ReaderMarks
from store.upkeep.steady_clock import SteadyClock

logger = logging.getLogger(__name__)

FILES_PER_ROUND = 10
MANUAL_ROUNDS = 20
FIRST_ROUND_AFTER_S = 60.0
QUEUE_FILES_PAUSE_S = 0.1  # after each queue that lost files: it spares the disk
CHECK_SPACE_EVERY_S = 1.0  # a disk fills within seconds, and a refusal has to give the reason
TURN_S = 0.001  # the longest time on the loop before others have a turn


class Cleaner:
    """Decides each round what may go, and removes it."""

    def __init__(
        self,
        config: MessageStoreConfig,
        log: CommitLog,
        queues: ConsumeQueueTable,
        index: IndexService,
        checkpoint: Checkpoint,
        executor: Executor,
        on_space: Callable[[bool, str], None],  # is the disk full, and whose bytes fill it
    ) -> None:
        self._config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._checkpoint = checkpoint
        self._executor = executor
        self._on_space = on_space
        self._forecaster = DiskForecaster(config)
        self._shares = ShareCounter(config)
        self._is_above = False
        self._clock = SteadyClock()  # a clock set ahead by days must not make everything old
        self._manual_rounds = 0
        self._wake = asyncio.Event()
        self._cleaned_to = -1
        self._is_blind = False
        self._readers = ReaderMarks(config.root)
        self.ask_before_delete: Callable[[int], Awaitable[bool]] | None = None  # may the log below this offset go?

    def delete_soon(self) -> None:
        """An operator wants expired files gone now, whatever the hour: in the next 20 rounds, the first at once."""
        self._manual_rounds = MANUAL_ROUNDS
        self._wake.set()

    def begin(self) -> None:
        """Before the first message: look at the disks, and at what is noted of their past. Blocks."""
        self._shares.begin(self._bases())
        self.check_space()

    def check_space(self) -> float:
        """Look at the disks, raise or lower the disk-full flag, return the ratio that decides. Blocks."""
        return self._note_space(*self._look(self._bases(), only_when_full=True))

    def forecast(self) -> DiskForecast:
        return self._forecaster.forecast()

    @property
    def shares(self) -> DiskShares | None:
        """Whose bytes the disks hold, as last counted."""
        return self._shares.last

    @property
    def others_fill(self) -> bool:
        """Whether a disk is above the mark where young files would go, and they stay, since others filled it."""
        config, shares = self._config, self._shares.last
        if shares is None or not self._is_above or config.clean_forcibly_for_others:
            return False
        return shares.own_ratio <= config.forcibly_ratio

    def _who_fills(self) -> str:
        """Say in a sentence whose bytes fill the disk; "" before they were counted."""
        shares = self._shares.last
        if shares is None:
            return ""
        by_whom = ", others filled it" if self.others_fill else ""
        return (
            f"the disk is full{by_whom}: {readable(shares.store_bytes)} are this store's, "
            f"{readable(shares.others_bytes)} are others'"
        )

    async def run(self) -> None:
        """Check the space every second, clean every clean_interval_ms. What fails is reported and tried again."""
        loop = asyncio.get_running_loop()
        next_round = time.monotonic() + FIRST_ROUND_AFTER_S
        while True:
            ratio = self._note_space(*await loop.run_in_executor(self._executor, self._look, self._bases()))
            now = time.monotonic()
            if now >= next_round or self._wake.is_set():
                self._wake.clear()
                next_round = now + self._config.clean_interval_ms / 1000
                try:
                    await self.clean(self._clock.now(), ratio, await self._own_ratio(ratio))
                except OSError as exc:
                    logger.error("cleaning failed", extra={"event": "cleaning_failed", "error": str(exc)})
            await wait_for_event(self._wake, min(CHECK_SPACE_EVERY_S, max(next_round - time.monotonic(), 0.1)))

    async def clean(self, now: float, ratio: float, own_ratio: float | None = None) -> int:
        """One round at wall-clock time `now`, with the disk that full; return how many log files went.

        own_ratio: how full the disk would be without what others added; None when they added nothing.
        """
        deleted = await self._clean_log(now, ratio, ratio if own_ratio is None else own_ratio)
        min_offset = self._log.min_offset
        if min_offset > self._cleaned_to:
            loop = asyncio.get_running_loop()
            for index_file in self._index.take_expired(min_offset):
                await loop.run_in_executor(self._executor, index_file.delete)
            await self._clean_queues(min_offset)
            self._cleaned_to = min_offset
        return deleted

    # -- space ---------------------------------------------------------------------------------------------------

    def _bases(self) -> list[int]:
        return [file.base for file in self._log.queue.files]

    def _look(self, bases: list[int], *, only_when_full: bool = False) -> tuple[float, DiskSpace | None]:
        """Look at the disks, and now and then at whose bytes they hold."""
        ratio, space = self._look_at_disks()
        is_above = ratio > self._config.forcibly_ratio
        if is_above or not only_when_full:
            with contextlib.suppress(OSError):  # a disk that does not answer shows in its ratio
                self._shares.look(bases, at_once=is_above and not self._is_above)
        self._is_above = is_above
        return ratio, space

    async def _own_ratio(self, ratio: float) -> float:
        """Return how full the disk would be without what others added, counted now if it matters; 0.0: not known."""
        if ratio <= self._config.forcibly_ratio:
            return ratio
        loop = asyncio.get_running_loop()
        look = functools.partial(self._shares.look, self._bases(), at_once=True)
        try:
            return (await loop.run_in_executor(self._executor, look)).own_ratio
        except OSError:
            return 0.0

    def _look_at_disks(self) -> tuple[float, DiskSpace | None]:
        """Return the ratio that decides, -1.0 when a disk does not answer, and what all disks have together.

        Of several commit-log folders the one with the most room counts, as new files go there; the consume queues must
        have room as well. A folder nearly full gets no new file as long as another has room.
        """
        folders = self._config.commit_log_folders
        ratios = {folder: disk_ratio(folder) for folder in folders}
        highest = self._config.forcibly_ratio
        self._log.queue.full_folders = {folder for folder, ratio in ratios.items() if not 0 <= ratio <= highest}
        known = [ratio for ratio in ratios.values() if ratio >= 0]
        queue_ratio = disk_ratio(self._config.root / "consumequeue")
        if not known or queue_ratio < 0:
            return -1.0, None
        try:
            space = joint_space(folders)
        except OSError:
            return max(min(known), queue_ratio), None
        ahead = self._log.allocated_ahead_bytes
        return max(min(known), queue_ratio), DiskSpace(max(space.used_bytes - ahead, 0), space.total_bytes)

    def _note_space(self, ratio: float, space: DiskSpace | None) -> float:
        if (ratio < 0) != self._is_blind:
            self._is_blind = ratio < 0
            logger.log(
                logging.ERROR if self._is_blind else logging.INFO,
                "a disk does not answer" if self._is_blind else "all disks answer again",
                extra={"event": "disk_silent" if self._is_blind else "disk_back", "folder": str(self._config.root)},
            )
        if ratio >= 0:  # an unknown ratio is no reason to refuse: a write will show
            full = ratio > self._config.warning_ratio
            self._on_space(full, self._who_fills() if full else "")
        if space is not None:
            self._forecaster.note(time.monotonic(), space)
        return ratio

    # -- commit log ----------------------------------------------------------------------------------------------

    async def _clean_log(self, now: float, ratio: float, own_ratio: float) -> int:
        """Delete up to ten files, the oldest first, one at a time. The first that resists ends the round."""
        manual = self._manual_rounds > 0
        self._manual_rounds -= manual
        filled_by = ratio if self._config.clean_forcibly_for_others else min(ratio, own_ratio)
        at_once = self._config.clean_forcibly_enable and filled_by > self._config.forcibly_ratio
        is_hour = time.localtime(now).tm_hour in self._config.delete_hours
        by_age = manual or is_hour or not 0 <= ratio <= self._config.clean_ratio
        files = self._log.queue.files
        loop = asyncio.get_running_loop()
        deleted = 0
        while deleted < FILES_PER_ROUND and len(files) > 1:
            file = files[0]
            reason = self._reason_to_delete(file, now, by_age=by_age, at_once=by_age and at_once)
            if not reason or await self._is_held(file, ratio):
                break
            # Each step makes the next one safe, and the first that fails ends the round: messages that wait are stored
            # anew; the disk knows that the file may be gone; no reader finds it any more; it goes, or comes back.
            if self.ask_before_delete is not None and not await self.ask_before_delete(file.end):
                break
            try:
                await loop.run_in_executor(self._executor, self._promise_from, file.end)
            except OSError as exc:
                logger.error(
                    "checkpoint can't be written: nothing is deleted",
                    extra={"event": "checkpoint_not_written", "error": str(exc)},
                )
                break
            del files[0]
            try:
                await loop.run_in_executor(self._executor, file.delete)
            except OSError as exc:
                files.insert(0, file)
                logger.error(
                    "commit log file can't be deleted",
                    extra={"event": "commit_log_file_stuck", "path": str(file.path), "error": str(exc)},
                )
                break
            deleted += 1
            logger.info(
                "commit log file deleted",
                extra={
                    "event": "commit_log_file_deleted",
                    "path": str(file.path),
                    "reason": reason,
                    "disk_ratio": ratio,
                },
            )
            await asyncio.sleep(self._config.delete_log_files_pause_ms / 1000)  # one at a time spares the disk
        return deleted

    def _promise_from(self, min_offset: int) -> None:
        """Record on disk that what comes before may be gone, before it is: else a start would miss it. Blocks."""
        self._checkpoint.keep_from(min_offset)
        try:
            self._checkpoint.save()
        except OSError as exc:
            if exc.errno not in (errno.ENOSPC, errno.EDQUOT):  # only what is deleted makes room; the next save says it
                raise

    async def _is_held(self, file: MappedFile, ratio: float) -> bool:
        """Whether a reader outside the broker still reads the file, and the disk has room for it meanwhile."""
        if not 0 <= ratio <= self._config.clean_ratio:
            return False
        lowest = await asyncio.get_running_loop().run_in_executor(self._executor, self._readers.lowest)
        return lowest is not None and lowest < file.end

    def _reason_to_delete(self, file: MappedFile, now: float, *, by_age: bool, at_once: bool) -> str:
        """Return why the oldest file may go, "" when it stays. One that is not on disk yet always stays."""
        if file.end > self._log.flushed_offset:
            return ""
        size_max = self._config.store_bytes_max
        if size_max and self._log.position - file.base > size_max:
            return "size"
        if at_once:
            return "disk"
        try:
            age_s = now - file.modified_at()
        except FileNotFoundError:
            return "gone"  # another process deleted it
        return "age" if by_age and age_s >= self._config.file_reserved_hours * 3600 else ""

    # -- queues --------------------------------------------------------------------------------------------------

    async def _clean_queues(self, min_offset: int) -> None:
        """All that can be: one that fails is told at the end, and holds no others up. OSError."""
        loop = asyncio.get_running_loop()
        failure: OSError | None = None
        turn_ends = time.perf_counter() + TURN_S
        for queue in self._queues:
            try:
                paths = _expired_paths(queue, min_offset)
            except OSError as exc:
                failure, paths = failure or exc, []
            if paths:
                await loop.run_in_executor(self._executor, delete_files, paths)
                await asyncio.sleep(QUEUE_FILES_PAUSE_S)
            elif time.perf_counter() < turn_ends:
                continue
            else:
                await asyncio.sleep(0)
            turn_ends = time.perf_counter() + TURN_S
        if failure is not None:
            raise failure


def _expired_paths(queue: ConsumeQueue, min_offset: int) -> list[Path]:
    """Have a queue forget what is gone, and return its files; from here to their deletion nothing fails. OSError."""
    queue.correct_min(min_offset)
    first = queue.unit_at(queue.min_index) if queue.ext is not None else None
    paths = queue.forget_files(queue.expired_files(min_offset))
    if queue.ext is not None and first is not None:
        paths += queue.ext.forget_before(first.tags_code)
    return paths
