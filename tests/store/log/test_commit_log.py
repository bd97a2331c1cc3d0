"""What the log says is on disk, and what it takes for a record."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store import MessageStore
from store.log.mapped_file import MappedFile
from tests.store.conftest import OpenStore, message, small_config


def test_a_sync_takes_every_file_that_was_written_to(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fdatasync

    def noting(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", noting)
    for _ in range(5):
        store.put_message(message(bytes(30_000)))
    assert store.parts.log.sync() == store.flushed_offset == store.max_physical_offset
    assert synced == [f"{base:020d}" for base in (0, 65536, 131072)]
    synced.clear()
    store.put_message(message())
    store.parts.log.sync()
    assert synced == [f"{131072:020d}"]


def test_what_comes_while_the_disk_works_waits_for_the_next_sync(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = store.put_message(message()).size_bytes
    real = os.fdatasync

    def slowly(fd: int) -> None:
        real(fd)
        store.put_message(message())

    monkeypatch.setattr(os, "fdatasync", slowly)
    assert store.parts.log.sync() == end
    assert store.flushed_offset == end < store.max_physical_offset
    told: list[bool] = []
    store.log_flusher.when_flushed(end, told.append)
    assert told == [True]


@pytest.mark.parametrize("offset", [-1, 1, 4, 65535, 65536, 1 << 40])
def test_where_no_record_begins_there_is_none(store: MessageStore, offset: int) -> None:
    store.put_message(message())
    assert store.look_message_by_offset(offset) is None
    assert store.message_bytes(offset) is None


@pytest.mark.parametrize("warms_ahead", [True, False])
def test_pages_are_made_ready_for_a_writer_that_needs_them(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, warms_ahead: bool
) -> None:
    log = open_store(small_config(tmp_path)).parts.log
    warmed: list[int] = []
    monkeypatch.setattr(MappedFile, "warm", lambda file, start, end: warmed.append(end - start))
    log.warms_ahead = warms_ahead
    assert log.make_room(1000)
    log.prepare()
    assert log.prepare_at > log.position, "blocks are asked for in time, in both cases"
    assert any(size > 0 for size in warmed) == warms_ahead
