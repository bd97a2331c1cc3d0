"""What can go wrong in a report, each with the fix in its text.

ReportError                    the report can't be made; the text says why and what to do
├─ JavaNotFound                no usable Java for Spark
├─ LakeBusy                    another run is writing this lake
├─ LogTruncated                the commit log no longer holds what was read from it: history and broker disagree
├─ BrokenRecordChain           bytes in the middle of a commit log are not a chain of records
└─ StoreUnreadable             the store folder is missing, empty of a commit log, or has a hole
"""

from __future__ import annotations

from gantrymq.errors import GantryError


class ReportError(GantryError):
    """The report can't be made; the text says why and what to do."""


class JavaNotFound(ReportError):
    """No Java that Spark can run on was found; the text lists what was tried."""


class LakeBusy(ReportError):
    """Another run holds the lake's lock."""


class LogTruncated(ReportError):
    """The commit log ends before the checkpoint, or its last record read is another one now."""


class BrokenRecordChain(ReportError):
    """Records before the log's valid end can't be followed. `physical_offset` is where the chain breaks."""

    def __init__(self, path: str, physical_offset: int) -> None:
        # Both go to Exception too: Spark pickles what a worker raises and rebuilds it from `args`.
        super().__init__(path, physical_offset)
        self.path = path
        self.physical_offset = physical_offset

    def __str__(self) -> str:
        return (
            f"{self.path}: no valid record at physical offset {self.physical_offset}, although later files hold some; "
            "stop the broker and start it again so that it repairs its log, then run the report again"
        )


class StoreUnreadable(ReportError):
    """The store folder is missing, holds no commit log, or lacks a file in the middle."""
