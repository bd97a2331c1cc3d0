"""What a task does with a store folder: the units of its ranges, then their records, in the order of the log.

The records of all ranges are read together, so that each part of the log is read once; what stands near to each other
comes with one call. Memory: 32 bytes for each message of the task, and blocks of BLOCK_BYTES.

A queue says where each of its messages stands, so one that is damaged takes no other with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gantrymq.contrib.arrow.log_files import LOOKS, log_files
from gantrymq.contrib.arrow.record_blocks import (
    BLOCK_BYTES,
    Bytes,
    Ints,
    LogFile,
    RecordBlock,
    Truths,
    bodies_are_sound,
    decode_each,
)
from gantrymq.contrib.spark.ranges import NOWHERE, Lost, Queue, QueueRange
from gantrymq.contrib.spark.store_queue import FILLER_SIZE, UNIT, QueueFiles, Units

NEAR_BYTES = 32 << 10  # reading so much in vain costs less than another call

# A message to read: its place in the log, its size, its queue offset, the number of its range.
ENTRY = np.dtype([("place", np.int64), ("size_bytes", np.int64), ("offset", np.int64), ("range", np.int64)])
Entries = NDArray[np.void]
Part = tuple[RecordBlock | None, Lost | None]  # a block, or what is lost


class StoreReading:
    """One task's reading. `files_of` lists the files of a queue anew.

    checks_bodies: a message whose body does not match its checksum is damaged.
    """

    def __init__(
        self, commit_log: Sequence[Path], files_of: Callable[[Queue], QueueFiles], *, checks_bodies: bool
    ) -> None:
        self._log: list[LogFile] = log_files(commit_log)
        self._files_of = files_of
        self._checks_bodies = checks_bodies
        self._ranges: Sequence[QueueRange] = ()

    def read(self, ranges: Sequence[QueueRange]) -> Iterator[Part]:
        """Blocks of records, and what is deleted or damaged."""
        self._ranges = ranges
        every: list[Entries] = []
        for number, item in enumerate(ranges):
            first, units, first_real = self._units_of(item)
            if first > item.begin:
                yield None, Lost(QueueRange(item.queue, item.begin, first))
            entries = _entries(units, first, number)
            is_named = (units["size_bytes"] > 0) & (units["size_bytes"] != FILLER_SIZE)
            is_deleted = is_named & (units["physical_offset"] < self._begin)
            is_deleted |= (units["size_bytes"] == FILLER_SIZE) & (entries["offset"] < first_real)
            is_there = is_named & ~is_deleted
            yield from self._lost(entries[is_deleted])
            yield from self._damaged(entries[~is_deleted & ~is_there], is_placed=False)
            every.append(entries[is_there])
        if not every:
            return
        entries = np.concatenate(every)
        entries = entries[np.argsort(entries["place"], kind="stable")]
        for file in self._log:
            low, high = np.searchsorted(entries["place"], [file.start, file.end])
            if low < high:
                yield from self._read_file(file, entries[low:high])
        end = self._log[-1].end if self._log else 0
        yield from self._damaged(entries[entries["place"] >= end])

    @property
    def _begin(self) -> int:
        return self._log[0].start if self._log else 0

    def _units_of(self, item: QueueRange) -> tuple[int, Units, int]:
        """The units of a range that are still there, the first one's offset, and that of the queue's first message."""
        for look in range(1, LOOKS + 1):
            try:
                files = self._files_of(item.queue)
                first = min(max(item.begin, files.first), item.end)
                return first, files.units(first, item.end), files.first_real(files.first, item.end)
            except FileNotFoundError:  # the broker deletes its oldest files, or the topic, just now
                if look == LOOKS:
                    break
        return item.end, np.empty(0, dtype=UNIT), item.end

    def _lost(self, entries: Entries) -> Iterator[Part]:
        """Entries whose messages are deleted, as ranges."""
        for run in _runs(entries):
            yield None, Lost(self._range_of(run))

    def _damaged(self, entries: Entries, *, is_placed: bool = True) -> Iterator[Part]:
        """Entries whose messages are damaged, as ranges; is_placed: the queue says where they should be."""
        for run in _runs(entries):
            yield None, Lost(self._range_of(run), int(run["place"][0]) if is_placed else NOWHERE)

    def _range_of(self, run: Entries) -> QueueRange:
        queue = self._ranges[int(run["range"][0])].queue
        return QueueRange(queue, int(run["offset"][0]), int(run["offset"][-1]) + 1)

    def _read_file(self, file: LogFile, entries: Entries) -> Iterator[Part]:
        try:
            descriptor = os.open(file.path, os.O_RDONLY)
        except FileNotFoundError:  # retention was faster
            yield from self._lost(entries)
            return
        try:
            begin = 0
            while begin < len(entries):
                buffer, at, end = self._next_bytes(descriptor, file, entries, begin)
                block, is_sound = self._checked(buffer, at, entries[begin:end])
                yield block, None
                yield from self._damaged(entries[begin:end][~is_sound])
                begin = end
        finally:
            os.close(descriptor)

    def _next_bytes(self, descriptor: int, file: LogFile, entries: Entries, begin: int) -> tuple[Bytes, Ints, int]:
        """The bytes of the records from entry `begin` on that fit into a block, where each stands in them, and the
        number of the entry behind them."""
        place, ends = entries["place"], entries["place"] + entries["size_bytes"]
        buffer = np.empty(max(BLOCK_BYTES, int(entries["size_bytes"][begin])), dtype=np.uint8)
        positions: list[Ints] = []
        row = begin
        used = 0
        while row < len(entries):
            window = slice(row, int(np.searchsorted(ends, place[row] + len(buffer) - used, side="right")))
            far = np.flatnonzero(place[window][1:] - ends[window][:-1] > NEAR_BYTES)
            stop = row + int(far[0]) + 1 if len(far) else window.stop
            if stop <= row:
                break  # the block is full
            wanted_bytes = int(ends[stop - 1] - place[row])
            os.preadv(descriptor, [buffer[used : used + wanted_bytes].data], int(place[row]) - file.start)
            positions.append(place[row:stop] - place[row] + used)
            used += wanted_bytes
            row = stop
        return buffer[:used], np.concatenate(positions), row

    def _checked(self, buffer: Bytes, at: Ints, entries: Entries) -> tuple[RecordBlock, Truths]:
        """The sound ones of the records, and for each entry whether its record is."""
        block, is_sound = decode_each(buffer, at, entries["place"] - at)
        queue_ids = np.array([item.queue.queue_id for item in self._ranges])
        is_sound &= (
            (block.size_bytes == entries["size_bytes"])
            & (block.queue_offset == entries["offset"])
            & (block.queue_id == queue_ids[entries["range"]])
        )
        if not is_sound.all():
            block = block.take(is_sound)
        if self._checks_bodies:
            bodies = bodies_are_sound(block)
            is_sound[is_sound] = bodies
            block = block if bodies.all() else block.take(bodies)
        return block, is_sound


def _runs(entries: Entries) -> Iterator[Entries]:
    """Entries whose offsets follow each other."""
    if not len(entries):
        return
    entries = entries[np.lexsort((entries["offset"], entries["range"]))]
    breaks = np.flatnonzero((np.diff(entries["offset"]) != 1) | (np.diff(entries["range"]) != 0)) + 1
    for low, high in pairwise([0, *breaks.tolist(), len(entries)]):
        yield entries[low:high]


def _entries(units: Units, first: int, number: int) -> Entries:
    entries = np.empty(len(units), dtype=ENTRY)
    entries["place"] = units["physical_offset"]
    entries["size_bytes"] = units["size_bytes"]
    entries["offset"] = np.arange(first, first + len(units))
    entries["range"] = number
    return entries
