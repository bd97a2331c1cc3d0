"""The lake as a Delta table: read through Delta's own library it has the manifest's rows, whatever happened between."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake", reason="deploy/locks/delta.lock is not installed")

import pyarrow as pa
from deltalake import DeltaTable

from appliance.reports.errors import ReportError
from appliance.reports.manifest import GARBAGE_S, Lake
from appliance.reports.open_tables.delta import DeltaLog
from appliance.reports.places.lakes import Lakes
from appliance.reports.record_columns import SCHEMA
from appliance.reports.runner.ingest import IngestLimits, ingest
from appliance.reports.runner.lake_upkeep import compact
from appliance.reports.runner.sample_table import copy_samples
from appliance.reports.samples.kinds import SLAVES
from appliance.reports.samples.lines import append
from appliance.settings.lake_place import StoreAddress
from tests.appliance.reports.killing import RANGE_BYTES, SPARK, have_tasks_here
from tests.appliance.reports.samples.rows import sample
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log

LIMITS = IngestLimits(range_bytes=RANGE_BYTES, range_bytes_min=RANGE_BYTES)
RECORDS = [Record(body=bytes(700), stored_at=NOON + index * HOUR_MS // 3) for index in range(50)]
LATER_MS = NOON + 100 * 24 * HOUR_MS


@pytest.fixture(autouse=True)
def tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    have_tasks_here(monkeypatch)


def lake_in(folder: Path, place: str = "") -> Lake:
    return Lakes(folder, place, "delta").of_broker("shop a#1")


def table_of(lake: Lake) -> DeltaTable:
    """As another program opens it."""
    assert isinstance(lake.table, DeltaLog)
    return DeltaTable(lake.table.url, storage_options=lake.table.options())


def offsets_in(table: DeltaTable) -> list[int]:
    """Read by the library's own engine, whole files and names of the columns included."""
    return sorted(pa.table(table.scan(columns=["physical_offset"]))["physical_offset"].to_pylist())


def is_followed(lake: Lake) -> bool:
    """Whether the table lists the manifest's files, with their rows, days, and times."""
    actions = pa.table(table_of(lake).get_add_actions(flatten=True)).to_pylist()
    listed = {
        (f"data/{one['path']}", str(one["partition.date"]), one["num_records"], one["size_bytes"],
         one["min.store_timestamp"], one["max.store_timestamp"])
        for one in actions
    }  # fmt: skip
    return len(actions) == len(listed) and listed == {
        (file.path, file.date, file.rows, file.size_bytes, file.min_store_timestamp, file.max_store_timestamp)
        for file in lake.files()
    }


