"""The tables of a data folder at a place, as the setting `report_lake` names it."""

from __future__ import annotations

from pathlib import Path

from appliance.reports.errors import ReportError
from appliance.reports.lake.broker_lake import Lake
from appliance.reports.lake.place import Place
from appliance.reports.lake.record_columns import SCHEMA
from appliance.reports.lake.table import Table
from appliance.reports.samples.schemas import SCHEMAS
from appliance.settings.lake_place import TABLES, place_of

MESSAGES = "messages"


class Lakes:
    """Raises ConfigError for a place that is none, ReportError without Delta's library."""

    def __init__(self, data: Path, place: str = "") -> None:
        check_library()
        reports = data / "reports"
        self.place = Place(place_of(place) or reports)
        self._lock = reports / "lake.lock"
        self.messages = Table(self.place.below(TABLES, MESSAGES), SCHEMA, "store_timestamp", self._lock)

    def of_broker(self, name: str) -> Lake:
        return Lake(self.messages, name)

    def of_samples(self, kind: str) -> Table:
        return Table(self.place.below(TABLES, kind), SCHEMAS[kind], "at", self._lock)

    def brokers(self) -> set[str]:
        """The names of those that have messages there, but for some that are no more and share all their files."""
        return self.messages.ends("broker_name")

    def every(self) -> list[Table]:
        """All that are there."""
        return [table for table in (self.messages, *map(self.of_samples, SCHEMAS)) if table.is_there]


def check_library() -> None:
    """Raises ReportError when Delta's library is not installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError as missing:
        raise ReportError(
            f"the lake needs the package deltalake ({missing}): run `gantry install-reports`"
        ) from missing
