"""The manifest: ranges follow each other, one writer wins, and what is not listed does not count."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from appliance.reports.errors import LakeBusy, LakeFull, ReportError
from appliance.reports.lake_files import STAGING
from appliance.reports.lake_state import Gap, LakeFile
from appliance.reports.manifest import ENTRIES_MAX, Lake

FILE = LakeFile("data/date=2026-11-21/a.parquet", "2026-11-21", 3, 99, 1000, 2000)


def test_the_checkpoint_is_the_end_of_the_last_entry(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "reports" / "lake" / "broker-a")
    assert (lake.checkpoint(), lake.last_mark(), lake.files()) == (None, None, [])
    with lake.writing():
        lake.commit(0, 100, [FILE], (70, 5, 6))
        lake.commit(100, 150, [], None)
    assert lake.checkpoint() == 150
    assert lake.last_mark() == (70, 5, 6)
    assert lake.files() == [FILE]
    pytest.importorskip("pyarrow")
    from appliance.reports.places.lakes import Lakes

    assert [found.broker_name for found in Lakes(tmp_path).of_brokers()] == ["broker-a"]


def test_a_range_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.writing():
        lake.commit(0, 100, [], None)
        with pytest.raises(ReportError, match=r"does not follow 100"):
            lake.commit(90, 120, [], None)
    assert lake.checkpoint() == 100


def test_of_two_writers_of_one_entry_only_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path)
    real = os.link

    def late(source: Path, target: Path) -> None:
        target.write_text('{"op": "append", "from": 0, "to": 7, "last": null, "add": []}')  # another was faster
        real(source, target)

    monkeypatch.setattr(os, "link", late)
    with lake.writing(), pytest.raises(FileExistsError):
        lake.commit(0, 100, [FILE], None)
    assert lake.checkpoint() == 7
    assert not list((tmp_path / "_log").glob("*.tmp"))


def test_a_second_writer_is_told_to_wait(tmp_path: Path) -> None:
    with Lake(tmp_path).writing(), pytest.raises(LakeBusy, match="another report run"), Lake(tmp_path).writing():
        pass
    with Lake(tmp_path).writing():
        pass


def test_readers_get_only_files_that_may_hold_the_range(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.writing():
        lake.commit(0, 100, [FILE], None)
    assert lake.files(2000, 3000) == [FILE]
    assert lake.files(2001, 3000) == []
    assert lake.files(0, 1000) == []
    assert lake.files(0, 1001) == [FILE]


def test_what_a_killed_run_left_unlisted_is_removed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    folder = tmp_path / "data" / "date=2026-11-21"
    with lake.writing():
        lake.commit(0, 100, [FILE], None)
        folder.mkdir()
        (folder / "a.parquet").touch()
        (folder / "b.parquet").touch()
        (tmp_path / STAGING).mkdir()
        (tmp_path / STAGING / "c.parquet").touch()
        (tmp_path / "_log" / "4711.tmp").touch()  # killed within a commit
        assert lake.remove_leftovers() == 2
    assert list((tmp_path / STAGING).iterdir()) == []
    assert [path.name for path in (tmp_path / "_log").iterdir()] == [f"{0:020}.json"]
    assert [path.name for path in folder.iterdir()] == ["a.parquet"]


def test_a_missing_entry_is_an_error(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.writing():
        for end in (1, 2, 3):
            lake.commit(end - 1, end, [], None)
    (tmp_path / "_log" / f"{1:020}.json").unlink()
    with pytest.raises(ReportError, match="entries are missing"):
        lake.files()


def test_a_disk_without_room_is_told_with_its_folder(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "broker-a")
    for wrong, told in ((errno.ENOSPC, f"{lake.path}: the disk"), (errno.EDQUOT, f"{lake.path}: the disk")):
        with pytest.raises(LakeFull, match=told), lake.writing():
            raise OSError(wrong, "no room")
    with pytest.raises(PermissionError), lake.writing():
        raise OSError(errno.EACCES, "not yours")


def test_damage_and_what_was_deleted_stay_two_gaps_also_through_a_checkpoint(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.writing():
        lake.commit_gap(0, 50)
        lake.commit_gap(50, 60, is_damage=True)
        for at in range(ENTRIES_MAX):
            lake.commit_gap(60 + at, 61 + at, is_damage=True)
        lake.tidy()
        end = 60 + ENTRIES_MAX
        assert lake.state().entries == 0, "no checkpoint was written"
        lake.commit(end, end + 5, [FILE], (end, 2000, 6))
    assert lake.gaps() == [Gap(0, 50, None, 1000), Gap(50, end, None, 1000, is_damage=True)]


def test_a_gap_lies_between_the_records_around_it(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.writing():
        lake.commit_gap(0, 50)
        lake.commit(50, 100, [FILE], (70, 2000, 6))
        lake.commit_gap(100, 150)
        lake.commit_gap(150, 180)
        lake.commit(180, 190, [FILE], (185, 2500, 6))
        lake.commit_gap(190, 200)
    gaps = lake.gaps()
    assert gaps == [Gap(0, 50, None, 1000), Gap(100, 180, 1000, 2000), Gap(190, 200, 2500, None)]
    assert [gap.touches(1001, 2000) for gap in gaps] == [False, True, False], "the clock was put back in it"
    assert [gap.touches(0, 1) for gap in gaps] == [True, False, False]
    assert [gap.touches(9000, 9001) for gap in gaps] == [False, False, True]
