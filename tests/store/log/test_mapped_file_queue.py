"""The run of files: found by offset, without gaps, over several folders, and cut without a trace."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from store.base.errors import StoreDamaged
from store.log.mapped_file_queue import MappedFileQueue

EACH = 4096


def made(folder: Path, *numbers: int, content: bytes = bytes(EACH)) -> Path:
    folder.mkdir(exist_ok=True)
    for number in numbers:
        (folder / f"{number * EACH:020d}").write_bytes(content)
    return folder


def loaded(*folders: Path) -> MappedFileQueue:
    queue = MappedFileQueue(folders, EACH)
    queue.load()
    return queue


def test_files_of_all_folders_are_one_run(tmp_path: Path) -> None:
    queue = loaded(made(tmp_path / "a", 3, 5), made(tmp_path / "b", 4))
    assert [file.base // EACH for file in queue.files] == [3, 4, 5]
    assert [file.path.parent.name for file in queue.files] == ["a", "b", "a"]


def test_an_offset_is_in_one_file_or_in_none(tmp_path: Path) -> None:
    queue = loaded(made(tmp_path / "log", 3, 4))
    for offset, base in ((3 * EACH, 3), (4 * EACH - 1, 3), (4 * EACH, 4), (5 * EACH - 1, 4)):
        file = queue.find(offset)
        assert file is not None and file.base == base * EACH
    for offset in (0, 3 * EACH - 1, 5 * EACH, -1):
        assert queue.find(offset) is None
    assert loaded(tmp_path / "not-there").find(0) is None


def test_the_next_file_begins_behind_the_offset_and_never_in_what_is_deleted(tmp_path: Path) -> None:
    queue = loaded(made(tmp_path / "log", 3, 4))
    assert [queue.next_start(offset) // EACH for offset in (0, 3 * EACH, 4 * EACH - 1, 4 * EACH)] == [3, 4, 4, 5]


@pytest.mark.parametrize(
    ("here", "there", "why"), [((3, 5), (), "files are missing"), ((3, 4), (4,), "is in another folder too")]
)
def test_a_gap_or_a_double_stops_the_start(
    tmp_path: Path, here: tuple[int, ...], there: tuple[int, ...], why: str
) -> None:
    with pytest.raises(StoreDamaged, match=why):
        loaded(made(tmp_path / "a", *here), made(tmp_path / "b", *there))


@pytest.mark.parametrize(("content", "why"), [(b"", "is empty"), (bytes(EACH - 1), "mappedFileSizeCommitLog says")])
def test_a_file_of_another_length_stops_the_start(tmp_path: Path, content: bytes, why: str) -> None:
    folder = made(tmp_path / "log", 1, content=content)
    made(folder, 2, 3, 4)
    with pytest.raises(StoreDamaged, match=why):
        loaded(folder)


def test_files_that_a_crash_left_without_length_at_the_end_get_it(tmp_path: Path) -> None:
    folder = made(tmp_path / "log", 0)
    made(folder, 1, 2, content=b"")
    queue = loaded(folder)
    assert [path.name for path in queue.empty] == [f"{number * EACH:020d}" for number in (1, 2)]
    queue.give_lengths()
    assert queue.empty == [] and len(loaded(folder).files) == 3


def test_strangers_are_named_and_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = made(tmp_path / "log", 0)
    (folder / "notes.txt").write_text("mine")
    with caplog.at_level(logging.WARNING):
        assert len(loaded(folder).files) == 1
    assert [record.__dict__["path"] for record in caplog.records] == [str(folder / "notes.txt")]
    assert (folder / "notes.txt").read_text() == "mine"


def test_new_files_go_round_the_folders_and_pass_over_full_ones(tmp_path: Path) -> None:
    folders = [made(tmp_path / name) for name in ("a", "b", "c")]
    queue = MappedFileQueue(folders, EACH, read_only=[folders[2]])
    assert [queue.create(number * EACH, EACH).path.parent.name for number in range(4)] == ["a", "b", "a", "b"]
    queue.full_folders = {folders[0]}
    assert [queue.create(number * EACH, EACH).path.parent.name for number in (4, 5)] == ["b", "b"]


def test_a_folder_that_can_not_take_a_file_is_passed_over(tmp_path: Path) -> None:
    good = made(tmp_path / "b")
    (tmp_path / "a").write_text("no folder")
    queue = MappedFileQueue([tmp_path / "a", good], EACH)
    assert queue.create(0, EACH).path.parent == good
    with pytest.raises(OSError):
        MappedFileQueue([tmp_path / "a"], EACH).create(0, EACH)
    with pytest.raises(OSError, match="read-only"):
        MappedFileQueue([good], EACH, read_only=[good]).create(EACH, EACH)


@pytest.mark.parametrize("at", [3 * EACH, 3 * EACH + 1, 4 * EACH + 100, 5 * EACH])
def test_a_cut_leaves_nothing_behind_it(tmp_path: Path, at: int) -> None:
    folder = made(tmp_path / "log", 3, 4, 5, content=b"x" * EACH)
    queue = loaded(folder)
    queue.cut_after(at)
    queue.close()
    kept = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    assert kept.rstrip(b"\0") == b"x" * (at - 3 * EACH)
    assert len(kept) == -(-(at - 3 * EACH) // EACH) * EACH, "files that begin behind the cut are gone"
    assert len(loaded(folder).files) == len(queue.files)
