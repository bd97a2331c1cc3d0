"""The Spark data source `rocketmq_store`: a store folder's commit log as a DataFrame or as a stream.

    spark.read.format("rocketmq_store").option("path", store folder).load()
    spark.readStream.format("rocketmq_store").option("path", …).option("startOffset", n)
        .option("maxBytesPerBatch", n).load()

`commitLog` has the commit-log folders if they are not `<path>/commitlog`: separated by commas, or as a JSON list when
names contain commas. A stream offset is one number, the physical offset after the last record; that is enough, because
commit logs only grow. A partition is one commit-log file or a part of it, because file starts are the only record
boundaries that are known without a scan. For the same reason batches end at file ends; only the last batch of a run
ends where the log ends.

This module runs in Spark's Python workers too: the checkout must be on their PYTHONPATH, with numpy and pyarrow
installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from appliance.reports.commit_log_files import CommitLogFiles, read_range
from appliance.reports.errors import ReportError
from appliance.reports.record_blocks import LogFile
from appliance.reports.record_columns import SCHEMA_DDL, record_batches

FORMAT = "rocketmq_store"
MAX_BYTES_PER_BATCH = 2 << 30  # two files of the default size: work for two cores; a killed run loses little


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

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        start = self.options.get("startOffset")
        return StoreStreamReader(
            commit_log_of(self.options),
            start_offset=None if start is None else int(start),
            max_bytes_per_batch=int(self.options.get("maxBytesPerBatch", str(MAX_BYTES_PER_BATCH))),
        )


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


class StoreStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the log from a start offset, in batches of whole files, up to the end at the start of the query."""

    def __init__(self, log: CommitLogFiles, *, start_offset: int | None, max_bytes_per_batch: int) -> None:
        self._log = log
        self._start_offset = start_offset
        self._max_bytes_per_batch = max_bytes_per_batch
        self._target: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._log.valid_end(self._start_offset or 0)

    def initialOffset(self) -> dict[str, int]:
        if self._start_offset is not None:
            return {"physical_offset": self._start_offset}
        files = self._log.files()
        return {"physical_offset": files[0].start if files else 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self._max_bytes_per_batch)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        begin = start["physical_offset"]
        end = self._target if self._target is not None else self._log.valid_end(begin)
        if end <= begin:
            return start
        if isinstance(limit, ReadAllAvailable):
            return {"physical_offset": end}
        assert isinstance(limit, ReadMaxBytes)
        return {"physical_offset": batch_end(self._log.files(), begin, end, limit.max_bytes)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return partitions_of(self._log, start["physical_offset"], end["physical_offset"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        return read_partition(partition)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to release: the lake's manifest is the checkpoint."""


def batch_end(files: Sequence[LogFile], begin: int, end: int, max_bytes: int) -> int:
    """The last file end within `max_bytes` of `begin`, but at least one file; `end` when that comes first."""
    ends = [file.end for file in files if begin < file.end < end]
    within = [file_end for file_end in ends if file_end - begin <= max_bytes]
    if end - begin <= max_bytes or not ends:
        return end
    return within[-1] if within else ends[0]
