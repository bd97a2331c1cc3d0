"""A lake whose files are in a store that moves none: counted once, owned, and whole after a kill at any point."""

from __future__ import annotations

import functools
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from appliance.reports.errors import PlaceUnreachable, ReportError
from appliance.reports.manifest import GARBAGE_S, Lake
from appliance.reports.places import object_store
from appliance.reports.places.object_store import StoreFiles, connected
from appliance.reports.runner.ingest import IngestLimits, ingest
from appliance.settings.lake_place import StoreAddress
from tests.appliance.reports.killing import RANGE_BYTES, SPARK, have_tasks_here, killed_at
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log

LIMITS = IngestLimits(range_bytes=RANGE_BYTES, range_bytes_min=RANGE_BYTES)
RECORDS = [Record(body=bytes(700), stored_at=NOON + index * HOUR_MS // 3) for index in range(50)]
CALLS = ("open_output_stream", "delete_file", "get_file_info")


@pytest.fixture(autouse=True)
def tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    have_tasks_here(monkeypatch)


def lake_at(folder: Path, address: StoreAddress) -> Lake:
    return Lake(folder / "broker-a", StoreFiles(address, "lake/broker-a"))


def offsets_in(lake: Lake) -> list[int]:
    tables = [lake.place.read(file.path, ["physical_offset"]) for file in lake.files()]
    return sorted(offset for table in tables for offset in table["physical_offset"].to_pylist())


def published(lake: Lake) -> list[str]:
    """What another program finds: the paths that the entries in the store list."""
    assert isinstance(lake.place, StoreFiles)
    file_system, root = connected(lake.place.place)
    entries = [path for path in lake.place.listed("_log") if path.endswith(".json")]
    said = []
    for path in sorted(entries):
        with file_system.open_input_stream(f"{root}/lake/broker-a/{path}") as stream:
            said.append(json.loads(stream.read()))
    removed = {path for entry in said for path in entry.get("remove", ())}
    return [file["path"] for entry in said for file in entry["add"] if file["path"] not in removed]


def ingest_in_steps(log: Path, lake: Lake, step: Callable[[], None]) -> None:
    """A step is a call to the store."""

    class Counted:
        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Callable[..., Any]:
            if name in CALLS:
                step()
            return getattr(self._real, name)  # type: ignore[no-any-return]

    assert isinstance(lake.place, StoreFiles)
    file_system, root = connected(lake.place.place)
    object_store.connected = lambda place: (Counted(file_system), root)  # type: ignore[assignment]
    ingest(SPARK, [log], lake, limits=LIMITS)


def test_killed_at_every_call_the_lake_is_a_prefix_and_the_next_run_makes_it_whole(tmp_path: Path) -> None:
    log = tmp_path / "commitlog"
    *offsets, end = write_log(log, RECORDS, file_bytes=1 << 15)
    seen = set()
    for point in itertools.count():
        lake = lake_at(tmp_path / str(point), StoreAddress(f"file://{tmp_path}/place-{point}"))
        was_killed = killed_at(point, lake.path.parent, functools.partial(ingest_in_steps, log, lake))
        found = offsets_in(lake)
        assert found == offsets[: len(found)]
        assert set(published(lake)) <= {file.path for file in lake.files()}, "never more than what counts"
        seen.add(len(found))
        ingest(SPARK, [log], lake, limits=LIMITS)
        assert offsets_in(lake) == offsets and lake.checkpoint() == end
        assert sorted(lake.place.paths()) == sorted(published(lake)) == sorted(file.path for file in lake.files())
        if not was_killed:
            break
    assert point > 5 and len(seen) > 1


def test_each_record_is_there_once_and_what_is_taken_out_goes(
    tmp_path: Path, address: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, lake = tmp_path / "commitlog", lake_at(tmp_path, address)
    *first, end = write_log(log, RECORDS[:30], file_bytes=1 << 15)
    ingest(SPARK, [log], lake, limits=LIMITS)
    *second, end = write_log(log, RECORDS[30:], file_bytes=1 << 15, start=end)
    ingest(SPARK, [log], lake, limits=LIMITS)
    assert offsets_in(lake) == first + second and lake.checkpoint() == end
    assert sorted(published(lake)) == sorted(lake.place.paths())
    assert not any(path.name != "_log" and path.is_dir() for path in lake.path.iterdir()), (
        "files are in the store alone"
    )
    gone = lake.files()[0]
    with lake.writing():
        lake.replace("expire", [gone])
        assert lake.remove_leftovers() == 0, "it may still be read"
        monkeypatch.setattr("appliance.reports.manifest.GARBAGE_S", -GARBAGE_S)
        assert lake.remove_leftovers() == 1
    assert gone.path not in {*lake.place.paths(), *published(lake)}


def test_another_data_folder_is_refused_and_changes_nothing(tmp_path: Path, address: StoreAddress) -> None:
    log, own, other = tmp_path / "commitlog", lake_at(tmp_path / "a", address), lake_at(tmp_path / "b", address)
    write_log(log, RECORDS[:10], file_bytes=1 << 15)
    ingest(SPARK, [log], own, limits=LIMITS)
    before = sorted(own.place.paths()), published(own)
    with pytest.raises(ReportError, match="belongs to another data folder"):
        ingest(SPARK, [log], other, limits=LIMITS)
    assert (sorted(own.place.paths()), published(own)) == before
    ingest(SPARK, [log], own, limits=LIMITS)


def test_a_manifest_that_was_put_back_is_found_out_and_a_lost_one_is_taken_from_the_store(
    tmp_path: Path, address: StoreAddress
) -> None:
    log, lake = tmp_path / "commitlog", lake_at(tmp_path, address)
    *_, end = write_log(log, RECORDS[:10], file_bytes=1 << 15)
    ingest(SPARK, [log], lake, limits=LIMITS)
    shutil.copytree(lake.path, tmp_path / "backup")
    *_, end = write_log(log, RECORDS[10:], file_bytes=1 << 15, start=end)
    ingest(SPARK, [log], lake, limits=LIMITS)
    offsets = offsets_in(lake)
    shutil.rmtree(lake.path)
    shutil.copytree(tmp_path / "backup", lake.path)
    with pytest.raises(ReportError, match="put back to an earlier time"):
        ingest(SPARK, [log], lake, limits=LIMITS)
    shutil.rmtree(lake.path)
    file_system, root = connected(address)
    (lake.path / "_log").mkdir(parents=True)
    assert isinstance(lake.place, StoreFiles)
    for path in lake.place.listed("_log"):
        with file_system.open_input_stream(f"{root}/lake/broker-a/{path}") as stream:
            (lake.path / path).write_bytes(stream.read())
    ingest(SPARK, [log], lake, limits=LIMITS)
    assert offsets_in(lake) == offsets and lake.checkpoint() == end


def test_a_store_that_refuses_is_named_with_what_to_look_at(s3: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "gantry-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    lake = lake_at(tmp_path, StoreAddress("s3://lake/refused", s3))
    with pytest.raises(PlaceUnreachable, match=r"s3://lake/refused/lake/broker-a: .*keys") as refusal, lake.writing():
        raise AssertionError("it may not write there")
    assert "ACCESS_DENIED" in str(refusal.value)
    assert "not-the-secret" not in str(refusal.value)
