"""What reading, writing and upkeep of one store share: files, state, counters and threads, each made once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

from store.base.config import MessageStoreConfig
from store.base.delay import DelayLevels
from store.base.running_state import RunningState
from store.base.stats import StoreStatsService
from store.index.service import IndexService
from store.log.commit_log import CommitLog
from store.queues.consume_queue_table import ConsumeQueueTable
from store.queues.tags import TagsCodes
from store.startup.dispatch import Dispatcher

THREADS = 4  # for what waits for the disk


class StoreParts:
    """Built by MessageStore alone; the others get it, or some of its parts, in their constructors.

    clock: seconds since the epoch; monotonic: seconds of a clock that is never set.
    """

    def __init__(self, config: MessageStoreConfig, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self.config = config
        self.clock = clock
        self.monotonic = monotonic
        self.delay_levels = DelayLevels(config.delay_levels)
        self.stats = StoreStatsService(clock())
        self.state = RunningState(config.page_cache_busy_ms, monotonic)
        self.log = CommitLog(config)
        self.queues = ConsumeQueueTable(config.root / "consumequeue", config)
        self.index = IndexService(config.root / "index", config, clock)
        self.tags_codes = TagsCodes(self.delay_levels)
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="store")
        # What lasts long, and comes in thousands, has a thread of its own: the log's sync waits behind none of it.
        self.deleter = ThreadPoolExecutor(1, thread_name_prefix="store-delete")
        self.scanner = ThreadPoolExecutor(1, thread_name_prefix="store-scan")
        self.dispatcher = Dispatcher(
            self.log,
            self.queues,
            self.index,
            self.tags_codes,
            self.state,
            ext_enable=config.consume_queue_ext_enable,
        )

    def start_threads(self) -> None:
        """Have all threads run before the loop needs one: starting a thread waits until the kernel has run it.

        With the disk busy that took up to 28 ms, in which no request was served.
        """
        all_there = threading.Barrier(THREADS)
        wait([self.executor.submit(all_there.wait) for _ in range(THREADS)])
        wait([self.deleter.submit(int), self.scanner.submit(int)])

    def stop_threads(self) -> None:
        """Wait for what they do. Folders that were to be deleted then are deleted by the next start."""
        self.executor.shutdown()
        self.deleter.shutdown(cancel_futures=True)
        self.scanner.shutdown(cancel_futures=True)
