"""The Spark data source `rocketmq_store`: a store folder's commit log as a DataFrame, without a lake.

    spark.read.format("rocketmq_store").option("path", store folder).load()

`commitLog` has the commit-log folders if they are not `<path>/commitlog`: separated by commas, or as a JSON list when
names contain commas. A partition is a part of one commit-log file. The lake does not need this: ingest.py fills it.

This module runs in Spark's Python workers too: the checkout must be on their PYTHONPATH, with numpy and pyarrow
installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from appliance.reports.commit_log_files import CommitLogFiles, read_range
from appliance.reports.errors import ReportError
from appliance.reports.record_blocks import LogFile
from appliance.reports.record_columns import SCHEMA_DDL, record_batches

FORMAT = "rocketmq_store"


class LogPartition(InputPartition):
    """A range of one commit-log file that begins and ends at record boundaries."""

    def __init__(self, file: LogFile, begin: int, end: int) -> None:
        super().__init__(None)
        self.file = file
        self.begin = begin
        self.end = end


class StoreDataSource(DataSource):
    """One broker's store folder."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA_DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return StoreReader(commit_log_of(self.options))


def commit_log_of(options: MutableMapping[str, str]) -> CommitLogFiles:
    """The commit log named by the options."""
    if "namesrv" in options:
        raise ReportError("reading with the pull protocol (option `namesrv`) is not implemented; use `path`")
    text = options.get("commitLog")
    if not text:
        return CommitLogFiles([Path(options["path"]) / "commitlog"])
    names = json.loads(text) if text.startswith("[") else text.split(",")
    return CommitLogFiles([Path(name.strip()) for name in names])


def partitions_of(log: CommitLogFiles, begin: int, end: int) -> list[LogPartition]:
    """The range as partitions, one for each file that it touches."""
    return [
        LogPartition(file, max(begin, file.start), min(end, file.end))
        for file in log.files()
        if file.start < end and begin < file.end
    ]


def read_partition(partition: LogPartition) -> Iterator[pa.RecordBatch]:
    for block in read_range(partition.file, partition.begin, partition.end):
        yield from record_batches(block)


class StoreReader(DataSourceReader):
    """Reads everything that is in the log when the query is planned."""

    def __init__(self, log: CommitLogFiles) -> None:
        self._log = log

    def partitions(self) -> Sequence[InputPartition]:
        files = self._log.begun_files()
        return partitions_of(self._log, files[0].start, self._log.valid_end()) if files else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        return read_partition(partition)
