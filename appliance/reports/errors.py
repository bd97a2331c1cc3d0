"""Errors of reports; the text of each has the fix.

ReportError                    the report can't be computed; the text says why and what to do
├─ JavaNotFound                no usable Java for Spark
├─ BashNotFound                the scripts that start Spark's Java have no bash
├─ LakeBusy                    another run is writing this lake
├─ LakeFull                    the disk of the lake has no room
├─ LogTruncated                the commit log no longer contains what was read from it before
├─ BrokenRecordChain           bytes in the middle of a commit log are not a chain of records: a run goes on behind them
├─ PlaceUnreachable            the store of the lake's files refuses, or does not answer
└─ StoreUnreadable             the store folder is missing, has no commit log, or a file is missing
"""

from __future__ import annotations

from pathlib import Path

from gantrymq.errors import GantryError


class ReportError(GantryError):
    """The report can't be computed; the text says why and what to do."""


class JavaNotFound(ReportError):
    """No Java for Spark was found; the text lists what was tried."""


class BashNotFound(ReportError):
    """The scripts with which Spark starts its Java need bash, which is not on PATH."""


class LakeBusy(ReportError):
    """Another run holds the lake's lock."""


class LakeFull(ReportError):
    """The disk of the lake takes no more bytes."""

    def __init__(self, folder: Path | str) -> None:
        super().__init__(
            f"{folder}: the disk of this folder, the reports' lake, is full. What was read before stays; free space "
            "there, let the lake keep less (report_lake_days, report_lake_bytes), or put it on another disk "
            "(report_lake)"
        )


class LogTruncated(ReportError):
    """The commit log ends before the checkpoint, or the last record that was read has been replaced."""


class BrokenRecordChain(ReportError):
    """A record before the log's valid end is invalid. `physical_offset` is where it starts."""

    def __init__(self, path: str, physical_offset: int) -> None:
        # Both go to Exception too: Spark pickles what a worker raises and rebuilds it from `args`.
        super().__init__(path, physical_offset)
        self.path = path
        self.physical_offset = physical_offset

    def __str__(self) -> str:
        return f"{self.path}: no valid record at physical offset {self.physical_offset}, although others follow"


class PlaceUnreachable(ReportError):
    """The store that holds the lake's files refused, or did not answer."""


class StoreUnreadable(ReportError):
    """The store folder is missing, has no commit log, or a file in the middle of the log is missing."""


class WorkersFailed(ReportError):
    """A task failed on Spark's workers, however often it was repeated."""
