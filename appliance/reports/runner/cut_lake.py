"""Takes out of a lake what a promotion cut from its broker's log, to the record.

A lake may have read messages that the master took and no slave had when it was lost. Only an epoch of the log that is
there now explains a cut: without one, another record in the place of the last one that was read is an error, as ever
(ingest.py). Nothing is read anew: files that hold rows of both kinds are written without those that went.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from appliance.reports.commit_log_files import CommitLogFiles, RecordMark
from appliance.reports.manifest import STAGING, Lake, LakeFile, sync_file, sync_folder
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
    (lake.path / STAGING).mkdir(exist_ok=True)
    for entry in lake.entries():
        if entry["from"] < epoch.start < entry["to"]:
            lake.cut(epoch.start, _kept(lake, entry, epoch.start), _mark_within(found, entry))
            break
    else:
        lake.cut(epoch.start, [], None)
    gone = before - sum(file.rows for file in lake.files())
    logger.warning(
        "messages that a promotion cut from the log leave the reports",
        extra={"event": "report_lake_cut", "broker": lake.broker_name, "epoch": epoch.number, "rows": gone},
    )
    return gone


def _mark_within(found: RecordMark | None, entry: dict[str, Any]) -> RecordMark | None:
    return found if found is not None and found.physical_offset >= entry["from"] else None


def _last_below(lake: Lake, end: int) -> _Last | None:
    """The last record of the lake below an offset."""
    for entry in reversed(lake.entries()):
        if entry["from"] >= end:
            continue
        rows = [row for added in entry["add"] for row in _rows_below(lake.path / added["path"], end)]
        if rows:
            return max(rows)
    return None


def _rows_below(path: Path, end: int) -> list[_Last]:
    """At most one: the file's last row below the offset."""
    table = pq.ParquetFile(path).read(columns=["physical_offset", "store_timestamp"])
    table = table.filter(pc.field("physical_offset") < end)
    if not table.num_rows:
        return []
    row = table.sort_by([("physical_offset", "descending")]).slice(0, 1).to_pylist()[0]
    return [_Last(row["physical_offset"], row["store_timestamp"])]


def _kept(lake: Lake, entry: dict[str, Any], end: int) -> list[LakeFile]:
    """The files of an entry with the rows below the offset alone."""
    kept = []
    for number, file in enumerate(LakeFile(**added) for added in entry["add"]):
        table = pq.ParquetFile(lake.path / file.path).read()
        table = table.filter(pc.field("physical_offset") < end)
        if table.num_rows == file.rows:
            kept.append(file)
        elif table.num_rows:
            staged = lake.path / STAGING / f"{secrets.token_hex(8)}.parquet"
            pq.write_table(table, staged, **PARQUET)
            sync_file(staged)
            path = f"data/date={file.date}/{entry['from']:020}-{end:020}-{number:05}.parquet"
            size_bytes, stored = staged.stat().st_size, table["store_timestamp"].to_numpy()
            staged.replace(lake.path / path)
            sync_folder((lake.path / path).parent)
            kept.append(LakeFile(path, file.date, table.num_rows, size_bytes, int(stored.min()), int(stored.max())))
    return kept
