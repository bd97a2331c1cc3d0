"""A lake as a Delta table: `data/_delta_log/` lists the files that the manifest lists, for Spark, DuckDB, Trino …

The manifest stays what counts. After each of its entries the table's log gets the difference between what it lists and
what the manifest lists, in one commit, and once more when a run begins to write: so a run that was killed between
the two is made good by the next one, a table that is switched on late begins whole, and nothing is listed twice,
whatever happened. Each commit carries the number of the entry that it follows (application transaction APPLICATION),
by which Delta refuses a second writer.

The table's folder is `data/`, which holds nothing but days and the log: what other engines' VACUUM looks through. It
keeps removed files as long as the lake does (GARBAGE_S).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

import pyarrow as pa

from appliance.reports.errors import ReportError
from appliance.reports.lake_files import sync_file, sync_folder
from appliance.reports.lake_state import LakeFile, LakeState
from appliance.settings.lake_place import StoreAddress

if TYPE_CHECKING:
    from deltalake import DeltaTable

logger = logging.getLogger(__name__)

APPLICATION = "gantrymq"
DATA = "data/"  # files' paths in the manifest begin with it
LOG = "_delta_log"
DAY = "date"
PROPERTIES = {
    "delta.deletedFileRetentionDuration": "interval 6 hours",  # as long as the lake keeps them
    "delta.logRetentionDuration": "interval 7 days",
}


@dataclass(slots=True)
class DeltaLog:
    """The table of one lake. folder: of its days, a path or a URI; time_column: which the files' times are of.

    problems: shared by all tables of a run; what is wrong with this one stands there under its folder.
    """

    folder: Path | StoreAddress
    schema: pa.Schema
    time_column: str
    problems: dict[str, str] = field(default_factory=dict)
    _table: DeltaTable | None = None

    @property
    def address(self) -> str:
        return self.folder.address if isinstance(self.folder, StoreAddress) else str(self.folder)

    @property
    def url(self) -> str:
        """The address as the library wants it: a URI's path is quoted."""
        if isinstance(self.folder, Path):
            return str(self.folder)
        place, separator, path = self.address.partition("://")
        return f"{place}{separator}{quote(path, safe='/:')}"

    @property
    def is_behind(self) -> bool:
        """Whether the last attempt to follow the manifest failed: then what it lists may still be read."""
        return self.address in self.problems

    def follow(self, state: LakeState, sequence: int, op: str = "") -> None:
        """List what the manifest lists. sequence: of its newest entry; op: that entry's, if all before are followed.

        What goes wrong is noted in `problems`: the lake counts without its table, too.
        """
        from deltalake.exceptions import DeltaError

        try:
            self._follow(state, sequence, op)
        except (DeltaError, OSError, ValueError) as failure:
            self._table = None
            reason = str(failure).strip().splitlines()[0] if str(failure).strip() else type(failure).__name__
            self.problems[self.address] = (
                f"the Delta table {self.address} does not have the newest messages: {reason}. If its log is damaged, "
                f"move {self.address}/{LOG} away; the next run writes it anew"
            )
            facts = {"event": "report_table_behind", "table": self.address, "error": str(failure)}
            logger.warning("the table does not follow the lake", extra=facts)
        else:
            self.problems.pop(self.address, None)

    def _follow(self, state: LakeState, sequence: int, op: str) -> None:
        wanted = {path.removeprefix(DATA): file for path, file in state.files.items()}
        table = self._opened()
        if table is None:
            if wanted:
                self._create(wanted, sequence)
            return
        self._have_columns(table)
        listed = _listed(table)
        anew = [path for path, size in listed.items() if path in wanted and wanted[path].size_bytes != size]
        if anew:  # a cut lake may give a name again; one commit may not have a path twice
            self._commit(table, [], anew, None, listed)
            listed = _listed(table)
        added = {path: file for path, file in wanted.items() if path not in listed}
        removed = [path for path in listed if path not in wanted]
        if added or removed:
            was_next = table.transaction_version(APPLICATION) == sequence - 1
            is_same_rows = op == "compact" and was_next and not anew
            adds = _adds(added, self.time_column, not is_same_rows)
            self._commit(table, adds, removed, sequence, listed, is_same_rows)

    def _opened(self) -> DeltaTable | None:
        """The table as it is now; None if there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        if self._table is None:
            try:
                self._table = DeltaTable(self.url, storage_options=self.options())
            except TableNotFoundError:
                return None
        else:
            self._table.update_incremental()
        return self._table

    def _create(self, wanted: Mapping[str, LakeFile], sequence: int) -> None:
        from deltalake.transaction import create_table_with_add_actions

        if isinstance(self.folder, Path):
            self.folder.mkdir(exist_ok=True)
        create_table_with_add_actions(
            self.url,
            _delta_schema([*self.schema, pa.field(DAY, pa.date32())]),
            _adds(wanted, self.time_column, True),
            mode="error",
            partition_by=[DAY],
            configuration=PROPERTIES,
            storage_options=self.options(),
            commit_properties=_properties(sequence),
        )
        self._settle(0)

    def _have_columns(self, table: DeltaTable) -> None:
        """Add what the lake's files have gained since the table was made."""
        there = {column.name for column in table.schema().fields}
        missing = [column for column in self.schema if column.name not in there]
        if missing:
            table.alter.add_columns(list(_delta_schema(missing).fields))
            self._settle(table.version())

    def _commit(
        self,
        table: DeltaTable,
        adds: list[Any],
        removed: Iterable[str],
        sequence: int | None,
        sizes: Mapping[str, int],
        is_same_rows: bool = False,
    ) -> None:
        from deltalake.transaction import RemoveAction

        now_ms = int(time.time() * 1000)
        removes = [RemoveAction(path, not is_same_rows, now_ms, sizes[path], {DAY: _day_of(path)}) for path in removed]
        table.create_write_transaction(
            [*adds, *removes],
            "append",
            table.schema(),
            partition_by=[DAY],
            commit_properties=_properties(sequence) if sequence is not None else None,
        )
        table.update_incremental()
        self._settle(table.version())

    def _settle(self, version: int) -> None:
        """Sync the commit: the library leaves that to the operating system."""
        if isinstance(self.folder, Path):
            log = self.folder / LOG
            entry = log / f"{version:020}.json"
            if entry.exists():
                sync_file(entry)
            sync_folder(log)

    def options(self) -> dict[str, str]:
        """The library's words for a store's options. Keys it finds where Arrow does: in the environment, in a role."""
        if isinstance(self.folder, Path) or self.folder.scheme != "s3":
            return {}
        given = {name: values[-1] for name, values in parse_qs(self.folder.options).items()}
        scheme = given.get("scheme", "https")
        options = {"conditional_put": "etag"}
        options |= {"region": given["region"]} if "region" in given else {}
        if "endpoint_override" in given:
            options |= {"endpoint": f"{scheme}://{given['endpoint_override']}", "allow_http": str(scheme == "http")}
        return options


