"""The lake's table of slaves: how far each was in each minute, as the dashboard sampled it.

    DATA/reports/tables/slaves/    as a lake of messages (manifest.py); its ranges are times in ms

No Spark is needed for it: a day has 1 440 rows for each slave.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from appliance.reports.manifest import Lake, LakeFile, sync_file, sync_folder
from appliance.reports.slave_samples import MINUTE_MS, SlaveSample, read

SCHEMA = pa.schema(
    [
        pa.field("at_ms", pa.int64()),  # when the minute began
        pa.field("broker", pa.string()),
        pa.field("slave", pa.string()),
        pa.field("behind_bytes", pa.int64()),  # the most in the minute, as the next two
        pa.field("behind_messages", pa.int64()),  # about; null: not known
        pa.field("behind_seconds", pa.float64()),
        pa.field("in_sync", pa.bool_()),  # all the time
        pa.field("bytes_per_second", pa.float64()),
        pa.field("seconds", pa.int32()),  # for how many it was seen connected
    ]
)
SAMPLES_DDL = (  # the same as Spark says it
    "at_ms BIGINT, broker STRING, slave STRING, behind_bytes BIGINT, behind_messages BIGINT, behind_seconds DOUBLE, "
    "in_sync BOOLEAN, bytes_per_second DOUBLE, seconds INT"
)


def slave_table(data: Path) -> Lake:
    return Lake(data / "reports" / "tables" / "slaves")


def copy_slave_samples(data: Path) -> int:
    """Bring the table up to date; return how many rows are new. Raises LakeBusy."""
    table = slave_table(data)
    if not table.path.exists() and not read(data, 0):
        return 0  # nothing was ever sampled: there are no slaves
    with table.writing():
        table.remove_leftovers()
        checkpoint = table.checkpoint()
        samples = read(data, checkpoint or 0)
        if samples:
            begin = samples[0].at_ms if checkpoint is None else checkpoint
            end = samples[-1].at_ms + MINUTE_MS
            days = itertools.groupby(samples, key=_date_of)
            files = [_write(table, day, list(rows), begin, end) for day, rows in days]
            sync_folder(table.path / "data")
            table.commit(begin, end, files, None)
    return len(samples)


def _date_of(sample: SlaveSample) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(sample.at_ms / 1000))


def _write(table: Lake, date: str, samples: Sequence[SlaveSample], begin: int, end: int) -> LakeFile:
    name = f"data/date={date}/{begin:020}-{end:020}-00000.parquet"
    path = table.path / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dataclasses.asdict(sample) for sample in samples], SCHEMA), path)
    sync_file(path)
    sync_folder(path.parent)
    return LakeFile(name, date, len(samples), path.stat().st_size, samples[0].at_ms, samples[-1].at_ms)
