"""Reads a range of the log and writes it as Parquet: the work of one Spark task. No row leaves this process.

The rows of a range are sorted by day, topic and physical offset, and written to a file a day, where they may count
later. The driver gets the files' names and bounds, and the mark of the last record; it commits them (ingest.py). A task
that runs twice writes two sets of files, and one of them never counts.

What a task expects comes back as a value: files of the log that are gone, and bytes that are no chain of records. What
it does not expect is raised, and Spark tries again. This module runs on executors: it needs numpy and pyarrow there,
and no Spark.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from appliance.reports.commit_log_files import RecordMark, read_range
from appliance.reports.errors import BrokenRecordChain
from appliance.reports.lake.place import NewFile, Place, is_full
from appliance.reports.lake.record_columns import SCHEMA, record_batches
from appliance.reports.log_ranges import LogPiece, LogRange
from gantrymq.contrib.arrow.record_blocks import Ints

ROWS_MAX = 2_000_000  # what a task has in memory, some 300 MB; more rows become another file
_DAY_US = 86_400_000_000
# Numbers that grow are written as differences: smaller and faster than a dictionary, which suits the rest.
GROWING = ("physical_offset", "queue_offset", "born_timestamp", "store_timestamp")
PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": [name for name in SCHEMA.names if name not in GROWING],
    "column_encoding": dict.fromkeys(GROWING, "DELTA_BINARY_PACKED"),
    "store_schema": False,
}
BOUNDS = ("broker_name", "physical_offset", "store_timestamp")  # what a file's bounds are told of


class Target(NamedTuple):
    """Where a broker's rows go."""

    place: Place
    broker_name: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """What became of a part of the log: read, with its files and its last record's mark, or lost."""

    begin: int
    end: int
    begins_file: bool
    is_lost: bool = False
    files: tuple[NewFile, ...] = ()
    last: RecordMark | None = None


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The stretches of a range in order, up to where its chain of records is `broken`, if it is: what is valid before
    counts, and the last stretch ends there.

    has_no_lake: the lake's folder is not there where the task ran; is_full: its disk has no room.
    """

    stretches: tuple[Stretch, ...]
    broken: BrokenRecordChain | None = None
    has_no_lake: bool = False
    is_full: bool = False


def copy_range(pieces: LogRange, target: Target) -> RangeResult:
    """Read the range, write its files, return what became of it."""
    pa.set_cpu_count(1)  # Spark gave this task one core
    stretches: list[Stretch] = []
    for piece in pieces:
        try:
            stretch, broken = _copy(piece, target)
            if stretch.end > stretch.begin:
                stretches.append(stretch)
            if broken is not None:
                return RangeResult(tuple(stretches), broken)
        except FileNotFoundError:
            if piece.file.path.exists():
                return RangeResult(tuple(stretches), has_no_lake=True)
            stretches.append(Stretch(piece.begin, piece.end, piece.begins_file, is_lost=True))
        except OSError as refusal:
            if not is_full(refusal):
                raise
            return RangeResult(tuple(stretches), is_full=True)
    return RangeResult(tuple(stretches))


def _copy(piece: LogPiece, target: Target) -> tuple[Stretch, BrokenRecordChain | None]:
    """The piece, or what of it lies before the place where its chain is broken."""
    files: list[NewFile] = []
    batches: list[pa.RecordBatch] = []
    last = None
    rows = 0
    broken = None
    try:
        for block in read_range(piece.file, piece.begin, piece.end):
            last = RecordMark(int(block.physical_offset[-1]), int(block.store_timestamp[-1]), int(block.body_crc[-1]))
            batches += record_batches(block, target.broker_name)
            rows += len(block)
            if rows >= ROWS_MAX:
                files += _write(batches, target.place)
                batches, rows = [], 0
    except BrokenRecordChain as found:
        broken, piece = found, piece._replace(end=found.physical_offset)
    if rows:
        files += _write(batches, target.place)
    return Stretch(piece.begin, piece.end, piece.begins_file, False, tuple(files), last), broken


def _write(batches: list[pa.RecordBatch], place: Place) -> Iterator[NewFile]:
    """Write the rows, a file for each day."""
    table = pa.Table.from_batches(batches)
    days = table["store_timestamp"].cast(pa.int64()).to_numpy() // _DAY_US
    order = _order(days, table["topic"].combine_chunks())
    table, days = table.take(pa.array(order)), days[order]
    begins = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(days)]
    for begin, end in itertools.pairwise(begins):
        date = str(days[begin].astype("datetime64[D]"))
        yield place.write(table.slice(begin, end - begin), date, BOUNDS, PARQUET)


def _order(days: Ints, topics: pa.StringArray) -> Ints:
    """The order by day, topic and physical offset; the rows come in that of the last."""
    encoded = topics.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), dtype=np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    key = (days - days.min()) * len(ranks) + ranks[encoded.indices.to_numpy()]
    if key.max() < 1 << 15:
        key = key.astype(np.int16)  # numpy sorts these by radix, many times faster
    return np.argsort(key, kind="stable")
