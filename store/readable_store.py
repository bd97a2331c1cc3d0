"""A store as its readers see it: messages by queue, key, offset and time, and how the store is doing.

Nothing here changes the store but its counters. MessageStore adds putting and living.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from gantrymq.message.model import MessageExt
from gantrymq.message.topics import SCHEDULE_TOPIC
from store.base.config import MessageStoreConfig
from store.base.delay import DelayLevels
from store.base.errors import StoreNotRunning
from store.base.results import ConsumeQueueUnit, GetMessageResult, QueryMessageResult
from store.base.running_state import RunningFlags, RunningState
from store.base.stats import StoreStatsService
from store.index.service import IndexService
from store.log.commit_log import CommitLog
from store.queues.consume_queue_ext import ADDRESS_MAX, ExtUnit
from store.queues.consume_queue_table import ConsumeQueueTable
from store.queues.filter import Filter
from store.queues.repair import ConsumeQueueRepair
from store.queues.tags import TagsCodes
from store.reader import StoreReader
from store.startup.dispatch import Dispatcher
from store.upkeep.disk_space import disk_ratio

THREADS = 4  # for what waits for the disk


class ReadableStore:
    """Owns log, queues and index, and answers questions about them."""

    def __init__(self, config: MessageStoreConfig, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self.config = config
        self.delay_levels = DelayLevels(config.delay_levels)
        self.stats = StoreStatsService(clock())
        self._monotonic = monotonic
        self._state = RunningState(config.page_cache_busy_ms, monotonic)
        self._log = CommitLog(config)
        self._queues = ConsumeQueueTable(config.root / "consumequeue", config)
        self._index = IndexService(config.root / "index", config, clock)
        self._tags_codes = TagsCodes(self.delay_levels)
        self._slots = self._queues.slots
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="store")
        self._repair = ConsumeQueueRepair(self._log, self._queues, self._tags_codes, self._executor)
        self._reader = StoreReader(config, self._log, self._queues, self._index, self._repair)
        self._dispatcher = Dispatcher(
            self._log,
            self._queues,
            self._index,
            self._tags_codes,
            self._state,
            ext_enable=config.consume_queue_ext_enable,
        )

    def _start_threads(self) -> None:
        """Have all threads run before the loop needs one: whoever starts one waits until the kernel has run it.

        With the disk busy that took up to 28 ms, in which nobody was served.
        """
        all_there = threading.Barrier(THREADS)
        wait([self._executor.submit(all_there.wait) for _ in range(THREADS)])

    # -- messages -----------------------------------------------------------------------------------------------------

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int,
        wanted: Filter | None = None,
    ) -> GetMessageResult:
        """Return messages of a queue from an offset on. `group` is for statistics only. StoreNotRunning."""
        if not self._state.is_readable:
            raise StoreNotRunning("the store is closed or not readable")
        started = self._monotonic()
        result = self._reader.get_message(topic, queue_id, offset, max_messages, wanted)
        stats = self.stats
        elapsed = self._monotonic() - started
        if elapsed >= 0.001:
            stats.slow_get(int(elapsed * 1000))
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
        self._dispatcher.put_pending()
        return self._reader.query_message(topic, key, max_messages, begin_ms, end_ms)

    def log_file_start(self, physical_offset: int) -> int:
        """Return where the file that holds the offset begins."""
        return physical_offset - physical_offset % self.config.commit_log_file_bytes

    def log_reader(self, physical_offset: int, size_max: int) -> Callable[[], bytes] | None:
        """Return what reads the log's bytes from there, on a thread: at most size_max, and not over a file's end.

        None when nothing can be read there (yet, or any more). The call raises OSError when the file goes meanwhile.
        """
        file = self._log.queue.find(physical_offset)
        end = min(self._log.readable_end, file.end) if file is not None else 0
        if file is None or physical_offset >= end:
            return None
        start, size = physical_offset - file.base, min(size_max, end - physical_offset)
        return lambda: file.peek(start, size)

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

    def extended_unit(self, topic: str, queue_id: int, tags_code: int) -> ExtUnit | None:
        """Return what a unit's third field stands for in the queue's extension; None when it is plain or lost."""
        queue = self._queues.find(topic, queue_id)
        return queue.ext.unit(tags_code) if queue is not None and queue.ext is not None else None

    def properties_of(self, topic: str, queue_id: int, offset: int, count: int) -> list[bytes]:
        """Return the encoded properties of messages of a queue; of fewer where some are not there."""
        return self._reader.properties_of(topic, queue_id, offset, count)

    def topics(self) -> set[str]:
        """Return the topics that have queues."""
        return {topic for topic, slot in self._slots.items() if slot.queues}

    def queue_ids(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues that have held a message."""
        slot = self._slots.get(topic)
        return sorted(slot.queues) if slot is not None else []

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
        return max(self._log.position - self._dispatcher.dispatched, 0) if not self._state.serving else 0

    @property
    def is_writeable(self) -> bool:
        return self._state.is_writeable

    @property
    def is_readable(self) -> bool:
        return self._state.is_readable

    @property
    def flags(self) -> RunningFlags:
        return self._state.flags

    def disk_ratio(self) -> float:
        """Return how full the commit log's disk is, 0.0 … 1.0; of several the one with most room. -1.0: not known."""
        return min((ratio for ratio in self.disk_ratios().values() if ratio >= 0), default=-1.0)

    def disk_ratios(self) -> dict[Path, float]:
        """Return how full the disk of each commit-log folder is."""
        return {folder: disk_ratio(folder) for folder in self.config.commit_log_folders}

    def consume_queue_disk_ratio(self) -> float:
        return disk_ratio(self.config.root / "consumequeue")

    def is_page_cache_busy(self) -> bool:
        """Say if an append has just taken too long: the disk can't keep up, senders should wait."""
        return self._state.is_page_cache_busy()

    def set_flag(self, flag: RunningFlags, on: bool) -> None:
        """Raise or lower a reason to refuse."""
        self._state.set_flag(flag, on)

    def _due_ms(self, queue_id: int, unit: ConsumeQueueUnit) -> int:
        """Return when a delayed message is due, be it in the unit, in its extension, or to be worked out again."""
        queue = self._queues.find(SCHEDULE_TOPIC, queue_id)
        if unit.tags_code > ADDRESS_MAX or queue is None:
            return unit.tags_code
        extended = queue.ext.unit(unit.tags_code) if queue.ext is not None else None
        if extended is not None:
            return extended.tags_code
        return self._log.store_timestamp_at(unit.physical_offset) + self.delay_levels.delay_ms(queue_id + 1)
