"""A Delta table of the lake, through Delta's own library, which is its only log.

Delta's commits are atomic: in a folder by a name that only one writer gets, in S3 by a conditional write, in HDFS by
renaming. The library syncs nothing, so in a folder each commit is synced here, after the files that it adds. A power
cut can so leave only the newest commits unfinished, and nothing was done yet that relies on them: `repair` removes
them before a run writes.

What is taken out stays RETENTION_HOURS for those who still read it. Reading needs no lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from appliance.reports.errors import LakeBusy, LakeFull, PlaceUnreachable, ReportError
from appliance.reports.lake.log_repair import LOG, repair
from appliance.reports.lake.place import DAY, NewFile, Place, first_line, is_full, refused
from appliance.settings.replaced_file import sync_path

if TYPE_CHECKING:
    from deltalake import DeltaTable

RETENTION_HOURS = 6  # no run takes that long
AT_ANY_TIME = 1 << 62
CHECKPOINT_EACH = 20  # commits; reading that many takes some milliseconds
EXPIRED = "gantrymq/expired"  # what was stored before this time, in ms, is not whole any more
PROPERTIES = {
    "delta.deletedFileRetentionDuration": f"interval {RETENTION_HOURS} hours",
    "delta.logRetentionDuration": "interval 7 days",
}


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A file that counts. `path` is relative to the table; times are in ms."""

    path: str
    date: str
    rows: int
    size_bytes: int
    min_ms: int
    max_ms: int