def test_its_rows_are_the_manifests_through_merging_expiry_and_deletion(
    tmp_path: Path, address: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{address.address}?{address.options}" if address.scheme == "s3" else ""
    log, lake = tmp_path / "commitlog", lake_in(tmp_path, place)
    *first, end = write_log(log, RECORDS[:30], file_bytes=1 << 15)
    ingest(SPARK, [log], lake, limits=LIMITS)
    assert offsets_in(table_of(lake)) == first and is_followed(lake)
    *second, end = write_log(log, RECORDS[30:], file_bytes=1 << 15, start=end)
    ingest(SPARK, [log], lake, limits=LIMITS)
    assert offsets_in(table_of(lake)) == first + second and is_followed(lake)
    before = table_of(lake)
    monkeypatch.setattr("appliance.reports.compaction.FILES_MIN", 2)
    with lake.writing():
        assert compact(lake, lambda function, paths: function(paths), now_ms=LATER_MS) > 1
    assert offsets_in(table_of(lake)) == first + second and is_followed(lake)
    assert offsets_in(before) == first + second, "who reads while files are merged goes on"
    gone = lake.files()[0]
    with lake.writing():
        lake.replace("expire", [gone])
    left = offsets_in(table_of(lake))
    assert len(left) == 50 - gone.rows and is_followed(lake)
    with lake.writing():
        monkeypatch.setattr("appliance.reports.manifest.GARBAGE_S", -GARBAGE_S)
        assert lake.remove_leftovers() > 0
    assert offsets_in(table_of(lake)) == left
    assert table_of(lake).vacuum(dry_run=True, full=True) == [], "what its vacuum would delete is gone already"


def test_ended_between_the_two_commits_the_next_run_makes_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended by what nothing catches: the library can't be forked, and a process of its own for each point is dear."""
    log, steps = tmp_path / "commitlog", _Steps(monkeypatch)
    *offsets, _end = write_log(log, RECORDS, file_bytes=1 << 15)
    behind = set()
    for point in itertools.count():
        lake = lake_in(tmp_path / str(point))
        steps.left = point
        with contextlib.suppress(_Ended):
            ingest(SPARK, [log], lake, limits=LIMITS)
        was_ended, steps.left = steps.left < 0, 1 << 30
        assert isinstance(lake.table, DeltaLog)
        listed = offsets_in(table_of(lake)) if DeltaTable.is_deltatable(lake.table.url) else []
        counted = sum(file.rows for file in lake.files())
        assert listed == offsets[: len(listed)] and len(listed) <= counted
        behind.add(counted - len(listed))
        ingest(SPARK, [log], lake_in(tmp_path / str(point)), limits=LIMITS)
        assert offsets_in(table_of(lake)) == offsets and is_followed(lake)
        if not was_ended:
            break
    assert 0 in behind and len(behind) > 1, "some ends were between the two"


class _Ended(BaseException):
    pass


class _Steps:
    """Ends before and after each commit, to the manifest or to the table, when `left` of them are done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 1 << 30
        for name, owner in (("_write", Lake), ("_create", DeltaLog), ("_commit", DeltaLog)):
            monkeypatch.setattr(owner, name, self._stepped(getattr(owner, name)))

    def _stepped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._step()
            result = real(*arguments, **named)
            self._step()
            return result

        return call

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Ended


def test_switched_on_late_it_begins_whole_and_gets_columns_that_came_later(tmp_path: Path) -> None:
    log = tmp_path / "commitlog"
    *offsets, end = write_log(log, RECORDS[:30], file_bytes=1 << 15)
    ingest(SPARK, [log], Lakes(tmp_path).of_broker("shop a#1"), limits=LIMITS)
    lake = lake_in(tmp_path)
    assert isinstance(lake.table, DeltaLog)
    lake.table.schema = SCHEMA.remove(SCHEMA.get_field_index("cause"))
    with lake.writing():
        assert offsets_in(table_of(lake)) == offsets
    *more, _ = write_log(log, RECORDS[30:], file_bytes=1 << 15, start=end)
    lake = lake_in(tmp_path)
    ingest(SPARK, [log], lake, limits=LIMITS)
    assert offsets_in(table_of(lake)) == offsets + more
    assert {field.name for field in table_of(lake).schema().fields} == {*SCHEMA.names, "date"}
    assert all(field.nullable for field in table_of(lake).schema().fields), "older files lack the newest columns"


def test_a_name_that_is_given_again_is_listed_as_it_is_now(tmp_path: Path) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    write_log(log, RECORDS, file_bytes=1 << 15)
    ingest(SPARK, [log], lake, limits=LIMITS)
    state = lake.state()
    path, file = next(iter(state.files.items()))
    shorter = lake.place.read(path).slice(0, file.rows - 1)
    name, size_bytes = lake.place.stage(shorter, file.date, file.span, {})
    lake.place.keep(name, path)
    changed = type(file)(path, file.date, file.rows - 1, size_bytes, file.min_store_timestamp, file.max_store_timestamp)
    with lake.writing():
        lake.cut(state.end or 0, {path: changed}, state.last)
    assert len(offsets_in(table_of(lake))) == 49 and is_followed(lake)


def test_what_another_engine_merged_is_put_back(tmp_path: Path) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *offsets, _ = write_log(log, RECORDS, file_bytes=1 << 15)
    ingest(SPARK, [log], lake, limits=LIMITS)
    assert table_of(lake).optimize.compact()["numFilesAdded"] > 0
    assert not is_followed(lake)
    with lake.writing():
        assert is_followed(lake)
        lake.remove_leftovers()
    assert offsets_in(table_of(lake)) == offsets


def test_a_damaged_table_is_told_and_the_lake_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, lakes = tmp_path / "commitlog", Lakes(tmp_path, "", "delta")
    *first, end = write_log(log, RECORDS[:30], file_bytes=1 << 15)
    lake = lakes.of_broker("shop a#1")
    ingest(SPARK, [log], lake, limits=LIMITS)
    entries = lake.path / "data" / "_delta_log"
    (entries / f"{0:020}.json").write_bytes(b"")
    *second, _ = write_log(log, RECORDS[30:], file_bytes=1 << 15, start=end)
    lake = lakes.of_broker("shop a#1")
    ingest(SPARK, [log], lake, limits=LIMITS)
    assert sum(file.rows for file in lake.files()) == 50
    (told,) = lakes.problems.values()
    assert str(lake.path / "data") in told and "_delta_log away" in told
    monkeypatch.setattr("appliance.reports.manifest.GARBAGE_S", -GARBAGE_S)
    with lake.writing():
        lake.replace("expire", [gone := lake.files()[0]])
        lake.remove_leftovers()
    assert (lake.path / gone.path).exists(), "the table may list it still"
    shutil.move(entries, tmp_path / "damaged")
    with lake.writing():
        lake.remove_leftovers()
    assert not lakes.problems and is_followed(lake) and not (lake.path / gone.path).exists()
    assert set(offsets_in(table_of(lake))) <= {*first, *second}


def test_samples_are_tables_too(tmp_path: Path) -> None:
    lakes = Lakes(tmp_path, "", "delta")
    append(tmp_path, SLAVES, [sample()])
    copy_samples(tmp_path, lakes)
    table = DeltaTable(str(lakes.of_samples("slaves").path / "data"))
    assert pa.table(table.scan()).to_pylist()[0]["at_ms"] == NOON


def test_without_the_library_the_setting_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ReportError, match="gantry install-reports"):
        Lakes(tmp_path, "", "delta")
    Lakes(tmp_path)
