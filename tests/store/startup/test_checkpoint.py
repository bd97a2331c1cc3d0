"""What the checkpoint promises, and what is believed of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import MessageStore
from store.startup.checkpoint import NOT_KNOWN, NOT_SYNCED, Checkpoint, Synced
from tests.store.conftest import message


@pytest.mark.parametrize(
    ("physic_ms", "logics_ms", "bound_ms"),
    [(10_000, 8_000, 5_000), (8_000, 10_000, 5_000), (10_000, 2_999, 0), (0, 10_000, 0), (3_001, 3_001, 1)],
)
def test_a_start_believes_the_older_stamp_less_three_seconds(
    tmp_path: Path, physic_ms: int, logics_ms: int, bound_ms: int
) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.physic_ms, checkpoint.logics_ms = physic_ms, logics_ms
    assert checkpoint.recovery_bound_ms() == bound_ms


def test_all_numbers_come_back(tmp_path: Path) -> None:
    written = Checkpoint(tmp_path / "checkpoint")
    written.physic_ms, written.logics_ms, written.index_ms = 1, 2, 3
    written.synced = Synced(4, 5, 6, 7, 8, 9)
    written.save()
    data = (tmp_path / "checkpoint").read_bytes()
    assert (len(data), data[:24]) == (4096, b"".join(each.to_bytes(8, "big") for each in (1, 2, 3)))
    read = Checkpoint(tmp_path / "checkpoint")
    read.load()
    assert (read.physic_ms, read.logics_ms, read.index_ms, read.synced) == (1, 2, 3, written.synced)


@pytest.mark.parametrize("at", [0, 7, 16, 512, 520, 559, 560, 563])
def test_our_numbers_count_beside_the_stamps_they_were_written_with(tmp_path: Path, at: int) -> None:
    """RocketMQ writes its stamps and leaves the rest: then the rest is of another time."""
    path = tmp_path / "checkpoint"
    written = Checkpoint(path)
    written.synced = Synced(4, 5, 6, 7, 8, 9)
    written.save()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    read = Checkpoint(path)
    read.load()
    assert read.synced == NOT_SYNCED


@pytest.mark.parametrize("at", [None, 0, 23, 512, 1024, 1031, 1032, 1035])
def test_where_the_log_begins_counts_beside_the_stamps_it_was_written_with(tmp_path: Path, at: int | None) -> None:
    path = tmp_path / "checkpoint"
    written = Checkpoint(path)
    written.keep_from(65536)
    written.save()
    data = bytearray(path.read_bytes())
    if at is not None:
        data[at] ^= 1
    path.write_bytes(data)
    read = Checkpoint(path)
    read.load()
    assert read.kept_from == (65536 if at in (None, 512) else NOT_KNOWN)


@pytest.mark.parametrize("data", [b"", b"\x00" * 10, b"\xff" * 24, b"\xff" * 4096])
def test_nonsense_reads_as_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "checkpoint").write_bytes(data)
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.load()
    assert (checkpoint.recovery_bound_ms(), checkpoint.synced) == (0, NOT_SYNCED)


def test_no_more_is_said_to_be_on_disk_than_the_log_was_flushed(store: MessageStore) -> None:
    first = store.put_message(message()).size_bytes
    store.parts.log.sync()
    second = first + store.put_message(message()).size_bytes
    store.queue_flusher.sync(store.parts.log.store_timestamp, second)
    assert store.checkpoint.synced.end_offset == first
    store.parts.log.sync()
    store.queue_flusher.sync(store.parts.log.store_timestamp, second)
    assert store.checkpoint.synced.end_offset == second