def check_library() -> None:
    """Raises ReportError when Delta's library is not installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError as missing:
        raise ReportError(
            f"report_lake_table=delta needs the package deltalake ({missing}): run `gantry install-reports`, or "
            "deploy/extra delta in a checkout; without the setting reports run as before"
        ) from missing


def _listed(table: DeltaTable) -> dict[str, int]:
    """Paths that the table lists, with their bytes."""
    actions = pa.table(table.get_add_actions())
    return dict(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True))


def _adds(files: Mapping[str, LakeFile], time_column: str, data_change: bool) -> list[Any]:
    from deltalake.transaction import AddAction

    now_ms = int(time.time() * 1000)
    return [
        AddAction(path, file.size_bytes, {DAY: file.date}, now_ms, data_change, _statistics(file, time_column))
        for path, file in files.items()
    ]


def _statistics(file: LakeFile, time_column: str) -> str:
    """By which engines leave files out that a query's times do not touch."""
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": {time_column: file.min_store_timestamp},
            "maxValues": {time_column: file.max_store_timestamp},
            "nullCount": {time_column: 0},
        }
    )


def _properties(sequence: int) -> Any:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(APPLICATION, sequence)])


def _delta_schema(columns: Iterable[pa.Field]) -> Any:
    from deltalake import Schema

    return Schema.from_arrow(pa.schema(list(columns)))


def _day_of(path: str) -> str:
    return path.partition("/")[0].removeprefix(f"{DAY}=")
