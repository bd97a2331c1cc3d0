"""A broker's lake: ranges follow each other, a commit has files and position at once, gaps have their times."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("deltalake", reason="the report stack is not installed")

from appliance.reports.errors import LakeBusy, ReportError
from appliance.reports.lake import table
from appliance.reports.lake.place import NewFile, Place
from appliance.reports.lake.reading import Gap
from tests.appliance.reports.lakes import lake_in

if TYPE_CHECKING:
    from appliance.reports.lake.broker_lake import Lake
    from appliance.settings.lake_place import StoreAddress


def file(name: str = "a", begin_ms: int = 1000, end_ms: int = 2000) -> NewFile:
    low, high = ({"store_timestamp": datetime.fromtimestamp(ms / 1000, UTC)} for ms in (begin_ms, end_ms))
    return NewFile(f"date=1970-01-01/{name}.parquet", "1970-01-01", 3, 99, low, high)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = lake_in(tmp_path)
    have_files(lake)
    return lake


def have_files(lake: Lake) -> None:
    """Of the size that is told."""
    folder = lake.table.place.folder
    assert isinstance(folder, Path)
    (folder / "date=1970-01-01").mkdir(parents=True, exist_ok=True)
    for name in "abc":
        (folder / "date=1970-01-01" / f"{name}.parquet").write_bytes(bytes(99))


def test_a_commit_says_how_far_the_log_is_read(lake: Lake) -> None:
    assert (lake.position(), lake.reading().last, lake.table.files()) == (None, None, [])
    with lake.table.writing():
        lake.commit(0, 100, [file()], (70, 5, 6))
        lake.commit(100, 150, [], None)
    assert (lake.position(), lake.reading().last) == (150, (70, 5, 6))
    (found,) = lake.table.files()
    assert (found.path, found.rows, found.size_bytes, found.min_ms, found.max_ms) == (file().path, 3, 99, 1000, 2000)


def test_brokers_have_positions_of_their_own(tmp_path: Path, lake: Lake) -> None:
    other = lake_in(tmp_path, "it's #2/50%")
    with lake.table.writing():
        lake.commit(0, 100, [file()], (70, 5, 6))
    with other.table.writing():
        other.commit_gap(7, 9)
    assert (lake.position(), lake.gaps(), other.position(), len(other.gaps())) == (100, [], 9, 1)


def test_a_range_that_does_not_follow_is_refused(lake: Lake) -> None:
    with lake.table.writing():
        lake.commit(0, 100, [], None)
        with pytest.raises(ReportError, match=r"does not follow 100"):
            lake.commit(90, 120, [], None)
    assert lake.position() == 100


def test_of_two_writers_of_one_position_one_wins(tmp_path: Path, address: StoreAddress) -> None:
    """Two data folders over one place, so that no lock keeps them apart."""
    first, second = lake_in(tmp_path / "a"), lake_in(tmp_path / "b")
    for lake in (first, second):
        lake.table.place = Place(address)
    with first.table.writing():
        first.commit(0, 10, [], None)
    with second.table.writing():
        newest = second.table._newest
        stale = newest()
        with first.table.writing():
            first.commit(10, 100, [file("a")], (70, 5, 6))
        second.table._newest = lambda: stale  # type: ignore[method-assign]
        with pytest.raises(LakeBusy, match="another program wrote the same"):
            second.commit(10, 50, [file("b")], (40, 5, 6))
        second.table._newest = newest  # type: ignore[method-assign]
        assert (second.position(), [found.path for found in second.table.files()]) == (100, [file("a").path])


def test_a_second_run_of_the_data_folder_is_told_to_wait(tmp_path: Path, lake: Lake) -> None:
    with (
        lake.table.writing(),
        pytest.raises(LakeBusy, match="another report run"),
        lake_in(tmp_path, "broker-b").table.writing(),
    ):
        pass
    with lake.table.writing():
        pass


def test_readers_get_only_files_that_may_hold_the_range(lake: Lake) -> None:
    with lake.table.writing():
        lake.commit(0, 100, [file()], None)
    assert len(lake.table.files(2000, 3000)) == len(lake.table.files(0, 1001)) == 1
    assert lake.table.files(2001, 3000) == lake.table.files(0, 1000) == []


def test_damage_and_what_was_deleted_stay_two_gaps_also_through_checkpoints(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "CHECKPOINT_EACH", 2)
    with lake.table.writing():
        lake.commit_gap(0, 50)
        lake.commit_gap(50, 60, is_damage=True)
        for at in range(5):
            lake.commit_gap(60 + at, 61 + at, is_damage=True)
        lake.commit(65, 70, [file()], (65, 2000, 6))
    folder = lake.table.place.folder
    assert isinstance(folder, Path)
    entries = sorted((folder / "_delta_log").glob("*.json"))
    assert len(list((folder / "_delta_log").glob("*.checkpoint.parquet"))) > 2
    for entry in entries[:-2]:  # as they go after a week
        entry.unlink()
    lake.table._delta = None
    assert lake.gaps() == [Gap(0, 50, None, 1000), Gap(50, 65, None, 1000, is_damage=True)]
    assert (lake.position(), lake.reading().last) == (70, (65, 2000, 6))


def test_a_gap_lies_between_the_records_around_it(lake: Lake) -> None:
    with lake.table.writing():
        lake.commit_gap(0, 50)
        lake.commit(50, 100, [file("a")], (70, 2000, 6))
        lake.commit_gap(100, 150)
        lake.commit_gap(150, 180)
        lake.commit(180, 190, [file("b")], (185, 2500, 6))
        lake.commit_gap(190, 200)
    gaps = lake.gaps()
    assert gaps == [Gap(0, 50, None, 1000), Gap(100, 180, 1000, 2000), Gap(190, 200, 2500, None)]
    assert [gap.touches(1001, 2000) for gap in gaps] == [False, True, False], "the clock was put back in it"
    assert [gap.touches(0, 1) for gap in gaps] == [True, False, False]
    assert [gap.touches(9000, 9001) for gap in gaps] == [False, False, True]
    reading = lake.reading()
    reading.cut(195, (185, 2500, 6))
    with lake.table.writing():
        lake.set_reading(reading)
        lake.commit(195, 199, [file("c", 2600, 2600)], None)
    assert lake.gaps() == [*gaps[:2], Gap(190, 195, 2500, 2600)], "it goes on with what is there now"


def test_a_lake_that_was_moved_is_whole(tmp_path: Path, lake: Lake) -> None:
    with lake.table.writing():
        lake.commit(0, 100, [file()], (70, 5, 6))
    shutil.move(tmp_path / "reports" / "delta", tmp_path / "elsewhere" / "delta")
    moved = lake_in(tmp_path / "other", place=str(tmp_path / "elsewhere"))
    assert (moved.position(), len(moved.table.files())) == (100, 1)
