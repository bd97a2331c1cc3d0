"""Takes over, once, a lake from before Delta was its log: files listed by a manifest of this appliance's own.

    OLD/lake/BROKER/_log/<sequence>.json    entries: files in, files out, ranges, gaps; a checkpoint says all before it
    OLD/lake/BROKER/data/date=.../*.parquet times in ms as numbers, no column for the broker
    OLD/tables/KIND/                        samples, in the same way; ranges are times

OLD is the lake's place; of one in a store the entries are in DATA/reports/places/. Everything of a broker comes in one
commit with its position, so it comes once, whenever a run is killed. Then the old folder gets the name
`...-before-delta`, and is never read again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from appliance.reports.errors import ReportError
from appliance.reports.lake.lakes import Lakes
from appliance.reports.lake.place import NewFile, Place
from appliance.reports.lake.range_reader import BOUNDS, PARQUET
from appliance.reports.lake.reading import Gap, Reading
from appliance.reports.lake.table import EXPIRED, Table
from appliance.reports.runner.sample_table import COPIED
from appliance.reports.runner.sample_table import PARQUET as SAMPLES_PARQUET
from appliance.settings.replaced_file import sync_path
from gantrymq.contrib.arrow.columns import times

logger = logging.getLogger(__name__)

AFTER = "-before-delta"


@dataclass(slots=True)
class _Old:
    """What the entries of a manifest say together. files: by path, relative to its folder."""

    files: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    expired_ms: int | None = None

    def take(self, entry: Mapping[str, Any]) -> None:
        op, added = entry["op"], {file["path"]: file for file in entry["add"]}
        last = tuple(entry["last"]) if entry["last"] else None
        if op == "checkpoint":
            self.files, self.expired_ms = {}, entry["expired_ms"]
            self.reading = Reading(entry["to"], last, [Gap(*gap) for gap in entry["gaps"]])
        elif op == "gap":
            self.reading.lose(entry["from"], entry["to"], is_damage=bool(entry.get("damage")))
        elif op == "append":
            earliest_ms = min((file["min_store_timestamp"] for file in added.values()), default=None)
            self.reading.read(entry["to"], last, earliest_ms)
        else:
            gone = [self.files.pop(path) for path in entry["remove"]]
            if op == "expire":
                newest = max((file["max_store_timestamp"] + 1 for file in gone), default=0)
                self.expired_ms = max(newest, self.expired_ms or 0)
        self.files |= added


def take_over(data: Path, lakes: Lakes) -> None:
    """Have the tables begin with what an older lake at the place has. Raises ReportError."""
    folder, place = _old_home(data, lakes.place)
    for path, old in _old_lakes(folder / "lake"):
        lake = lakes.of_broker(path.name)
        with lake.table.writing():
            if lake.position() is None:
                convert = functools.partial(_message_rows, schema=lake.table.schema, broker_name=path.name)
                files = _copied(lake.table, place.below("lake", path.name), old, convert, BOUNDS, PARQUET)
                lake.set_reading(old.reading, files, _expired(lake.table, old))
    for path, old in _old_lakes(folder / "tables"):
        table = lakes.of_samples(path.name)
        with table.writing():
            if table.numbers()(COPIED) is None:
                convert = functools.partial(_sample_rows, schema=table.schema)
                files = _copied(table, place.below("tables", path.name), old, convert, ["at"], SAMPLES_PARQUET)
                table.commit(files, numbers={COPIED: old.reading.end or 0, **_expired(table, old)})
    for old_folder in (folder / "lake", folder / "tables"):
        if next(old_folder.glob("*/_log"), None) is not None:
            old_folder.rename(old_folder.with_name(old_folder.name + AFTER))
            sync_path(folder)
            facts = {"event": "report_lake_taken_over", "kept": f"{old_folder}{AFTER}"}
            logger.warning("the lake is a Delta table now; the old one may be deleted", extra=facts)


def _old_home(data: Path, place: Place) -> tuple[Path, Place]:
    """The folder of its manifests, and the place of its files."""
    if isinstance(place.folder, Path):
        return place.folder, place
    number = hashlib.sha256(place.folder.address.encode()).hexdigest()[:16]
    return data / "reports" / "places" / number, place


def _old_lakes(folder: Path) -> Iterator[tuple[Path, _Old]]:
    for log in sorted(folder.glob("*/_log")):
        entries = [(int(path.stem), json.loads(path.read_bytes())) for path in sorted(log.glob("*.json"))]
        checkpoints = [at for at, (_number, entry) in enumerate(entries) if entry["op"] == "checkpoint"]
        entries = entries[checkpoints[-1] if checkpoints else 0 :]  # of those before it some may have been deleted
        first = entries[0][0] if checkpoints else 0
        old = _Old()
        for expected, (number, entry) in enumerate(entries, first):
            if number != expected:
                raise ReportError(f"{log}: entry {expected} is missing; restore it, or move {log.parent} away")
            old.take(entry)
        if entries:
            yield log.parent, old


def _copied(
    table: Table, place: Place, old: _Old, convert: Any, bounds: Sequence[str], how: Mapping[str, Any]
) -> list[NewFile]:
    """The old files' rows in new ones, which count with the commit that follows."""
    new = []
    for path, file in old.files.items():
        rows = convert(place.read(path))
        if rows.num_rows != file["rows"]:
            raise ReportError(f"{place.address}/{path} has {rows.num_rows} rows and not {file['rows']}: restore it")
        new.append(table.place.write(rows, file["date"], bounds, how))
    return new


def _message_rows(rows: pa.Table, schema: pa.Schema, broker_name: str) -> pa.Table:
    names = pa.repeat(pa.scalar(broker_name, pa.string()), rows.num_rows)
    return _cast(rows.append_column("broker_name", names), schema)


def _sample_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return _cast(rows.rename_columns({"at_ms": "at"}), schema)


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Numbers of ms become times; columns that older files lack are null."""
    columns = []
    for column in schema:
        if column.name not in rows.column_names:
            columns.append(pa.nulls(rows.num_rows, column.type))
        elif pa.types.is_timestamp(column.type):
            columns.append(times(rows[column.name].to_numpy()))
        else:
            columns.append(rows[column.name].cast(column.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _expired(table: Table, old: _Old) -> dict[str, int]:
    known = table.numbers()(EXPIRED) or 0
    return {EXPIRED: max(known, old.expired_ms)} if old.expired_ms else {}
