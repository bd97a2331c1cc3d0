"""Spark's batch reader: everything is decided once, when the query is planned; tasks read what they are given."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from gantrymq.contrib.spark.columns import BatchMaker
from gantrymq.contrib.spark.options import ReadOptions, read_options
from gantrymq.contrib.spark.places import Place, place_of
from gantrymq.contrib.spark.positions import Position
from gantrymq.contrib.spark.ranges import (
    Bounds,
    Lost,
    Partition,
    Queue,
    QueueRange,
    lost_text,
    messages_lost,
    ranges_between,
)

logger: logging.Logger = logging.getLogger(__name__)


class GantryReader(DataSourceReader):
    """Reads from where the query begins to where it ends, as the options say.

    Conditions of a query are left to Spark: 4.2 keeps what was planned with a DataFrame's first condition for all its
    later queries, which are wrong then.
    """

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._options = read_options(given)
        self._schema = schema
        self._start = Position(given, "starting", "earliest", allows_latest=False)
        self._end = Position(given, "ending", "latest")

    def partitions(self) -> Sequence[InputPartition]:
        """What the tasks read."""
        place = place_of(self._options)
        try:
            return self._plan(place)
        finally:
            place.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A task's rows."""
        if isinstance(partition, Partition):  # Spark makes one of its own where nothing is to be read
            yield from read_partition(self._options, self._schema, partition)

    def _plan(self, place: Place) -> list[Partition]:
        bounds = place.bounds(place.queues(must_exist=True))
        starts, ends = self._start.resolve(place, bounds), self._end.resolve(place, bounds)
        ranges, lost = cut_lost(
            ranges_between(
                {queue: starts[queue] for queue in bounds},
                {queue: max(starts[queue], ends[queue]) for queue in bounds},
            ),
            bounds,
        )
        report_lost([Lost(item) for item in lost], self._options)
        planned = place.partitions(ranges, self._options.partitions_min)
        return planned + ([GapPartition(lost)] if lost else [])


class GapPartition(Partition):
    """Ranges that were lost before the query was planned."""


def cut_lost(ranges: Iterable[QueueRange], bounds: Mapping[Queue, Bounds]) -> tuple[list[QueueRange], list[QueueRange]]:
    """What of the ranges is still there, and what is gone."""
    there: list[QueueRange] = []
    lost: list[QueueRange] = []
    for item in ranges:
        begin, end = bounds.get(item.queue, Bounds(item.end, item.end))
        low, high = min(max(item.begin, begin), item.end), min(item.end, max(end, item.begin))
        for part, taker in (
            (QueueRange(item.queue, item.begin, low), lost),
            (QueueRange(item.queue, low, max(low, high)), there),
            (QueueRange(item.queue, max(low, high), item.end), lost),
        ):
            if len(part):
                taker.append(part)
    return there, lost


def report_lost(lost: Sequence[Lost], options: ReadOptions) -> None:
    """MessagesLost if the query must not go on without them; else a warning in the log."""
    if not lost:
        return
    if options.fails_on_loss:
        raise messages_lost(lost)
    text = lost_text(lost)
    count = sum(len(item.range) for item in lost)
    logger.warning("%s messages lost: %s", count, text, extra={"event": "messages_lost", "count": count, "lost": text})


def read_partition(options: ReadOptions, schema: StructType, partition: Partition) -> Iterator[pa.RecordBatch]:
    """The rows of a partition. MessagesLost, ReadFailed."""
    pa.set_cpu_count(1)  # Spark gave this task one core
    maker = BatchMaker(schema, options.broker_name)
    if isinstance(partition, GapPartition):
        yield from (maker.gap(Lost(item)) for item in partition.ranges if maker.tells_gaps)
        return
    place = place_of(options)
    try:
        for found in place.read(partition, checks_bodies=maker.needs_bodies):
            if found.lost is not None:
                report_lost([found.lost], options)
                if maker.tells_gaps:
                    yield maker.gap(found.lost)
            if found.block is not None:
                yield from maker.batches(found.block, found.broker_name)
    finally:
        place.close()
