"""Takes out of a lake what a promotion cut from its broker's log, to the record.

A lake may have read messages that the master took and no slave had when it was lost. Only an epoch of the log that is
there now explains a cut: without one, another record in the place of the last one that was read is an error, as ever
(ingest.py). Nothing is read anew: files that hold rows of both kinds are written without those that went.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow.compute as pc

from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.lake_state import LakeFile
from appliance.reports.manifest import Lake
from appliance.reports.range_reader import PARQUET
from appliance.reports.runner.standing import Epoch

logger = logging.getLogger(__name__)


class _Last(NamedTuple):
    """The last record of a lake below an offset."""

    physical_offset: int
    store_timestamp: int


def cut_to_log(lake: Lake, log: CommitLogFiles, epochs: Sequence[Epoch]) -> int:
    """Have the lake end where its log and the one that is there now part; return how many rows went. ReportError.

    Call it inside `writing()`. Nothing is changed where the last record is there, or where no epoch tells why not.
    """
    mark = lake.last_mark()
    files = log.begun_files()
    if mark is None or not files or mark[0] < files[0].start or log.mark_at(mark[0]) == mark:
        return 0
    for epoch in reversed(epochs[1:]):
        if epoch.start > mark[0]:
            continue
        last = _last_below(lake, epoch.start)
        if last is None or last.physical_offset < files[0].start or _is_there(log, last):
            return _cut(lake, log, epoch, last)
    return 0


def _is_there(log: CommitLogFiles, last: _Last) -> bool:
    found = log.mark_at(last.physical_offset)
    return found is not None and found.store_timestamp == last.store_timestamp


def _cut(lake: Lake, log: CommitLogFiles, epoch: Epoch, last: _Last | None) -> int:
    before = sum(file.rows for file in lake.files())
    found = log.mark_at(last.physical_offset) if last is not None else None
    lake.place.clear()
    beyond = [file for file in lake.files() if file.span[1] > epoch.start]
    prefix = f"k{lake.next_sequence():x}"
    kept = {file.path: _kept(lake, file, epoch.start, f"{prefix}-{at:05}") for at, file in enumerate(beyond)}
    lake.cut(epoch.start, kept, found)
    gone = before - sum(file.rows for file in lake.files())
    logger.warning(
        "messages that a promotion cut from the log leave the reports",
        extra={"event": "report_lake_cut", "broker": lake.broker_name, "epoch": epoch.number, "rows": gone},
    )
    return gone


def _last_below(lake: Lake, end: int) -> _Last | None:
    """The last record of the lake below an offset. Files of different days may be of the same range."""
    found: _Last | None = None
    for file in sorted(lake.files(), key=lambda file: file.span[1], reverse=True):
        if found is not None and file.span[1] <= found.physical_offset:
            break
        if file.span[0] < end:
            found = max(filter(None, (found, _last_row(lake, file.path, end))), default=None)
    return found


def _last_row(lake: Lake, path: str, end: int) -> _Last | None:
    """The file's last row below the offset."""
    table = lake.place.read(path, ["physical_offset", "store_timestamp"])
    table = table.filter(pc.field("physical_offset") < end)
    if not table.num_rows:
        return None
    row = table.sort_by([("physical_offset", "descending")]).slice(0, 1).to_pylist()[0]
    return _Last(row["physical_offset"], row["store_timestamp"])


def _kept(lake: Lake, file: LakeFile, end: int, suffix: str) -> LakeFile | None:
    """What a file has below the offset, as a file of its own; the file itself if that is all, None if nothing."""
    table = lake.place.read(file.path)
    table = table.filter(pc.field("physical_offset") < end)
    if table.num_rows == file.rows:
        return file
    if not table.num_rows:
        return None
    name, size_bytes = lake.place.stage(table, file.date, (file.span[0], end), PARQUET)
    path = lake.place.keep(name, f"data/date={file.date}/{file.span[0]:020}-{end:020}-{suffix}.parquet")
    lake.place.settle([path])
    stored = table["store_timestamp"].to_numpy()
    return LakeFile(path, file.date, table.num_rows, size_bytes, int(stored.min()), int(stored.max()))
