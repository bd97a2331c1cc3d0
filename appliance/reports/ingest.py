"""Copies new messages of a broker's commit log into its lake, exactly once, with Spark's Structured Streaming.

One run copies everything that is in the log (`availableNow`) in one or more batches and ends. The manifest is the only
checkpoint: Spark's own checkpoint is in the run's temporary folder and is deleted afterwards, so the two can't differ.
manifest.py describes how a batch is committed.

Before it reads, a run checks the last record of the previous run. If another record is there now, the broker has
truncated its log and written other messages in its place, so neither history nor offsets can be trusted: the run stops.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.errors import LogTruncated, ReportError
from appliance.reports.manifest import Lake, LakeFile, sync_file, sync_folder
from appliance.reports.spark_source import FORMAT, MAX_BYTES_PER_BATCH, StoreDataSource

logger = logging.getLogger(__name__)

_PART = re.compile(r"part-(\d{5})-")

Progress = Callable[[int], None]  # rows of this run so far


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What one run added: the range of the log, rows, files, batches, and the duration."""

    broker_name: str
    begin: int
    end: int
    rows: int
    files: int
    batches: int
    gap_bytes: int
    duration_s: float


def ingest(
    spark: SparkSession,
    commit_log_folders: list[Path],
    lake: Lake,
    work_folder: Path,
    *,
    max_bytes_per_batch: int = MAX_BYTES_PER_BATCH,
    progress: Progress | None = None,
) -> IngestResult:
    """Copy the log up to its current end. `work_folder`: for Spark's temporary checkpoint. Raises ReportError."""
    began = time.monotonic()
    log = CommitLogFiles(commit_log_folders)
    with lake.writing():
        # A killed run may have left files that no manifest entry lists. They must go before new ones get the same
        # names, and nothing else may be removed: the lock of `writing` makes sure that they belong to no other run.
        shutil.rmtree(lake.path / "_staging", ignore_errors=True)
        lake.remove_unlisted()
        begin, gap_bytes = starting_point(log, lake)
        checkpoint_folder = work_folder / f"checkpoint-{time.monotonic_ns()}"
        writer = _BatchWriter(log, lake, begin, checkpoint_folder, progress)
        if log.valid_end(begin) > begin:
            _run_stream(spark, log, writer, max_bytes_per_batch)
    result = IngestResult(
        lake.broker_name, begin, writer.end, writer.rows, writer.files, writer.batches, gap_bytes,
        round(time.monotonic() - began, 3),
    )  # fmt: skip
    logger.info("ingested", extra={"event": "ingested", "broker": lake.broker_name, "rows": result.rows})
    return result


def starting_point(log: CommitLogFiles, lake: Lake) -> tuple[int, int]:
    """Where to continue, and how many bytes of the log were deleted before they were read. Raises LogTruncated."""
    files = log.files()
    checkpoint = lake.checkpoint()
    if checkpoint is None:
        return (files[0].start if files else 0), 0
    if not files:
        raise LogTruncated(_truncated(lake, f"the commit log is empty, but {checkpoint} bytes of it were read before"))
    if files[0].start > checkpoint:
        # The broker has deleted files that no run has read. The gap is committed, so that reports can mention it, and
        # so that the next range begins where the last entry ends.
        lake.commit_gap(checkpoint, files[0].start)
        logger.warning(
            "commit log expired unread",
            extra={"event": "report_gap", "broker": lake.broker_name, "from": checkpoint, "to": files[0].start},
        )
        return files[0].start, files[0].start - checkpoint
    mark = lake.last_mark()
    if mark is not None and mark[0] >= files[0].start:  # otherwise its file has expired, and can't be compared
        found = log.mark_at(mark[0])
        if found != mark:
            raise LogTruncated(_truncated(lake, f"the record at physical offset {mark[0]} is not the one read before"))
    return checkpoint, 0


def _truncated(lake: Lake, what: str) -> str:
    return (
        f"{lake.broker_name}: {what}. The broker has truncated or replaced its log. Keep the history by moving "
        f"{lake.path} to another place; the next run begins a new lake from what the broker holds now"
    )