class Table:
    """`time`: the column by which rows have their day. lock: the file whose flock a writer holds."""

    def __init__(self, place: Place, schema: pa.Schema, time: str, lock: Path) -> None:
        self.place = place
        self.schema = schema
        self.time = time
        self._lock = lock
        self._delta: DeltaTable | None = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writers' lock while the block runs, with a table that is there.

        Raises LakeFull, LakeBusy when another process has the lock, PlaceUnreachable, ReportError.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LakeBusy(f"{self._lock}: another report run is writing the lake; wait for its end") from None
            try:
                if isinstance(self.place.folder, Path):
                    self.place.folder.mkdir(parents=True, exist_ok=True)
                    repair(self.place.folder)
                self._have_table()
                yield
            except OSError as refusal:
                if is_full(refusal):
                    raise LakeFull(self.place.address) from refusal
                raise

    @property
    def is_there(self) -> bool:
        return self._newest() is not None

    def files(self, begin_ms: int | None = None, end_ms: int | None = None) -> list[LakeFile]:
        """The files that count and may have rows of [begin_ms, end_ms)."""
        files = [self._listed(one) for one in self._actions()]
        return [
            file
            for file in files
            if (begin_ms is None or file.max_ms >= begin_ms) and (end_ms is None or file.min_ms < end_ms)
        ]

    def ends(self, column: str) -> set[Any]:
        """The lowest and the highest value of a column in each file."""
        return {one.get(f"{end}.{column}") for one in self._actions() for end in ("min", "max")} - {None}

    def _actions(self) -> list[dict[str, Any]]:
        table = self._newest()
        if table is None:
            return []
        with self._told():
            return pa.table(table.get_add_actions(flatten=True)).to_pylist()  # type: ignore[no-any-return]

    def _listed(self, one: Mapping[str, Any]) -> LakeFile:
        low, high = _ms(one.get(f"min.{self.time}"), 0), _ms(one.get(f"max.{self.time}"), AT_ANY_TIME)
        rows = one.get("num_records") or 0  # other engines need not tell
        return LakeFile(one["path"], str(one[f"partition.{DAY}"]), rows, one["size_bytes"], low, high)

    def numbers(self) -> Callable[[str], int | None]:
        """The newest number that a commit carried under a name, as the table is now."""
        table = self._newest()

        def number_of(name: str) -> int | None:
            with self._told():
                return table.transaction_version(name) if table is not None else None

        return number_of

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query over the table, which it calls `rows`."""
        from deltalake import QueryBuilder

        table = self._newest()
        if table is None:
            return []
        with self._told():
            found = pa.table(QueryBuilder().register("rows", table).execute(sql).read_all())
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def commit(
        self, added: Sequence[NewFile] = (), removed: Sequence[LakeFile] = (), numbers: Mapping[str, int] | None = None
    ) -> None:
        """One commit: files in, files out, numbers. Call it inside `writing()`. Raises LakeBusy, ReportError."""
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        self.place.settle(file.path for file in added)
        now_ms = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size_bytes, {DAY: file.date}, now_ms, True, _statistics(file)) for file in added
        ]
        actions += [RemoveAction(file.path, True, now_ms, file.size_bytes, {DAY: file.date}) for file in removed]
        transactions = [Transaction(name, value) for name, value in (numbers or {}).items()]
        with self.changed(has_files=False) as table:
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                partition_by=[DAY],
                commit_properties=CommitProperties(app_transactions=transactions),
                post_commithook_properties=no_hooks(),
            )

    @contextlib.contextmanager
    def changed(self, *, has_files: bool = True) -> Iterator[DeltaTable]:
        """The table for a block that commits to it. has_files: whether the library writes files, which are synced."""
        table = self._newest()
        assert table is not None, "outside of writing()"
        before, paths = table.version(), _paths(table) if has_files else set()
        with self._told():
            yield table
            table.update_incremental()
        if isinstance(self.place.folder, Path):
            new = [self.place.folder / path for path in _paths(table) - paths] if has_files else []
            for path in [*new, *{path.parent for path in new}]:
                sync_path(path)
            log = self.place.folder / LOG
            for version in range(before + 1, table.version() + 1):
                sync_path(log / f"{version:020}.json")
            sync_path(log)
        if table.version() // CHECKPOINT_EACH > before // CHECKPOINT_EACH:
            self._checkpoint(table)

    def _checkpoint(self, table: DeltaTable) -> None:
        with self._told():
            table.create_checkpoint()
        if isinstance(self.place.folder, Path):
            log = self.place.folder / LOG
            for path in [*log.glob(f"{table.version():020}.checkpoint*"), log / "_last_checkpoint", log]:
                sync_path(path)
        with self._told():
            table.cleanup_metadata()  # commits older than the log's retention

    def _have_table(self) -> None:
        from deltalake import DeltaTable, Schema

        table = self._newest()
        wanted = Schema.from_arrow(pa.schema([*self.schema, pa.field(DAY, pa.date32())]))
        if table is None:
            with self._told():
                self._delta = DeltaTable.create(
                    self.place.delta_url,
                    wanted,
                    partition_by=[DAY],
                    configuration=PROPERTIES,
                    storage_options=self.place.delta_options,
                    post_commithook_properties=no_hooks(),
                )
            if isinstance(self.place.folder, Path):
                log = self.place.folder / LOG
                for path in (log / f"{0:020}.json", log, self.place.folder, self.place.folder.parent):
                    sync_path(path)
            return
        there = {column.name for column in table.schema().fields}
        if missing := [column for column in wanted.fields if column.name not in there]:
            with self.changed(has_files=False) as table:
                table.alter.add_columns(missing, post_commithook_properties=no_hooks())

    def _newest(self) -> DeltaTable | None:
        """The table as it is now; None if there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with self._told():
            if self._delta is not None:
                self._delta.update_incremental()
                return self._delta
            try:
                self._delta = DeltaTable(self.place.delta_url, storage_options=self.place.delta_options)
            except TableNotFoundError:
                return None
        return self._delta

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Have what the library refuses said in words."""
        from deltalake.exceptions import CommitFailedError, DeltaError

        try:
            with refused(self.place.address):
                yield
        except ReportError:
            self._delta = None
            raise
        except CommitFailedError as lost:
            self._delta = None
            raise LakeBusy(
                f"{self.place.address}: another program wrote the same meanwhile: {first_line(lost)}"
            ) from lost
        except (DeltaError, OSError) as failure:
            self._delta = None
            if is_full(failure):
                raise LakeFull(self.place.address) from failure
            if isinstance(failure, OSError):
                raise
            kind = PlaceUnreachable if "://" in self.place.address else ReportError
            raise kind(f"{self.place.address}: the Delta table can't be used: {first_line(failure)}") from failure


def _paths(table: DeltaTable) -> set[str]:
    return set(pa.table(table.get_add_actions())["path"].to_pylist())


def no_hooks() -> Any:
    """Checkpoints are made and synced here."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def _ms(at: datetime | None, unknown: int) -> int:
    return unknown if at is None else round(at.timestamp() * 1000)


def _statistics(file: NewFile) -> str:
    """By which engines leave files out that a query does not touch."""
    said = {
        "numRecords": file.rows,
        "minValues": dict(file.low),
        "maxValues": dict(file.high),
        "nullCount": dict.fromkeys(file.low, 0),
    }
    return json.dumps(said, default=lambda at: at.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
