"""Lakes of tests, and what is in them, read without Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appliance.reports.lake.broker_lake import Lake
    from appliance.reports.lake.table import Table


def lake_in(data: Path, name: str = "broker-a", place: str = "") -> Lake:
    """The lake of a broker, as a data folder's runs fill it."""
    from appliance.reports.lake.lakes import Lakes

    return Lakes(data, place).of_broker(name)


def paths_of(table: Table) -> list[str]:
    """The files that count, of a table in a folder."""
    return [table.place.spark_url(file.path) for file in table.files()]


def rows_of(table: Table, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """All rows of the files that count."""
    return [row for file in table.files() for row in table.place.read(file.path, columns).to_pylist()]


def offsets_in(lake: Lake) -> list[int]:
    """Every physical offset of the broker, once for each time that it is there."""
    rows = rows_of(lake.table, ["physical_offset", "broker_name"])
    return sorted(row["physical_offset"] for row in rows if row["broker_name"] == lake.broker_name)


def with_delta_scan(sql: str) -> list[tuple[Any, ...]]:
    """The rows of DuckDB's query, whose extension for Delta, which it would fetch, is replaced by Delta's library."""
    import duckdb
    from deltalake import DeltaTable

    found = re.search(r"delta_scan\('([^']+)'\)", sql)
    assert found is not None, sql
    messages = DeltaTable(found[1]).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("messages", messages)
        return connection.sql(sql.replace(found[0], "messages")).fetchall()
