"""One file of the log: what a writer may touch, what readers keep, what a delete leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.log.mapped_file import MappedFile

SIZE = 1 << 20
BASE = 3 * SIZE


@pytest.fixture
def file(tmp_path: Path) -> MappedFile:
    folder = tmp_path / "commitlog"
    folder.mkdir()
    return MappedFile(folder / f"{BASE:020d}", SIZE)


def blocks(file: MappedFile) -> int:
    """Bytes that the disk has given to the file."""
    return file.path.stat().st_blocks * 512


def open_files(file: MappedFile) -> int:
    """Descriptors of the file; others come and go with what else this process does, and with its garbage."""
    return sum(link.exists() and link.resolve() == file.path.resolve() for link in Path("/proc/self/fd").iterdir())


def test_its_name_says_where_it_begins(file: MappedFile) -> None:
    assert (file.base, file.end) == (BASE, BASE + SIZE)
    assert not file.path.exists(), "nothing is made before the first write"


def test_only_allocated_bytes_own_disk_blocks(file: MappedFile) -> None:
    file.allocate(1 << 16)
    assert (file.allocated_end, file.path.stat().st_size) == (1 << 16, SIZE)
    assert 1 << 16 <= blocks(file) < SIZE
    file.allocate(1 << 12)
    assert file.allocated_end == 1 << 16, "less than it has already"
    file.allocate(2 * SIZE)
    assert file.allocated_end == SIZE, "never behind its end"
    assert blocks(file) >= SIZE


def test_what_was_written_is_in_memory_and_what_no_page_holds_is_not(file: MappedFile) -> None:
    file.open_for_write()
    file.write(5000, memoryview(b"x" * 10_000))
    assert file.is_in_memory(5000, 15_000) and file.is_in_memory(14_999, 15_000)
    assert not file.is_in_memory(5000, SIZE // 2)
    file.close()
    assert not file.is_in_memory(5000, 15_000), "it is not mapped: that is not known"


@pytest.mark.parametrize("by_map", [True, False])
def test_what_is_written_is_read_by_map_view_and_file(file: MappedFile, by_map: bool) -> None:
    file.allocate(SIZE)
    if by_map:
        file.map[100:105] = b"hello"
    else:
        file.write(100, memoryview(b"hello"))
    assert bytes(file.view[99:106]) == b"\0hello\0"
    assert file.peek(100, 5) == b"hello"
    assert file.view.readonly


def test_synced_bytes_are_in_the_file_of_another_process(file: MappedFile) -> None:
    file.allocate(SIZE)
    file.map[:4] = b"sync"
    file.sync()
    assert file.path.read_bytes()[:5] == b"sync\0"
    file.finish()
    file.sync()  # also without the writer's descriptor


def test_a_stale_tail_does_not_come_back(file: MappedFile) -> None:
    file.allocate(SIZE)
    file.map[:] = b"x" * SIZE
    file.zero_from(1000)
    assert file.path.read_bytes() == b"x" * 1000 + bytes(SIZE - 1000)
    assert bytes(file.view[999:1001]) == b"x\0"
    assert file.allocated_end == 0, "its blocks have to be asked for again"


def test_readers_keep_the_bytes_of_a_deleted_file(file: MappedFile) -> None:
    file.allocate(SIZE)
    file.map[:4] = b"keep"
    held = file.view[:4]
    file.delete()
    assert not file.path.exists()
    assert bytes(held) == b"keep"
    file.delete()  # a second time is no error


def test_a_full_file_gives_back_its_descriptor_and_is_read_on(file: MappedFile) -> None:
    file.allocate(SIZE)
    file.map[-4:] = b"last"
    assert open_files(file) > 0
    file.finish()
    assert bytes(file.view[-4:]) == b"last"
    file.close()
    assert open_files(file) == 0
    assert bytes(file.view[-4:]) == b"last", "mapped again when somebody looks"
    file.close()
