"""What is wrong between a store and its disks: it raises the flags that refuse messages, logs, and tells operators.

Flushers and cleaner report here what they met; nothing is looked at here but the disks' fill level, when asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from store.base.config import MessageStoreConfig
from store.base.running_state import RunningFlags, RunningState
from store.index.service import IndexService
from store.log.commit_log import CommitLog
from store.upkeep.disk_space import disk_ratio

logger = logging.getLogger(__name__)

NO_SPACE_TOLD_S = 10.0  # after the last message that found no room: the next one may find some
SLOW_SYNC_S = 1.0  # a longer sync is reported: with SYNC_FLUSH producers wait for it


class StoreHealth:
    """One store's disk errors, and what follows from them. Loop thread only."""

    def __init__(
        self,
        config: MessageStoreConfig,
        state: RunningState,
        log: CommitLog,
        index: IndexService,
        monotonic: Callable[[], float],
    ) -> None:
        self._config = config
        self._state = state
        self._log = log
        self._index = index
        self._monotonic = monotonic
        self._slow_since: float | None = None  # of the clock that is never set
        self._last_error = ""
        self._why_full = ""

    def disk_ratios(self) -> dict[Path, float]:
        """Return how full the disk of each commit-log folder is, 0.0 … 1.0; -1.0: not known. Blocks."""
        return {folder: disk_ratio(folder) for folder in self._config.commit_log_folders}

    def consume_queue_disk_ratio(self) -> float:
        """Return how full the disk of the consume queues is, 0.0 … 1.0; -1.0: not known. Blocks."""
        return disk_ratio(self._config.root / "consumequeue")

    def trouble(self, sync_lasts_s: float) -> str:
        """Say in a sentence what is wrong between the store and its disks; "" when nothing is.

        sync_lasts_s: how long the commit log's sync has been under way, 0.0 when none is.
        """
        flags = self._state.flags
        if flags & RunningFlags.SYNC_ERROR:
            return f"the disk did not take the commit log ({self._last_error}): messages are refused until a restart"
        if flags & RunningFlags.DISK_FULL:
            return self._why_full or "the disk is full: messages are refused"
        if flags & (RunningFlags.QUEUE_ERROR | RunningFlags.INDEX_ERROR):
            what = "consume queues" if flags & RunningFlags.QUEUE_ERROR else "the key index"
            return f"{what} can't be written ({self._last_error}): messages are refused"
        if self._log.no_space and time.monotonic() - self._log.no_space_at < NO_SPACE_TOLD_S:
            return f"the commit log can't grow ({self._log.no_space}): messages are refused"
        if sync_lasts_s > SLOW_SYNC_S:
            return f"the disk is slow: a sync of the commit log has lasted {sync_lasts_s:.1f} s"
        return ""

    # -- reports -------------------------------------------------------------------------------------------------

    def sync_failed(self, error: OSError) -> None:
        """The commit log's sync failed: nothing is certain any more, so all is refused until a restart."""
        self._last_error = str(error)
        logger.critical("commit log can't be synced", extra={"event": "sync_error", "error": str(error)})
        self._state.set_flag(RunningFlags.SYNC_ERROR, True)

    def queues_flushed(self, error: OSError | None) -> None:
        """A round of the queue flusher ended, with an error or without. Its units wait in memory after one."""
        if error is not None:
            self._last_error = str(error)
        if error is not None and not self._state.flags & RunningFlags.QUEUE_ERROR:
            logger.error("consume queues can't be written", extra={"event": "queue_error", "error": str(error)})
        if (error is not None) != bool(self._state.flags & RunningFlags.QUEUE_ERROR):
            self._state.set_flag(RunningFlags.QUEUE_ERROR, error is not None)

    def space_seen(self, full: bool, why: str) -> None:
        """The cleaner has looked at the disks. `why`: whose bytes fill them, a sentence, "" when not known."""
        self._why_full = why
        if full != bool(self._state.flags & RunningFlags.DISK_FULL):
            self._state.set_flag(RunningFlags.DISK_FULL, full)
            logger.log(
                logging.ERROR if full else logging.INFO,
                "disk full: writes are rejected" if full else "disk has space again",
                extra={
                    "event": "disk_full" if full else "disk_space",
                    "folder": str(self._config.root),
                    **({"why": why} if full else {}),
                },
            )
        if not full and self._state.flags & RunningFlags.INDEX_ERROR:
            self._index.enabled = self._config.index_enable  # there is space again: the next message tries
            self._state.set_flag(RunningFlags.INDEX_ERROR, False)

    def sync_seen(self, sync_lasts_s: float) -> None:
        """Called once a second: log when a sync begins to take long, and when a slow one has ended."""
        if sync_lasts_s > SLOW_SYNC_S and self._slow_since is None:
            self._slow_since = self._monotonic() - sync_lasts_s
            logger.warning("disk is slow", extra={"event": "disk_slow", "sync_lasts_s": round(sync_lasts_s, 1)})
        elif sync_lasts_s <= SLOW_SYNC_S and self._slow_since is not None:
            took_s = self._monotonic() - self._slow_since - sync_lasts_s
            logger.info("log is on disk", extra={"event": "disk_took_log", "seconds": round(took_s, 1)})
            self._slow_since = None
