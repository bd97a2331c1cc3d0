"""A Delta table of the lake: what other programs read, what a power cut leaves, what is told in words."""

from __future__ import annotations

import errno
import itertools
import json
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake", reason="the report stack is not installed")

import pyarrow as pa
from deltalake import DeltaTable

from appliance.reports.errors import LakeFull, PlaceUnreachable, ReportError
from appliance.reports.lake import table as tables
from appliance.reports.lake.lakes import Lakes
from appliance.reports.lake.place import Place
from appliance.reports.lake.record_columns import SCHEMA
from appliance.reports.runner.ingest import ingest
from appliance.settings.lake_place import StoreAddress
from tests.appliance.reports.killing import LIMITS, NO_SPARK, RECORDS, have_tasks_here
from tests.appliance.reports.lakes import lake_in, offsets_in
from tests.appliance.reports.stores import write_log

if TYPE_CHECKING:
    from appliance.reports.lake.broker_lake import Lake


@pytest.fixture(autouse=True)
def tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    have_tasks_here(monkeypatch)


def filled(data: Path, records: Any = RECORDS, start: int = 0) -> tuple[Lake, list[int]]:
    """A lake with the records; their offsets, and the log's end."""
    lake = lake_in(data)
    found = write_log(data / "commitlog", records, file_bytes=1 << 15, start=start)
    ingest(NO_SPARK, [data / "commitlog"], lake, limits=LIMITS)
    return lake, found


def log_of(lake: Lake) -> Path:
    assert isinstance(lake.table.place.folder, Path)
    return lake.table.place.folder / "_delta_log"


def test_other_programs_read_times_as_times_and_the_brokers_name(tmp_path: Path) -> None:
    lake, _ = filled(tmp_path)
    rows = pa.table(DeltaTable(lake.table.place.delta_url).scan())
    kinds = {field.name: field.type for field in rows.schema}
    assert set(kinds) == {*SCHEMA.names, "date"}
    assert all(pa.types.is_timestamp(kinds[name]) for name in ("born_timestamp", "store_timestamp"))
    found = sorted(rows.to_pylist(), key=lambda row: row["physical_offset"])
    times = [datetime.fromtimestamp(record.stored_at / 1000, UTC) for record in RECORDS]
    assert [row["store_timestamp"] for row in found] == times
    assert [row["date"] for row in found] == [time.date() for time in times]
    assert {row["broker_name"] for row in found} == {"broker-a"}


def test_in_a_store_the_same_is_counted_once(tmp_path: Path, address: StoreAddress) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    lake.table.place = Place(address)
    *first, end = write_log(log, RECORDS[:30], file_bytes=1 << 15)
    ingest(NO_SPARK, [log], lake, limits=LIMITS)
    *second, end = write_log(log, RECORDS[30:], file_bytes=1 << 15, start=end)
    ingest(NO_SPARK, [log], lake, limits=LIMITS)
    assert offsets_in(lake) == first + second and lake.position() == end
    delta = DeltaTable(lake.table.place.delta_url, storage_options=lake.table.place.delta_options)
    assert pa.table(delta.scan(columns=["physical_offset"])).num_rows == 50


def tear_entry(log: Path) -> None:
    newest = max(log.glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:40])


def empty_entry(log: Path) -> None:
    max(log.glob("*.json")).write_bytes(b"")


def cut_file(log: Path) -> None:
    actions = [json.loads(line) for line in max(log.glob("*.json")).read_text().splitlines()]
    newest = log.parent / next(action["add"]["path"] for action in actions if "add" in action)
    newest.write_bytes(newest.read_bytes()[:100])


def tear_checkpoint(log: Path) -> None:
    newest = max(log.glob("*.checkpoint.parquet"))
    newest.write_bytes(newest.read_bytes()[:100])


def empty_checkpoint(log: Path) -> None:
    max(log.glob("*.checkpoint.parquet")).write_bytes(b"")
    (log / "_last_checkpoint").write_bytes(b"")


