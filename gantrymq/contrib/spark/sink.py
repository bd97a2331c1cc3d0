"""Spark's writers: every row becomes a message. At least once: a task that is repeated sends all of its rows again.

What must not count twice needs an id of its own: column `id` goes into a property, and consumers know a row by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from gantrymq.contrib.spark.sink_rows import RowMaker, WriteOptions, send_rows, write_options
from gantrymq.errors import ConfigError


@dataclass(slots=True)
class Sent(WriterCommitMessage):
    """What a task says at its end."""

    messages: int


class _Writing:
    """What both writers do. Options and columns are checked by the planner, before a row is sent."""

    def __init__(self, given: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError('a topic can not be overwritten, messages only join it: mode("append")')
        self._options: WriteOptions = write_options(given)
        self._rows = RowMaker(schema, self._options)

    def _send(self, batches: Iterator[pa.RecordBatch]) -> Sent:
        context = TaskContext.get()
        task = f"partition {context.partitionId()}" if context is not None else "the task"
        return Sent(send_rows(self._rows, self._options, batches, task))


class GantryWriter(_Writing, DataSourceArrowWriter):
    """For `df.write`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send a task's rows."""
        return self._send(iterator)


class GantryStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """For `df.writeStream`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send a task's rows."""
        return self._send(iterator)