def _run_stream(
    spark: SparkSession,
    log: CommitLogFiles,
    writer: _BatchWriter,
    max_bytes_per_batch: int,
) -> None:
    spark.dataSource.register(StoreDataSource)
    query = (
        spark.readStream.format(FORMAT)
        .option("commitLog", json.dumps([str(folder) for folder in log.folders]))
        .option("startOffset", str(writer.end))
        .option("maxBytesPerBatch", str(max_bytes_per_batch))
        .load()
        .writeStream.foreachBatch(writer.write)
        .option("checkpointLocation", str(writer.checkpoint_folder))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except StreamingQueryException as failure:
        cause = writer.failure or failure
        if isinstance(cause, PySparkException):  # raised in a worker or the JVM: only its text is available here
            raise ReportError(f"copying the commit log failed: {_last_cause(str(cause))}") from cause
        raise cause from failure
    finally:
        query.stop()
        shutil.rmtree(writer.checkpoint_folder, ignore_errors=True)


class _BatchWriter:
    """The sink: moves a batch's Parquet files to their place, then commits its range to the manifest."""

    def __init__(
        self, log: CommitLogFiles, lake: Lake, begin: int, checkpoint_folder: Path, progress: Progress | None
    ) -> None:
        self.end = begin
        self.rows = self.files = self.batches = 0
        self.checkpoint_folder = checkpoint_folder
        self.failure: Exception | None = None  # Spark only passes on an exception's text
        self._log = log
        self._lake = lake
        self._progress = progress

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Called by Spark for each batch, in order."""
        try:
            self._write(batch, self.end, self._end_of(batch_id))
        except Exception as failure:
            self.failure = failure
            raise

    def _end_of(self, batch_id: int) -> int:
        """The batch's end offset, from the plan that Spark wrote before the batch (a batch does not contain it)."""
        plan = (self.checkpoint_folder / "offsets" / str(batch_id)).read_text().splitlines()
        return int(json.loads(plan[-1])["physical_offset"])

    def _write(self, batch: DataFrame, begin: int, end: int) -> None:
        staging = self._lake.path / "_staging" / f"{begin:020}-{end:020}"
        (
            batch.withColumn("date", F.to_date(F.timestamp_millis("store_timestamp")))
            .sortWithinPartitions("date", "topic", "physical_offset")
            .write.mode("overwrite")
            .option("compression", "zstd")
            .partitionBy("date")
            .parquet(f"file://{staging.absolute()}")  # not percent-encoded: Hadoop takes %20 for a part of the name
        )
        # The order makes it exactly-once: files in place and synced, then the manifest entry, then this object's state.
        added, last_offset = move_in_place(staging, self._lake.path, begin, end)
        mark = self._lake.last_mark() if last_offset is None else self._log.mark_at(last_offset)
        self._lake.commit(begin, end, added, mark)
        self.end = end
        self.rows += sum(file.rows for file in added)
        self.files += len(added)
        self.batches += 1
        if self._progress is not None:
            self._progress(self.rows)


def move_in_place(staging: Path, lake: Path, begin: int, end: int) -> tuple[list[LakeFile], int | None]:
    """Give Spark's files their final names, synced; return them and the largest physical offset in them.

    The new name is made of the range and the partition's number, not of Spark's random id: so a range that is written
    again after a crash gets the same names, and replaces its files.
    """
    added, last_offset = [], None
    for source in sorted(staging.glob("date=*/part-*.parquet")):
        part = _PART.match(source.name)
        assert part is not None, source.name
        target = lake / "data" / source.parent.name / f"{begin:020}-{end:020}-{part[1]}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        metadata = pq.ParquetFile(source).metadata
        stored_min, stored_max = _range_of(metadata, "store_timestamp")
        last_offset = max(last_offset or 0, _range_of(metadata, "physical_offset")[1])
        sync_file(source)
        source.replace(target)
        sync_folder(target.parent)
        added.append(
            LakeFile(
                path=str(target.relative_to(lake)),
                date=source.parent.name.removeprefix("date="),
                rows=metadata.num_rows,
                size_bytes=target.stat().st_size,
                min_store_timestamp=stored_min,
                max_store_timestamp=stored_max,
            )
        )
    shutil.rmtree(staging, ignore_errors=True)  # missing after an empty batch
    if added:
        sync_folder(lake / "data")
    return added, last_offset


def _range_of(metadata: pq.FileMetaData, column: str) -> tuple[int, int]:
    """Smallest and largest value of a column, from the statistics of the row groups."""
    index = metadata.schema.names.index(column)
    statistics = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
    return min(part.min for part in statistics), max(part.max for part in statistics)


def _last_cause(text: str) -> str:
    """The line of a Spark error that has the cause, without the Java frames."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if "appliance.reports.errors." in line or line.startswith(("OSError", "File"))]
    return (named or lines)[-1 if named else 0].removeprefix("appliance.reports.errors.")