@pytest.mark.parametrize("tear", [tear_entry, empty_entry, cut_file, tear_checkpoint, empty_checkpoint])
def test_what_a_power_cut_left_unfinished_is_taken_away_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tear: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(tables, "CHECKPOINT_EACH", 1)
    lake, (*offsets, end) = filled(tmp_path)
    tear(log_of(lake))
    lake = lake_in(tmp_path)
    ingest(NO_SPARK, [tmp_path / "commitlog"], lake, limits=LIMITS)
    assert offsets_in(lake) == offsets and lake.position() == end


def test_whole_entries_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lake, _ = filled(tmp_path)
    with lake.table.writing():
        pass
    assert not [record for record in caplog.records if "unfinished" in record.message]


def test_a_table_gets_columns_that_came_later(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    *offsets, end = write_log(tmp_path / "commitlog", RECORDS[:30], file_bytes=1 << 15)
    lake.table.schema = SCHEMA.remove(SCHEMA.get_field_index("cause"))
    with lake.table.writing():
        pass
    lake = lake_in(tmp_path)
    ingest(NO_SPARK, [tmp_path / "commitlog"], lake, limits=LIMITS)
    delta = DeltaTable(lake.table.place.delta_url)
    assert {field.name for field in delta.schema().fields} == {*SCHEMA.names, "date"}
    assert all(field.nullable for field in delta.schema().fields), "older files lack the newest columns"
    assert offsets_in(lake) == offsets and lake.position() == end


def test_what_another_engine_merges_counts_and_the_next_run_goes_on(tmp_path: Path) -> None:
    lake, (*first, end) = filled(tmp_path, RECORDS[:30])
    assert DeltaTable(lake.table.place.delta_url).optimize.compact()["numFilesAdded"] > 0
    lake, (*second, end) = filled(tmp_path, RECORDS[30:], start=end)
    assert offsets_in(lake) == first + second and lake.position() == end


def test_a_log_that_lacks_entries_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    lake, _ = filled(tmp_path)
    (log_of(lake) / f"{0:020}.json").unlink()
    before = {path: path.read_bytes() for path in log_of(lake).iterdir()}
    with pytest.raises(ReportError, match=f"{lake.table.place.address}: the Delta table can't be used"):
        filled(tmp_path)
    assert {path: path.read_bytes() for path in log_of(lake).iterdir()} == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_without_room_is_told_with_its_folder(tmp_path: Path, number: int) -> None:
    lake = lake_in(tmp_path)
    with pytest.raises(LakeFull, match=f"{lake.table.place.address}: the disk"), lake.table.writing():
        raise OSError(number, "no room")
    with pytest.raises(PermissionError), lake.table.writing():
        raise OSError(errno.EACCES, "not yours")


def test_a_store_that_refuses_is_named_with_what_to_look_at(s3: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "gantry-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    lake = lake_in(tmp_path)
    lake.table.place = Place(StoreAddress("s3://lake/refused", s3))
    with pytest.raises(PlaceUnreachable, match=r"s3://lake/refused: .*keys") as refusal, lake.table.writing():
        raise AssertionError("it may not write there")
    assert "not-the-secret" not in str(refusal.value)


def test_without_the_library_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ReportError, match="gantry install-reports"):
        Lakes(tmp_path)


def test_a_reader_that_entries_are_deleted_under_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CHECKPOINT_EACH", 1)
    lake, (*offsets, _) = filled(tmp_path)
    reader = lake_in(tmp_path)
    assert reader.table.files()
    for entry in itertools.islice(sorted(log_of(lake).glob("*.json")), 2):
        entry.unlink()
    shutil.copytree(tmp_path / "reports", tmp_path / "copy" / "reports")
    assert offsets_in(reader) == offsets == offsets_in(lake_in(tmp_path / "copy"))
