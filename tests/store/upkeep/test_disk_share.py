"""Whose bytes are on the disk, and what others held all the time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from store.upkeep.disk_share import BLOCK_BYTES, SAVE_DROP_BYTES, DiskUse, OthersBytes, bytes_by_disk
from store.upkeep.disk_space import DiskSpace

FOLDER = "/log"


def book(tmp_path: Path, *bases: int) -> OthersBytes:
    made = OthersBytes(tmp_path / "others.json")
    made.load(bases)
    return made


def test_a_folder_that_only_root_may_read_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "file").write_bytes(b"x" * 10_000)
    scandir = os.scandir

    def refuse(folder: str | Path) -> object:
        if Path(folder).name == "lost+found":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert sum(bytes_by_disk([tmp_path]).values()) >= 10_000


@pytest.mark.parametrize(
    ("store", "others", "floor", "own"),
    [
        (80, 5, 5, 0.85),  # both were there all the time: it is the store that grew
        (40, 55, 5, 0.45),  # others came later
        (86, 9, 0, 0.86),
        (40, 5, 55, 0.45),  # others were more once: what they gave back is room
        (0, 99, 0, 0.0),
    ],
)
def test_the_store_answers_for_its_own_bytes(store: int, others: int, floor: int, own: float) -> None:
    assert DiskUse(DiskSpace(store + others, 100), store, floor).own_ratio == own


def test_a_store_counted_before_it_shrank_is_not_more_than_the_disk_holds() -> None:
    use = DiskUse(DiskSpace(50, 100), 90, 0)
    assert (use.others_bytes, use.own_ratio) == (0, 0.5)


def test_the_floor_is_the_least_of_all_kept_files(tmp_path: Path) -> None:
    notes = book(tmp_path)
    assert notes.floor(FOLDER, otherwise=7) == 7, "an empty log: whatever is there was there before"
    for bases, others, floor in [
        ([0], 50, 50),
        ([0], 30, 30),
        ([0], 60, 30),
        ([0, 10], 60, 30),
        ([10], 60, 60),  # the file that had seen 30 is gone
        ([10, 20], 90, 60),
        ([20], 90, 60),  # written since the reading before: nobody knows if before or after others grew
    ]:
        notes.note(bases, {FOLDER: others})
        assert notes.floor(FOLDER, otherwise=0) == floor, bases


def test_of_files_that_nobody_noted_nothing_is_known_until_they_are_gone(tmp_path: Path) -> None:
    notes = book(tmp_path, 0, 10)
    notes.note([0, 10], {FOLDER: 40})
    notes.note([0, 10, 20], {FOLDER: 40})
    assert notes.floor(FOLDER, otherwise=40) == 0
    notes.note([20], {FOLDER: 40})
    assert notes.floor(FOLDER, otherwise=40) == 40


def test_notes_outlive_the_process(tmp_path: Path) -> None:
    notes = book(tmp_path)
    notes.note([0], {FOLDER: SAVE_DROP_BYTES * 4})
    notes.save()
    notes.note([0], {FOLDER: SAVE_DROP_BYTES * 4 - 1})
    notes.save()
    assert book(tmp_path, 0).floor(FOLDER, otherwise=0) == SAVE_DROP_BYTES * 4, "too little to write a file for"
    notes.note([0], {FOLDER: SAVE_DROP_BYTES})
    notes.save()
    assert book(tmp_path, 0).floor(FOLDER, otherwise=0) == SAVE_DROP_BYTES
    assert book(tmp_path, 0, 10).floor(FOLDER, otherwise=0) == 0


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"files": 3}', b'{"files": {"a": {}}}', b"\xff"])
def test_damaged_notes_count_as_none(tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "others.json").write_bytes(text)
    notes = book(tmp_path, 0)
    assert notes.floor(FOLDER, otherwise=9) == 0
    assert "what others stored is unknown" in caplog.text


def test_bytes_are_disk_blocks_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "full").write_bytes(bytes(100_000))
    with (tmp_path / "a" / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    os.sync()
    found = bytes_by_disk([tmp_path / "a", tmp_path / "a" / "b", tmp_path / "link", tmp_path / "absent"])
    blocks = subprocess.run(["find", tmp_path / "a", "-type", "f", "-printf", "%b\\n"], capture_output=True, check=True)
    assert dict(found) == {tmp_path.stat().st_dev: sum(map(int, blocks.stdout.split())) * BLOCK_BYTES}
    assert 100_000 <= sum(found.values()) < 1 << 20
