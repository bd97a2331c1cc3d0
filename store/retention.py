"""Deleting what is too old or does not fit: by age at a set hour, by disk use at any time, by an operator's order.

A commit-log file goes by its modification time, never the last one; consume-queue and index files follow when all their
messages are gone. Deciding is quick and happens on the loop; removing names happens on a thread.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from store.commit_log import CommitLog
from store.config import MessageStoreConfig
from store.consume_queue_table import ConsumeQueueTable
from store.index_service import IndexService
from store.mapped_file import MappedFile

logger = logging.getLogger(__name__)

WARNING_RATIO = 0.90  # rocketmq.broker.diskSpaceWarningLevelRatio: writes are refused above
FORCIBLY_RATIO = 0.85  # rocketmq.broker.diskSpaceCleanForciblyRatio: age no longer protects a file above
FILES_PER_ROUND = 10
MANUAL_ROUNDS = 20
FIRST_ROUND_AFTER_S = 60.0
CHECK_SPACE_EVERY_S = 10.0
QUEUES_PER_TURN = 100


def disk_ratio(path: Path) -> float:
    """Return how full the path's file system is, as RocketMQ counts: 0.0 … 1.0. A path to come counts as its parent."""
    while not path.exists() and path != path.parent:
        path = path.parent
    stat = os.statvfs(path)
    used = stat.f_blocks - stat.f_bfree
    total = used + stat.f_bavail
    return math.ceil(100 * used / total) / 100 if total else 0.0


class Cleaner:
    """Decides each round what may go, and removes it."""

    def __init__(
        self,
        config: MessageStoreConfig,
        log: CommitLog,
        queues: ConsumeQueueTable,
        index: IndexService,
        executor: Executor,
        on_disk_full: Callable[[bool], None],
    ) -> None:
        self._config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._executor = executor
        self._on_disk_full = on_disk_full
        self._hours = {int(hour) for hour in config.delete_when.split(";") if hour.strip()}
        self._max_ratio = min(max(config.disk_max_used_percent, 10), 95) / 100
        self._manual_rounds = 0
        self._cleaned_to = -1

    def delete_soon(self) -> None:
        """An operator wants expired files gone now, whatever the hour."""
        self._manual_rounds = MANUAL_ROUNDS

    def check_space(self) -> float:
        """Look at the disk, raise or lower the disk-full flag, return the ratio."""
        ratio = disk_ratio(self._config.commit_log_folder)
        self._on_disk_full(ratio > WARNING_RATIO)
        return ratio

    async def run(self) -> None:
        """Check the space every 10 s, clean every clean_interval_ms."""
        next_round = time.monotonic() + FIRST_ROUND_AFTER_S
        while True:
            ratio = self.check_space()
            now = time.monotonic()
            if now >= next_round:
                next_round = now + self._config.clean_interval_ms / 1000
                await self.clean(time.time(), ratio)
            await asyncio.sleep(min(CHECK_SPACE_EVERY_S, max(next_round - time.monotonic(), 0.1)))

    async def clean(self, now: float, ratio: float) -> int:
        """One round at wall-clock time `now`, with the disk that full; return how many log files went."""
        doomed = self.expired_log_files(now, ratio)
        loop = asyncio.get_running_loop()
        for file in doomed:
            logger.info(
                "commit log file deleted",
                extra={"event": "commit_log_file_deleted", "path": str(file.path), "disk_ratio": ratio},
            )
            await loop.run_in_executor(self._executor, file.delete)
            await asyncio.sleep(0.1)  # as RocketMQ: one at a time spares the disk
        min_offset = self._log.min_offset
        if min_offset > self._cleaned_to:
            self._cleaned_to = min_offset
            await self._clean_queues(min_offset)
            for index_file in self._index.take_expired(min_offset):
                await loop.run_in_executor(self._executor, index_file.delete)
        return len(doomed)

    def expired_log_files(self, now: float, ratio: float) -> list[MappedFile]:
        """Take the files that may go out of the log and return them."""
        manual = self._manual_rounds > 0
        if manual:
            self._manual_rounds -= 1
        immediately = self._config.clean_forcibly_enable and ratio > FORCIBLY_RATIO
        is_hour = time.localtime(now).tm_hour in self._hours
        if not (manual or is_hour or ratio > self._max_ratio):
            return []
        files = self._log.queue.files
        doomed: list[MappedFile] = []
        for file in files[:-1][:FILES_PER_ROUND]:
            if not immediately and now < file.modified_at() + self._config.file_reserved_hours * 3600:
                break
            doomed.append(file)
        del files[: len(doomed)]
        return doomed

    async def _clean_queues(self, min_offset: int) -> None:
        loop = asyncio.get_running_loop()
        for number, queue in enumerate(self._queues):
            paths = queue.forget_files(queue.expired_files(min_offset))
            if paths:
                await loop.run_in_executor(self._executor, _unlink_all, paths)
            queue.correct_min(min_offset)
            if number % QUEUES_PER_TURN == 0:
                await asyncio.sleep(0)


def _unlink_all(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
