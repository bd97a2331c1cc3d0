"""A store folder as a place: its queues and their ends, found in files that a broker may be writing and deleting.

Everything comes from the consume queues, so a query sees what consumers see: no half messages, none that wait for
their time. A running broker's queues reach their files a moment after the messages are stored (GantryMQ: about a
second), and after a kill when it starts again; what is not there yet is read by the next micro-batch.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from gantrymq.contrib.arrow.log_files import log_files
from gantrymq.contrib.arrow.record_blocks import (
    RECORD_BYTES_MIN,
    LogFile,
    RecordBlock,
    bodies_are_sound,
    decode_each,
)
from gantrymq.contrib.arrow.record_search import find_boundary
from gantrymq.contrib.spark.errors import ReadFailed
from gantrymq.contrib.spark.options import ReadOptions
from gantrymq.contrib.spark.places import Found, chosen, is_internal
from gantrymq.contrib.spark.ranges import Bounds, Partition, Queue, QueueRange
from gantrymq.contrib.spark.store_queue import FILLER_SIZE, QueueFiles
from gantrymq.contrib.spark.store_read import StoreReading
from gantrymq.errors import ConfigError

SLICE_BYTES = 128 << 20  # of the log, for one task
SLICE_MESSAGES_MIN = 50_000  # with fewer a task is mostly start-up
SLICES_MAX = 10_000


class StorePlace:
    """The folder of one broker, as it is now. Raises LogUnreadable when it has no commit log."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.path is not None
        self._options = options
        self._queues_folder = options.path / "consumequeue"
        self._log: list[LogFile] = log_files(options.commit_log)
        self._known: dict[Queue, QueueFiles] = {}
        self._descriptors: dict[str, int] = {}

    def queues(self, *, must_exist: bool) -> list[Queue]:
        selection = self._options.selection
        topics = sorted(self._folders(self._queues_folder))
        missing = [topic for topic in selection.named if topic not in topics]
        if missing and must_exist:
            raise ConfigError(
                f"{self._queues_folder} has no topic {missing[0]}; it has {', '.join(topics[:20]) or 'none'}"
            )
        wanted = [topic for topic in topics if selection.wants_topic(topic, is_internal=is_internal(topic))]
        found = [
            Queue(topic, "", int(queue_id))
            for topic in wanted
            for queue_id in self._folders(self._queues_folder / topic)
            if queue_id.isdecimal()
        ]
        return chosen(found, selection)

    def bounds(self, queues: Iterable[Queue]) -> dict[Queue, Bounds]:
        log_begin = self._log[0].start if self._log else 0
        found = {}
        for queue in queues:
            with contextlib.suppress(FileNotFoundError):  # deleted with its topic, just now
                files = self._files(queue)
                end = self._sound_end(files)
                found[queue] = Bounds(files.first_real(files.first_from(log_begin, files.first, end), end), end)
        return found

    def at_time(self, times_ms: Mapping[Queue, int]) -> dict[Queue, int]:
        bounds = self.bounds(times_ms)
        return {queue: self._first_since(queue, found, times_ms[queue]) for queue, found in bounds.items()}

    def _first_since(self, queue: Queue, found: Bounds, time_ms: int) -> int:
        def is_since(place: int, size_bytes: int) -> bool | None:
            stored_ms = self._store_timestamp(place, size_bytes)
            return None if stored_ms is None else stored_ms >= time_ms

        return self._files(queue).first_where(found.begin, found.end, is_since)

    def partitions(self, ranges: Sequence[QueueRange], partitions_min: int) -> list[Partition]:
        """Slices of the log: a task reads its part from one end to the other, for all queues at once."""
        spans = [self._span(item) for item in ranges]
        known = [span for span in spans if span is not None]
        if not known:
            return [Partition(ranges)] if ranges else []
        begin, end = min(first for first, _ in known), max(last for _, last in known)
        messages = sum(map(len, ranges))
        by_size = min(-(-(end - begin) // SLICE_BYTES), -(-messages // SLICE_MESSAGES_MIN))
        count = max(1, min(SLICES_MAX, messages, max(partitions_min, by_size)))
        cuts = [begin + (end - begin) * number // count for number in range(1, count)]
        pieces: list[list[QueueRange]] = [[] for _ in range(count)]
        for item in ranges:
            for number, piece in enumerate(self._cut(item, cuts)):
                if len(piece):
                    pieces[number].append(piece)
        return [Partition(piece) for piece in pieces if piece]

    def read(self, partition: Partition, *, checks_bodies: bool) -> Iterator[Found]:
        reading = StoreReading(self._options.commit_log, self._listed, checks_bodies=checks_bodies)
        for block, lost in reading.read(partition.ranges):
            yield Found(block, lost, self._options.broker_name)

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    # -- queues -------------------------------------------------------------------------------------------------------

    def _folders(self, folder: Path) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                return [entry.name for entry in entries if entry.is_dir()]
        except FileNotFoundError:
            return []  # a store without a message; or a topic deleted just now

    def _files(self, queue: Queue) -> QueueFiles:
        files = self._known.get(queue)
        if files is None:
            files = self._known[queue] = self._listed(queue)
        return files

    def _listed(self, queue: Queue) -> QueueFiles:
        return QueueFiles(self._queues_folder / queue.topic / str(queue.queue_id), queue)

    def _sound_end(self, files: QueueFiles) -> int:
        """The queue's end, without units at its tail whose messages are not whole: power was lost, or is being cut.

        The log has nothing behind those: what is not whole before a whole message is damaged, and belongs to the queue.
        """
        end, first = files.end(), files.first
        while end > first and not self._is_sound(files, end - 1) and not self._has_more_behind(files, end - 1):
            end -= 1
        return end

    def _has_more_behind(self, files: QueueFiles, index: int) -> bool:
        place = int(files.units(index, index + 1)[0]["physical_offset"])
        at = next((number for number, file in enumerate(self._log) if file.start <= place < file.end), len(self._log))
        spans = [(file, max(place + 1, file.start)) for file in self._log[at : at + 2]]
        return any(find_boundary(file, begin, file.end) is not None for file, begin in spans)

    def _is_sound(self, files: QueueFiles, index: int) -> bool:
        unit = files.units(index, index + 1)[0]
        place, size_bytes = int(unit["physical_offset"]), int(unit["size_bytes"])
        if size_bytes == FILLER_SIZE or (self._log and place < self._log[0].start):
            return True
        try:
            record = self._record(place, size_bytes)
        except (FileNotFoundError, ReadFailed):
            return False
        return record is not None and int(record.queue_offset[0]) == index and bool(bodies_are_sound(record)[0])

    # -- the log ------------------------------------------------------------------------------------------------------

    def _store_timestamp(self, place: int, size_bytes: int) -> int | None:
        """None: the record there is damaged."""
        record = self._record(place, size_bytes)
        return int(record.store_timestamp[0]) if record is not None else None

    def _record(self, place: int, size_bytes: int) -> RecordBlock | None:
        """The one record at this place, None when it is damaged. ReadFailed, FileNotFoundError."""
        data = np.frombuffer(self._log_bytes(place, size_bytes), dtype=np.uint8)
        if not RECORD_BYTES_MIN <= size_bytes == len(data):
            return None
        record, valid = decode_each(data, np.zeros(1, dtype=np.int64), place)
        return record if valid[0] and int(record.size_bytes[0]) == size_bytes else None

    def _log_bytes(self, place: int, size_bytes: int) -> bytes:
        file = next((file for file in self._log if file.start <= place < file.end), None)
        if file is None:
            raise ReadFailed(f"no commit-log file has place {place}")
        descriptor = self._descriptors.get(str(file.path))
        if descriptor is None:
            descriptor = self._descriptors[str(file.path)] = os.open(file.path, os.O_RDONLY)
        return os.pread(descriptor, min(size_bytes, file.end - place), place - file.start)

    # -- slices -------------------------------------------------------------------------------------------------------

    def _span(self, item: QueueRange) -> tuple[int, int] | None:
        """Where the first and the last message of a range lie in the log; None when its units are gone."""
        try:
            files = self._files(item.queue)
            first = files.first_real(max(item.begin, files.first), item.end)
            if first == item.end:
                return None
            begin, last = (files.units(index, index + 1)[0] for index in (first, item.end - 1))
        except FileNotFoundError:
            return None
        is_filler = last["size_bytes"] == FILLER_SIZE
        return int(begin["physical_offset"]), self._log[-1].end if is_filler else int(last["physical_offset"])

    def _cut(self, item: QueueRange, cuts: Sequence[int]) -> list[QueueRange]:
        """The parts of a range between the places, in their order."""
        files = self._files(item.queue)
        begin = max(item.begin, files.first)
        marks = [item.begin]
        for place in cuts:
            try:
                begin = files.first_from(place, begin, item.end) if begin < item.end else item.end
            except FileNotFoundError:
                begin = item.end  # the task will find out what is lost
            marks.append(min(max(begin, marks[-1]), item.end))
        marks.append(item.end)
        return [QueueRange(item.queue, low, high) for low, high in pairwise(marks)]
