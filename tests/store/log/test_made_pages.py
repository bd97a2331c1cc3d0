"""The allocator fills pages with zeros ahead of a writer that writes much, and never one that was written to."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from store.log import commit_log
from store.log.allocate import Allocator
from store.log.commit_log import CommitLog
from tests.store.conftest import small_config

FILE_BYTES = 256 << 10


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommitLog:
    """An empty log that counts as busy, with small pages; its allocator runs when the test says so."""
    for name, size in {
        "BUSY_BYTES": 0,
        "FENCE_BYTES": 5000,
        "READY_BYTES": 20_000,
        "READY_AHEAD_BYTES": 40_000,
    }.items():
        monkeypatch.setattr(commit_log, name, size)
    log = CommitLog(small_config(tmp_path, commit_log_file_bytes=FILE_BYTES))
    log.load()
    log.start_at(0)
    monkeypatch.setattr(Allocator, "request", lambda allocator: None)
    return log


def fill(fd: int, start: int, end: int) -> None:
    assert start < end
    assert not any(os.pread(fd, end - start, start)), "what was written is erased"
    os.pwrite(fd, bytes(end - start), start)


def put(log: CommitLog, size: int) -> None:
    """As the appender does it."""
    assert log.position + size <= log.limit or log.make_room(size)
    log.append([b"x" * size], size, 1)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_that_was_written_is_erased(log: CommitLog, seed: int) -> None:
    dice, made = random.Random(seed), 0

    def make_pages(fd: int, start: int, end: int) -> None:
        nonlocal made
        made += 1
        assert log.base + start >= log.limit
        fill(fd, start, end)

    log.make_pages = make_pages
    written: list[tuple[int, int]] = []
    for _ in range(400):
        if dice.random() < 0.4:
            log.prepare()  # early, in time, late or never: at any moment
        size = dice.choice((9, 900, 5000, 30_000, 80_000))
        put(log, size)
        written.append((log.position - size, size))
    assert made > 10
    for start, size in written:
        assert log.read(start, size) == b"x" * size
    log.close()


def test_the_pages_ahead_are_known(log: CommitLog) -> None:
    log.make_pages = fill
    put(log, 1000)
    assert log.limit == 1000 + 5000, "the writer leaves the rest to the allocator"
    log.prepare()
    assert (log.ready_from, log.ready_end, log.limit) == (8192, 24576, 24576)
    put(log, 1000)
    log.prepare()
    assert (log.ready_from, log.ready_end, log.limit) == (8192, 40960, 40960)
    log.close()


def test_a_writer_that_comes_to_the_fence_goes_on(log: CommitLog) -> None:
    log.make_pages = fill
    put(log, 1000)
    put(log, 20_000)
    assert log.position == 21_000
    log.prepare()
    assert log.read(1000, 20_000) == b"x" * 20_000
    log.close()


def test_a_writer_that_is_not_busy_makes_its_pages_itself(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "BUSY_BYTES", 1 << 20)
    log.make_pages = fill
    put(log, 1000)
    assert log.limit == FILE_BYTES - 8
    log.prepare()
    assert (log.ready_end, log.limit) == (0, FILE_BYTES - 8)
    log.close()


def test_busy_is_who_wrote_much_before_the_last_sync(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "BUSY_BYTES", 10_000)
    log.make_pages = fill
    put(log, 12_000)
    log.sync()
    log.prepare()
    put(log, 21_000)
    assert log.limit < FILE_BYTES - 8
    log.sync()
    log.sync()
    log.prepare()
    assert (log.ready_end, log.limit) == (0, FILE_BYTES - 8), "the disk had caught up before the allocator came"
    log.close()


def test_where_files_are_not_written_through_the_map_none_are_made(log: CommitLog) -> None:
    log.make_pages = fill
    log.is_written_by_map = False
    assert log.make_room_to(1000)
    log.prepare()
    assert log.ready_end == 0
    log.close()
