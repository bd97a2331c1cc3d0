"""Copies new messages of a broker's commit log into its lake, exactly once, as Spark tasks that hand back no rows.

The log is cut into ranges (log_ranges.py). Some at a time are a job of Spark, a task each (range_reader.py); one that
fails is repeated (worker_jobs.py). The tasks write Parquet files; after each job this module commits them in the order
of the log, but not oftener than lake/writer.py says, so that a run that ends early has done something. A commit says
how far the log is read (lake/reading.py), and nothing else does.

Before it reads, a run checks the last record of the previous run. If another record is there now, the broker has
truncated its log and written other messages in its place, so neither history nor offsets can be trusted: the run stops.
While it reads, the broker's cleaner spares the files ahead (store/upkeep/reader_marks.py). What is deleted all the same
becomes a gap in the lake, and the run goes on behind it. So does what is damaged, up to the next record.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.errors import LakeFull, LogTruncated, StoreUnreadable, WorkersFailed
from appliance.reports.lake.broker_lake import Lake
from appliance.reports.lake.range_reader import RangeResult, Target, copy_range
from appliance.reports.lake.reading import Reading
from appliance.reports.lake.writer import LakeWriter
from appliance.reports.log_ranges import LogRange, ranges_of
from appliance.reports.runner.cut_lake import cut_to_log
from appliance.reports.runner.standing import Epoch
from appliance.reports.worker_jobs import run_on_workers
from gantrymq.contrib.arrow.record_search import next_record
from store.upkeep.reader_marks import ReaderMark

logger = logging.getLogger(__name__)

RANGE_BYTES = 128 << 20  # a task's rows are sorted in memory: at most 1.4 million of the smallest
RANGE_BYTES_MIN = 4 << 20  # less is not worth a task
JOB_BYTES = 1 << 30  # more only where each core has one range: what a killed run repeats, or does before it pauses


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What one run added: the range of the log, rows, files, commits, and the duration. Behind: what it left unread."""

    broker_name: str
    begin: int
    end: int
    rows: int
    files: int
    batches: int
    gap_bytes: int
    behind_bytes: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far a run is with one broker."""

    rows: int
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestLimits:
    """`until`: the steady clock's time from which on no further job is begun. `range_bytes`: tests cut smaller.

    `end`: where reading ends at the latest, the begin of a file. `cores`: says how many tasks Spark runs at once; a
    cluster's executors come one by one. `before_job`: called before each; it may wait.
    """

    until: float = float("inf")
    end: int | None = None
    cores: Callable[[], int] = lambda: 1
    before_job: Callable[[], object] | None = None
    range_bytes: int = RANGE_BYTES
    range_bytes_min: int = RANGE_BYTES_MIN


NO_LIMITS = IngestLimits()


def ingest(
    spark: SparkSession,
    commit_log_folders: list[Path],
    lake: Lake,
    *,
    store_folder: Path | None = None,
    epochs: Sequence[Epoch] = (),
    limits: IngestLimits = NO_LIMITS,
    progress: Callable[[IngestProgress], None] | None = None,
    is_anew: bool = False,
) -> IngestResult:
    """Copy the log up to its current end. Raises ReportError.

    store_folder: where the cleaner looks for marks of readers; None if there is no such broker. epochs: of the log.
    is_anew: whether a log that was replaced is read from its begin.
    """
    began = time.monotonic()
    log = CommitLogFiles(commit_log_folders)
    with lake.table.writing(), contextlib.ExitStack() as stack:
        cut_to_log(lake, log, epochs)
        begin = starting_point(log, lake, is_anew=is_anew)
        mark = stack.enter_context(_mark(store_folder, begin)) if store_folder is not None else None
        writer = LakeWriter(lake, begin)
        end = log.valid_end(begin)
        end = max(begin, end if limits.end is None else min(end, limits.end))

        def committed() -> None:
            if mark is not None:
                mark.move(writer.committed)
            if progress is not None:
                progress(IngestProgress(writer.rows, writer.position - begin, end - begin))

        _Copy(spark, log, writer, end, limits, committed).run()
    result = IngestResult(
        lake.broker_name, begin, writer.committed, writer.rows, writer.files, writer.commits, writer.gap_bytes,
        end - writer.committed, round(time.monotonic() - began, 3),
    )  # fmt: skip
    logger.info("ingested", extra={"event": "ingested", "broker": lake.broker_name, "rows": result.rows})
    return result


def starting_point(log: CommitLogFiles, lake: Lake, *, is_anew: bool = False) -> int:
    """Where the last run ended; of a new lake, or is_anew after the log was replaced, where that begins.

    Raises LogTruncated.
    """
    files, reading = log.files(), lake.reading()
    begin = files[0].start if files else 0
    if reading.end is None:
        return begin
    wrong = _why_truncated(log, reading)
    if not wrong:
        return reading.end
    if not is_anew:
        raise LogTruncated(
            f"{lake.broker_name}: {wrong}. The broker has truncated or replaced its log. `gantry report ingest --anew "
            f"{lake.broker_name}` keeps the counts and continues with what the broker has now"
        )
    lake.begin_anew(begin)
    return begin


def _why_truncated(log: CommitLogFiles, reading: Reading) -> str:
    """What is wrong with a log that is not the one that was read; else nothing."""
    if not log.files():
        return f"the commit log is empty, but {reading.end} bytes of it were read before"
    mark = reading.last
    if mark is not None and log.mark_at(mark[0]) != mark:
        files = log.files()
        if files and mark[0] >= files[0].start:  # otherwise its file has expired, and can't be compared
            return f"the record at physical offset {mark[0]} is not the one read before"
    return ""


@contextlib.contextmanager
def _mark(store_folder: Path, physical_offset: int) -> Iterator[ReaderMark | None]:
    """A mark for the cleaner; None, and a line in the log, where this process may not write."""
    with contextlib.ExitStack() as stack:
        mark = None
        try:
            mark = stack.enter_context(ReaderMark(store_folder, physical_offset))
        except OSError as refusal:
            logger.warning("no mark for the cleaner", extra={"event": "report_unmarked", "error": str(refusal)})
        yield mark


class _Copy:
    """One run over one broker's log."""

    def __init__(
        self,
        spark: SparkSession,
        log: CommitLogFiles,
        writer: LakeWriter,
        end: int,
        limits: IngestLimits,
        after_range: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._log = log
        self._writer = writer
        self._target = Target(writer.lake.table.place, writer.lake.broker_name)
        self._copy = functools.partial(copy_range, target=self._target)
        self._end = end
        self._limits = limits
        self._after_range = after_range
        self._uncut: set[int] = set()  # files in which a found boundary was none

    def run(self) -> None:
        try:
            while self._writer.position < self._end and self._has_time():
                self._pass()
        except WorkersFailed:
            self._finish()
            raise
        self._finish()

    def _finish(self) -> None:
        self._writer.finish()
        self._after_range()

    def _has_time(self) -> bool:
        return time.monotonic() < self._limits.until

    def _pass(self) -> None:
        """Copy up to the end, or over the first damage, or up to the first found boundary that is none."""
        files = self._log.files()
        if not files:
            raise StoreUnreadable(f"{self._log.folders[0]}: all files of the commit log have been deleted meanwhile")
        position = self._writer.position
        if files[0].start > position:
            self._writer.lose(position, files[0].start)
            position = files[0].start
        share = (self._end - position) // max(1, self._limits.cores())
        range_bytes = min(self._limits.range_bytes, max(self._limits.range_bytes_min, share))
        ranges = ranges_of(files, position, self._end, range_bytes=range_bytes, uncut=self._uncut)
        while job := list(itertools.islice(ranges, self._ranges_max(range_bytes))):
            if not self._may_begin() or not self._take(job):
                return

    def _ranges_max(self, range_bytes: int) -> int:
        """Of a job."""
        cores = max(1, self._limits.cores())
        return max(cores, min(2 * cores, JOB_BYTES // range_bytes))

    def _may_begin(self) -> bool:
        if self._limits.before_job is not None:
            self._limits.before_job()
        return self._has_time()

    def _take(self, job: Sequence[LogRange]) -> bool:
        """Commit what comes back, in the order of the log. Returns whether what follows may be read as it was cut."""
        results = run_on_workers(self._spark, self._copy, job, may_begin=self._may_begin)
        for pieces, result in zip(job, results, strict=False):  # it ends early when the time is up
            self._check_lost(result)
            self._writer.add(result.stretches)
            if result.broken is not None:
                self._go_on_behind(pieces, result.broken.physical_offset)
            self._after_range()
            if result.broken is not None:
                return False
        return True

    def _check_lost(self, result: RangeResult) -> None:
        if result.is_full:
            self._writer.add(result.stretches)
            self._writer.finish()
            raise LakeFull(self._target.place.address)
        if result.has_no_lake:
            raise StoreUnreadable(
                f"{self._target.place.address}: a task of Spark could not write to the lake, because this folder is "
                "not there where it ran; on a cluster put the lake where every executor reaches it, with report_lake"
            )
        lost = [stretch for stretch in result.stretches if stretch.is_lost]
        there = self._log.files() if lost else []
        for stretch in lost:
            for file in there:
                if file.start <= stretch.begin < file.end:
                    raise StoreUnreadable(
                        f"{file.path}: a task of Spark could not open the file, although it is there; on a cluster "
                        "every executor needs the brokers' folders under the driver's paths (a network's file system)"
                    )

    def _go_on_behind(self, pieces: LogRange, broken_at: int) -> None:
        """A chain that missed a found boundary is read again in one piece; any other is damage, up to the next record.

        What lies before is in the lake by now: the writer stands where the chain is broken.
        """
        piece = next(piece for piece in pieces if piece.begin <= broken_at < piece.end)
        limit = min(piece.file.end, self._end)
        if piece.end < limit:
            self._uncut.add(piece.file.start)
        else:
            self._writer.skip(broken_at, next_record(piece.file, broken_at + 1, limit) or limit)
