"""Spark's stream reader. Offsets are topic to queue to the next offset, so a checkpoint reads as Kafka's does.

A queue that appears while the query runs, or while it stood still, is read from its beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from gantrymq.contrib.spark.batch import GapPartition, cut_lost, read_partition, report_lost
from gantrymq.contrib.spark.errors import MessagesLost
from gantrymq.contrib.spark.options import read_options
from gantrymq.contrib.spark.places import Place, place_of
from gantrymq.contrib.spark.positions import Position, from_checkpoint, to_checkpoint
from gantrymq.contrib.spark.ranges import Bounds, Lost, Partition, Queue, limited, ranges_between

logger: logging.Logger = logging.getLogger(__name__)


class GantryStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of what came since the last one."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._options = read_options(given)
        self._schema = schema
        self._start = Position(given, "starting", "latest")
        self._until: dict[Queue, int] | None = None  # for availableNow: where everything ends

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins."""
        place, bounds = self._now()
        try:
            return to_checkpoint(self._start.resolve(place, bounds))
        finally:
            place.close()

    def getDefaultReadLimit(self) -> ReadLimit:
        """maxOffsetsPerTrigger."""
        most = self._options.messages_max
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next micro-batch ends."""
        place, bounds = self._now()
        place.close()
        starts = from_checkpoint(start)
        ends = dict(starts)  # a queue that is away may come back
        for queue, found in bounds.items():
            known = starts.setdefault(queue, found.begin)
            ends[queue] = found.end if found.end >= known else self._made_anew(queue, known, found)
        if self._until is not None:
            ends = {queue: min(end, max(starts[queue], self._until.get(queue, 0))) for queue, end in ends.items()}
        if isinstance(limit, ReadMaxRows):
            # What retention deleted meanwhile takes no part of the batch, it stands in front of it.
            there = {q: max(at, min(bounds[q].begin, ends[q])) if q in bounds else at for q, at in starts.items()}
            ends = limited(there, ends, limit.max_rows)
        return to_checkpoint(ends)

    def _made_anew(self, queue: Queue, known: int, found: Bounds) -> int:
        """Where to go on in a queue that is shorter than what was read of it: its topic was deleted and made again."""
        text = f"{queue}: read up to {known}, but it ends at {found.end} now: the topic was deleted and made again"
        if self._options.fails_on_loss:
            raise MessagesLost(f"{text}. Start with a new checkpoint; or with option failOnDataLoss=false go on there")
        logger.warning(
            "queue deleted and created again: %s", text, extra={"event": "queue_made_anew", "queue": str(queue)}
        )
        return found.begin

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Where the queues end, for the query's progress."""
        place, bounds = self._now()
        place.close()
        return to_checkpoint({queue: found.end for queue, found in bounds.items()})

    def prepareForTriggerAvailableNow(self) -> None:
        """Note where everything ends now: the query ends there."""
        place, bounds = self._now()
        place.close()
        self._until = {queue: found.end for queue, found in bounds.items()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What the tasks of one micro-batch read."""
        starts, ends = from_checkpoint(start), from_checkpoint(end)
        place = place_of(self._options)
        try:
            # A topic that was deleted when all of it had been read is not asked for.
            bounds = place.bounds([queue for queue, at in ends.items() if starts.get(queue) != at])
            for queue in bounds.keys() - starts.keys():  # appeared since
                starts[queue] = bounds[queue].begin
            there, lost = cut_lost(ranges_between(starts, ends), bounds)
            report_lost([Lost(item) for item in lost], self._options)
            planned: list[InputPartition] = list(place.partitions(there, self._options.partitions_min))
            return planned + ([GapPartition(lost)] if lost else [])
        finally:
            place.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A task's rows."""
        assert isinstance(partition, Partition)
        return read_partition(self._options, self._schema, partition)

    def _now(self) -> tuple[Place, dict[Queue, Bounds]]:
        place = place_of(self._options)
        try:
            return place, place.bounds(place.queues(must_exist=False))
        except BaseException:
            place.close()
            raise
