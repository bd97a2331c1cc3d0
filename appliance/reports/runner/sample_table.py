"""The lake's tables of samples: slaves, groups and brokers in each minute, as the dashboard sampled them.

No Spark is needed for it: a day has 1 440 rows for each slave or broker, and at most some 300 000 of groups.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from appliance.reports.lake.lakes import Lakes
from appliance.reports.samples.kinds import BROKERS, GROUPS, SLAVES, Row, SampleKind
from appliance.reports.samples.lines import MINUTE_MS, read

PARQUET = {"compression": "zstd"}
COPIED = "gantrymq/copied"  # minutes before this time, in ms, are in the table


def copy_samples(data: Path, lakes: Lakes) -> int:
    """Bring all tables up to date; return how many rows are new. Raises ReportError."""
    return _copy(data, SLAVES, lakes) + _copy(data, GROUPS, lakes) + _copy(data, BROKERS, lakes)


def _copy(data: Path, kind: SampleKind[Row], lakes: Lakes) -> int:
    table = lakes.of_samples(kind.name)
    if not table.is_there and not read(data, kind, 0):
        return 0  # nothing was ever sampled, as with slaves where there are none
    with table.writing():
        rows = read(data, kind, table.numbers()(COPIED) or 0)
        if rows:
            days = itertools.groupby(rows, key=lambda row: _date_of(row.at_ms))
            files = [table.place.write(_values(table.schema, some), date, ["at"], PARQUET) for date, some in days]
            table.commit(files, numbers={COPIED: rows[-1].at_ms + MINUTE_MS})
    return len(rows)


def _date_of(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at_ms / 1000))


def _values(schema: pa.Schema, rows: Iterable[Row]) -> pa.Table:
    """The samples with their time as Arrow has it."""
    values = [{**asdict(row), "at": row.at_ms * 1000} for row in rows]
    return pa.Table.from_pylist(values, schema)
