"""A reader outside the broker holds what it still reads: for a while, below the disk's marks, while it lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import MessageStore
from store.upkeep.reader_marks import FOLDER, HOLD_S, ReaderMark, ReaderMarks
from tests.store.conftest import OpenStore
from tests.store.upkeep.ageing import NOON, fill, other_hour, small_config

pytestmark = pytest.mark.usefixtures("half_full")


def above_its_size(open_store: OpenStore, root: Path) -> MessageStore:
    """A store that holds more than it may."""
    store = open_store(small_config(root, delete_when=other_hour(NOON), store_bytes_max=1 << 16))
    fill(store)
    return store


async def test_a_file_stays_until_its_reader_has_gone_on(tmp_path: Path, open_store: OpenStore) -> None:
    store = above_its_size(open_store, tmp_path)
    second = int(sorted((tmp_path / "commitlog").iterdir())[1].name)
    with ReaderMark(tmp_path, 0) as mark:
        assert await store.cleaner.clean(NOON, 0.1) == 0
        mark.move(second)
        assert await store.cleaner.clean(NOON, 0.1) == 1
        assert store.min_physical_offset == second
    assert await store.cleaner.clean(NOON, 0.1) > 0
    assert not list((tmp_path / FOLDER).iterdir())


@pytest.mark.parametrize("ratio", [0.76, -1.0])
async def test_a_disk_above_its_mark_comes_first(tmp_path: Path, open_store: OpenStore, ratio: float) -> None:
    store = above_its_size(open_store, tmp_path)
    with ReaderMark(tmp_path, 0):
        assert await store.cleaner.clean(NOON, ratio) > 0


def test_a_mark_is_forgotten_when_its_time_is_up(tmp_path: Path) -> None:
    now = [0.0]
    marks = ReaderMarks(tmp_path, clock=lambda: now[0])
    assert marks.lowest() is None
    with ReaderMark(tmp_path, 700) as mark:
        assert marks.lowest() == 700
        mark.move(900)
        now[0] = HOLD_S
        assert marks.lowest() == 900
        now[0] += 1
        assert marks.lowest() is None
    assert marks.lowest() is None


def test_what_a_killed_reader_left_holds_nothing_and_goes(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "host-5").write_text("0" * 20)  # the kernel took the lock back
    assert ReaderMarks(tmp_path).lowest() is None
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_files_that_are_no_marks_are_left_out(tmp_path: Path) -> None:
    (tmp_path / FOLDER / "a-folder").mkdir(parents=True)
    with ReaderMark(tmp_path, 5):
        assert ReaderMarks(tmp_path).lowest() == 5
