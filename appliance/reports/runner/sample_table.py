"""The lake's tables of samples: slaves, groups and brokers in each minute, as the dashboard sampled them.

    DATA/reports/tables/KIND/    as a lake of messages (manifest.py); its ranges are times in ms

No Spark is needed for it: a day has 1 440 rows for each slave or broker, and at most some 300 000 of groups.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from appliance.reports.lake_state import LakeFile
from appliance.reports.manifest import Lake
from appliance.reports.places.lakes import Lakes
from appliance.reports.samples.kinds import BROKERS, GROUPS, SLAVES, Row, SampleKind
from appliance.reports.samples.lines import MINUTE_MS, read
from appliance.reports.samples.schemas import SCHEMAS

_SPARKS = {"int64": "BIGINT", "int32": "INT", "string": "STRING", "double": "DOUBLE", "bool": "BOOLEAN"}
SAMPLES_DDL = {  # the same as Spark says it
    name: ", ".join(f"`{field.name}` {_SPARKS[str(field.type)]}" for field in schema)
    for name, schema in SCHEMAS.items()
}


def copy_samples(data: Path, lakes: Lakes) -> int:
    """Bring all tables up to date; return how many rows are new. Raises ReportError."""
    return _copy(data, SLAVES, lakes) + _copy(data, GROUPS, lakes) + _copy(data, BROKERS, lakes)


def _copy(data: Path, kind: SampleKind[Row], lakes: Lakes) -> int:
    table = lakes.of_samples(kind.name)
    if not table.path.exists() and not read(data, kind, 0):
        return 0  # nothing was ever sampled, as with slaves where there are none
    with table.writing():
        table.remove_leftovers()
        checkpoint = table.checkpoint()
        rows = read(data, kind, checkpoint or 0)
        if rows:
            begin = rows[0].at_ms if checkpoint is None else checkpoint
            end = rows[-1].at_ms + MINUTE_MS
            days = itertools.groupby(rows, key=lambda row: _date_of(row.at_ms))
            files = [_write(table, SCHEMAS[kind.name], day, list(some), begin, end) for day, some in days]
            table.place.settle([file.path for file in files])
            table.commit(begin, end, files, None)
    return len(rows)


def _date_of(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at_ms / 1000))


def _write(table: Lake, schema: pa.Schema, date: str, rows: Sequence[Row], begin: int, end: int) -> LakeFile:
    values = pa.Table.from_pylist([dataclasses.asdict(row) for row in rows], schema)
    name, size_bytes = table.place.stage(values, date, (begin, end), {"compression": "zstd"})
    path = table.place.keep(name, f"data/date={date}/{begin:020}-{end:020}-00000.parquet")
    return LakeFile(path, date, len(rows), size_bytes, rows[0].at_ms, rows[-1].at_ms)
