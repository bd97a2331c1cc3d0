"""A store as its readers see it: messages by queue, key, offset and time, and where queues begin and end.

Nothing here changes the store but its counters. How units and records are read is StoreReader's business.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path

from gantrymq.message.topics import SCHEDULE_TOPIC, TOOLS_GROUP
from store.base.errors import NotReadableNow, StoreNotRunning
from store.base.results import ConsumeQueueUnit, GetMessageResult, QueryMessageResult
from store.base.stats import SLOW_S
from store.parts import StoreParts
from store.queues.consume_queue_ext import ADDRESS_MAX, ExtUnit
from store.queues.filter import Filter
from store.queues.repair import ConsumeQueueRepair
from store.reader import StoreReader

RECENT_BYTES = 64 << 20  # surely in the page cache


class StoreView(StoreReader):
    """The reading half of MessageStore. Loop thread only, but for what `log_reader` returns."""

    def __init__(self, parts: StoreParts, repair: ConsumeQueueRepair) -> None:
        super().__init__(parts, repair)
        self._state = parts.state
        self._stats = parts.stats
        self._monotonic = parts.monotonic
        self._slots = parts.queues.slots
        self._dispatcher = parts.dispatcher
        self._delay_levels = parts.delay_levels
        self._executor = parts.executor
        self._log_file_bytes = parts.config.commit_log_file_bytes

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
        """Return messages of a queue from an offset on. StoreNotRunning.

        `group` is for statistics only: what tools look at is no consuming, and counts nowhere.
        """
        if not self._state.is_readable:
            raise StoreNotRunning("the store is closed or not readable")
        started = self._monotonic()
        result = self.read_queue(topic, queue_id, offset, max_messages, wanted)
        stats = self._stats
        elapsed = self._monotonic() - started
        if elapsed >= SLOW_S:
            stats.slow_get(int(elapsed * 1000))
        if group == TOOLS_GROUP:
            return result
        if result.message_count:
            stats.get_found_times += 1
            stats.get_transferred += result.message_count
        else:
            stats.get_miss_times += 1
        return result

    def shown_message_bytes(self, physical_offset: int) -> memoryview | None:
        """Return one record's bytes, None when no record starts there, or when consumers may not see it yet."""
        if not 0 <= physical_offset < self._log.shown_below:
            return None
        return self.message_bytes(physical_offset)

    def shown_message_at(self, topic: str, queue_id: int, offset: int) -> memoryview | None:
        """The same. NotReadableNow also when consumers may not see it yet."""
        record = self.message_at(topic, queue_id, offset)
        if record is not None and offset >= self.shown_max_offset(topic, queue_id):
            raise NotReadableNow(f"message {offset} of {topic} is not confirmed yet")
        return record

    def query_steps(
        self, topic: str, key: str, max_messages: int, begin_ms: int, end_ms: int
    ) -> Generator[None, None, QueryMessageResult]:
        """Return records by unique key or key that consumers may see; equal hashes of other keys may be among them."""
        self._dispatcher.put_pending()
        return super().query_steps(topic, key, max_messages, begin_ms, end_ms)

    def log_file_start(self, physical_offset: int) -> int:
        """Return where the file that holds the offset begins."""
        return physical_offset - physical_offset % self._log_file_bytes

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

    def log_view(self, physical_offset: int, size_max: int) -> memoryview | bytes:
        """Return the log's bytes from there as a view, at most size_max, and not over a file's end.

        For what is in memory: the caller looks at mapped pages.
        """
        log = self._log
        file = log.queue.find(physical_offset)
        if file is None:
            return b""
        size = min(size_max, log.readable_end - physical_offset, file.end - physical_offset)
        return log.read(physical_offset, size) or b""

    def is_log_in_memory(self, physical_offset: int, size_max: int) -> bool:
        """Whether `log_view` of as much would look at pages that are in memory alone."""
        file = self._log.queue.find(physical_offset)
        if file is None:
            return False
        start = physical_offset - file.base
        return file.is_in_memory(start, min(start + size_max, self._log.readable_end - file.base, file.size))

    def read_ahead(self, places: Sequence[tuple[int, int]]) -> Future[None] | None:
        """Have old records (physical offset, bytes) read into the page cache by a thread; None: no need to wait.

        Looking at a record that is not in memory would keep the loop for as long as the disk takes.
        """
        log = self._log
        recent = log.position - RECENT_BYTES
        cold = [
            (file.path, at - file.base, size) for at, size in places if at < recent and (file := log.queue.find(at))
        ]
        return self._executor.submit(_read_places, cold) if cold else None

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Return the first queue offset whose message is kept; 0 for an unknown queue."""
        queue = self._queues.find(topic, queue_id)
        return queue.min_index if queue is not None else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Return the queue offset the next message will get; 0 for an unknown queue."""
        queue = self._queues.find(topic, queue_id)
        return queue.next_index if queue is not None else 0

    def shown_max_offset(self, topic: str, queue_id: int) -> int:
        """Return the queue offset behind the last message that consumers may see; 0 for an unknown queue."""
        queue = self._queues.find(topic, queue_id)
        return self.shown_max(queue) if queue is not None else 0

    def consume_queue_units(self, topic: str, queue_id: int, offset: int, count: int) -> list[ConsumeQueueUnit]:
        """Return units from a queue offset on; fewer than `count` where a file or the queue ends."""
        units = self.units(topic, queue_id, offset, count)
        if topic == SCHEDULE_TOPIC and any(unit.tags_code <= ADDRESS_MAX for unit in units):
            return [unit._replace(tags_code=self._due_ms(queue_id, unit)) for unit in units]
        return units

    def extended_unit(self, topic: str, queue_id: int, tags_code: int) -> ExtUnit | None:
        """Return what a unit's third field stands for in the queue's extension; None when it is plain or lost."""
        queue = self._queues.find(topic, queue_id)
        return queue.ext.unit(tags_code) if queue is not None and queue.ext is not None else None

    def topics(self) -> set[str]:
        """Return the topics that have queues."""
        return {topic for topic, slot in self._slots.items() if slot.queues}

    def queue_ids(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues that have held a message."""
        slot = self._slots.get(topic)
        return sorted(slot.queues) if slot is not None else []

    def _due_ms(self, queue_id: int, unit: ConsumeQueueUnit) -> int:
        """Return when a delayed message is due, be it in the unit, in its extension, or to be worked out again."""
        queue = self._queues.find(SCHEDULE_TOPIC, queue_id)
        if unit.tags_code > ADDRESS_MAX or queue is None:
            return unit.tags_code
        extended = queue.ext.unit(unit.tags_code) if queue.ext is not None else None
        if extended is not None:
            return extended.tags_code
        return self._log.store_timestamp_at(unit.physical_offset) + self._delay_levels.delay_ms(queue_id + 1)


def _read_places(places: Iterable[tuple[Path, int, int]]) -> None:
    """Read (file, start, bytes) into the page cache. Blocks. Errors are left to the reader, who gets them again."""
    opened: dict[Path, int] = {}
    try:
        for path, start, size_bytes in places:
            if path not in opened:
                opened[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            os.pread(opened[path], size_bytes, start)
    except OSError:
        return
    finally:
        for fd in opened.values():
            os.close(fd)
