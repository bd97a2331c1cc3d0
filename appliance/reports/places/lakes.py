"""The lakes of a data folder: one of messages for each broker, one for each table of samples.

FOLDER/lake/BROKER/, FOLDER/tables/KIND/    in a folder: DATA/reports, or the one of `report_lake`
DATA/reports/places/NUMBER/lake/BROKER/     only the manifest, of a lake whose files are in a store
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from appliance.reports.manifest import Lake
from appliance.reports.open_tables.delta import DeltaLog, check_library
from appliance.reports.places.object_store import StoreFiles
from appliance.reports.record_columns import SCHEMA
from appliance.reports.samples.schemas import SCHEMAS
from appliance.settings.lake_place import StoreAddress, place_of

MESSAGES, SAMPLES = "lake", "tables"


class Lakes:
    """Those of a data folder at a place, as `report_lake` names it. table: `report_lake_table`.

    problems: of tables that do not follow their lakes, by their addresses. Raises ConfigError for a place that is none,
    ReportError without the library of the tables.
    """

    def __init__(self, data: Path, place: str = "", table: str = "") -> None:
        found = place_of(place)
        if table:
            check_library()
        self._has_tables = bool(table)
        self.problems: dict[str, str] = {}
        self._store = found if isinstance(found, StoreAddress) else None
        reports = data / "reports"
        if self._store is not None:
            self.folder = reports / "places" / hashlib.sha256(self._store.address.encode()).hexdigest()[:16]
        else:
            self.folder = found if isinstance(found, Path) else reports

    def of_broker(self, name: str) -> Lake:
        return self._lake(MESSAGES, name)

    def of_samples(self, kind: str) -> Lake:
        return self._lake(SAMPLES, kind)

    def of_brokers(self) -> list[Lake]:
        """All that there are, sorted by the brokers' names."""
        return self._there(MESSAGES)

    def every(self) -> list[Lake]:
        return [*self.of_brokers(), *self._there(SAMPLES)]

    def _there(self, kind: str) -> list[Lake]:
        folder = self.folder / kind
        names = [path.name for path in folder.iterdir() if (path / "_log").is_dir()] if folder.is_dir() else []
        return [self._lake(kind, name) for name in sorted(names)]

    def _lake(self, kind: str, name: str) -> Lake:
        path = self.folder / kind / name
        place = StoreFiles(self._store, f"{kind}/{name}") if self._store is not None else None
        return Lake(path, place, self._table(kind, name, place) if self._has_tables else None)

    def _table(self, kind: str, name: str, place: StoreFiles | None) -> DeltaLog:
        folder: Path | StoreAddress = self.folder / kind / name / "data"
        if place is not None:
            folder = StoreAddress(f"{place.address}/data", place.place.options)
        if kind == MESSAGES:
            return DeltaLog(folder, SCHEMA, "store_timestamp", self.problems)
        return DeltaLog(folder, SCHEMAS[name], "at_ms", self.problems)
