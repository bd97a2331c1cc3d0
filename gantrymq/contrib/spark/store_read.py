"""What a task does with a store folder: the units of its ranges, then their records, in the order of the log.

The records of all ranges are read together, so that each part of the log is read once; what stands near to each other
comes with one call. Memory: 32 bytes for each message of the task, and blocks of BLOCK_BYTES.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantrymq.contrib.arrow.log_files import LOOKS, log_files
from gantrymq.contrib.arrow.record_blocks import BLOCK_BYTES, Ints, LogFile, RecordBlock, decode_block
from gantrymq.contrib.spark.errors import ReadFailed
from gantrymq.contrib.spark.ranges import Queue, QueueRange
from gantrymq.contrib.spark.store_queue import FILLER_SIZE, UNIT, QueueFiles, Units

NEAR_BYTES = 32 << 10  # reading so much in vain costs less than another call

# A message to read: its place in the log, its size, its queue offset, the number of its range.
ENTRY = np.dtype([("place", np.int64), ("size_bytes", np.int64), ("offset", np.int64), ("range", np.int64)])
Entries = NDArray[np.void]
Part = tuple[RecordBlock | None, QueueRange | None]  # a block, or a range that is lost


class StoreReading:
    """One task's reading. `files_of` lists the files of a queue anew."""

    def __init__(self, commit_log: Sequence[Path], files_of: Callable[[Queue], QueueFiles]) -> None:
        self._log: list[LogFile] = log_files(commit_log)
        self._files_of = files_of
        self._ranges: Sequence[QueueRange] = ()

    def read(self, ranges: Sequence[QueueRange]) -> Iterator[Part]:
        """Blocks of records, and what is lost. ReadFailed when the queues point at what is no message."""
        self._ranges = ranges
        every: list[Entries] = []
        for number, item in enumerate(ranges):
            first, units = self._units_of(item)
            if first > item.begin:
                yield None, QueueRange(item.queue, item.begin, first)
            entries = _entries(units, first, number)
            is_there = self._is_there(units)
            yield from self._lost(entries[~is_there])
            every.append(entries[is_there])
        if not every:
            return
        entries = np.concatenate(every)
        entries = entries[np.argsort(entries["place"], kind="stable")]
        for file in self._log:
            low, high = np.searchsorted(entries["place"], [file.start, file.end])
            if low < high:
                yield from self._read_file(file, entries[low:high])
        if len(entries) and entries["place"][-1] >= self._log[-1].end:
            self._fail(entries[-1:], "the commit log ends before it")

    def _units_of(self, item: QueueRange) -> tuple[int, Units]:
        """The units of a range that are still there, and the offset of the first of them."""
        for look in range(1, LOOKS + 1):
            try:
                files = self._files_of(item.queue)
                first = min(max(item.begin, files.first), item.end)
                return first, files.units(first, item.end)
            except FileNotFoundError:  # the broker deletes its oldest files, or the topic, just now
                if look == LOOKS:
                    break
        return item.end, np.empty(0, dtype=UNIT)

    def _is_there(self, units: Units) -> NDArray[np.bool_]:
        begin = self._log[0].start if self._log else 0
        found: NDArray[np.bool_] = (units["size_bytes"] > 0) & (units["size_bytes"] != FILLER_SIZE)
        return found & (units["physical_offset"] >= begin)

    def _lost(self, entries: Entries) -> Iterator[Part]:
        """Entries whose messages are gone, as ranges."""
        if not len(entries):
            return
        entries = entries[np.lexsort((entries["offset"], entries["range"]))]
        breaks = np.flatnonzero((np.diff(entries["offset"]) != 1) | (np.diff(entries["range"]) != 0)) + 1
        for low, high in pairwise([0, *breaks.tolist(), len(entries)]):
            queue = self._ranges[int(entries["range"][low])].queue
            yield None, QueueRange(queue, int(entries["offset"][low]), int(entries["offset"][high - 1]) + 1)

    def _read_file(self, file: LogFile, entries: Entries) -> Iterator[Part]:
        try:
            descriptor = os.open(file.path, os.O_RDONLY)
        except FileNotFoundError:  # retention was faster
            yield from self._lost(entries)
            return
        try:
            begin = 0
            while begin < len(entries):
                block, end = self._next_block(descriptor, file, entries, begin)
                yield block, None
                begin = end
        finally:
            os.close(descriptor)

    def _next_block(self, descriptor: int, file: LogFile, entries: Entries, begin: int) -> tuple[RecordBlock, int]:
        """The records from entry `begin` on that fit into a block, and the number of the entry behind them."""
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
        at = np.concatenate(positions)
        return self._checked(buffer[:used], at, entries[begin:row]), row

    def _checked(self, buffer: NDArray[np.uint8], at: Ints, entries: Entries) -> RecordBlock:
        block = decode_block(buffer, at, entries["place"] - at)
        whole = len(block)
        is_right = (block.size_bytes == entries["size_bytes"][:whole]) & (
            block.queue_offset == entries["offset"][:whole]
        )
        if whole < len(entries) or not is_right.all():
            wrong = int(np.argmin(is_right)) if not is_right.all() else whole
            self._fail(entries[wrong : wrong + 1], "the log has no such message there")
        return block

    def _fail(self, entries: Entries, why: str) -> None:
        entry: Any = entries[0]
        raise ReadFailed(
            f"{self._ranges[int(entry['range'])].queue}: offset {entry['offset']} is at place {entry['place']} of the "
            f"log, {entry['size_bytes']} bytes, says its queue, and {why}: stop the broker and start it again so that "
            "it repairs its files"
        )


def _entries(units: Units, first: int, number: int) -> Entries:
    entries = np.empty(len(units), dtype=ENTRY)
    entries["place"] = units["physical_offset"]
    entries["size_bytes"] = units["size_bytes"]
    entries["offset"] = np.arange(first, first + len(units))
    entries["range"] = number
    return entries
