"""What is deleted, and what never is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store import MessageStore, MessageStoreConfig, RunningFlags, retention
from tests.store.conftest import OpenStore, message, small_config

DAY_S = 86400.0
NOON = 1_700_049_600.0  # never within the deletion hour of the tests


def fill(store: MessageStore) -> None:
    for number in range(300):
        store.put_message(message(bytes(1000), keys=f"k{number}"))
    store.put_message(message(topic="Quiet"))
    store._log_flusher.finish()
    store._queue_flusher.finish()


def age(config: MessageStoreConfig, now: float, hours: float) -> None:
    for path in config.commit_log_folder.iterdir():
        os.utime(path, (now - hours * 3600, now - hours * 3600))


def hour_of(now: float) -> str:
    import time

    return str(time.localtime(now).tm_hour)


async def test_old_files_go_at_the_set_hour_and_queues_follow(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path, delete_when=hour_of(NOON))
    store = open_store(config)
    fill(store)
    files = len(store._log.queue.files)
    age(config, NOON, 73)
    assert await store._cleaner.clean(NOON, 0.1) == files - 1
    assert store.min_physical_offset == (files - 1) * 65536
    first = store.min_offset("T", 0)
    assert first > 200
    assert store.get_message("g", "T", 0, first, 32).message_count
    assert store.consume_queue_units("T", 0, 0, 1) == []
    assert len(list((tmp_path / "consumequeue" / "T" / "0").iterdir())) == 3 - first // 100
    store.close()
    again = open_store(config)
    assert again.min_offset("T", 0) == first
    assert again.max_offset("T", 0) == 300


@pytest.mark.parametrize(
    ("hours", "ratio", "delete_when", "gone"),
    [
        (73, 0.1, "now", True),
        (71, 0.1, "now", False),
        (73, 0.1, "other", False),
        (73, 0.76, "other", True),
        (71, 0.76, "other", False),
        (1, 0.86, "other", True),
    ],
)
async def test_age_hour_and_disk_decide(
    tmp_path: Path, open_store: OpenStore, hours: float, ratio: float, delete_when: str, gone: bool
) -> None:
    hour = hour_of(NOON) if delete_when == "now" else str((int(hour_of(NOON)) + 1) % 24)
    config = small_config(tmp_path, delete_when=hour)
    store = open_store(config)
    fill(store)
    age(config, NOON, hours)
    assert (await store._cleaner.clean(NOON, ratio) > 0) == gone


async def test_an_operator_need_not_wait_for_the_hour(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path, delete_when=str((int(hour_of(NOON)) + 1) % 24))
    store = open_store(config)
    fill(store)
    age(config, NOON, 73)
    store.delete_expired_files_soon()
    assert await store._cleaner.clean(NOON, 0.1) > 0


async def test_readers_keep_what_they_hold(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path)
    store = open_store(config)
    fill(store)
    held = store.get_message("g", "T", 0, 0, 1).buffers[0]
    before = bytes(held)
    age(config, NOON, 100)
    assert await store._cleaner.clean(NOON, 0.99) > 0
    assert bytes(held) == before
    assert store.message_bytes(0) is None


async def test_the_disk_full_flag_comes_and_goes(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path))
    monkeypatch.setattr(retention, "disk_ratio", lambda path: 0.91)
    store._cleaner.check_space()
    assert store.flags & RunningFlags.DISK_FULL and not store.is_writeable
    monkeypatch.setattr(retention, "disk_ratio", lambda path: 0.89)
    store._cleaner.check_space()
    assert store.is_writeable


async def test_queues_whose_messages_all_expired_are_removed_on_demand(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path)
    store = open_store(config)
    store.put_message(message(topic="Old"))
    fill(store)
    age(config, NOON, 100)
    await store._cleaner.clean(NOON, 0.99)
    assert store.clean_expired_queues() == 1
    assert store.topics() == {"T", "Quiet"}
    assert not (tmp_path / "consumequeue" / "Old" / "0").exists()


def test_a_folder_to_come_counts_as_its_parent(tmp_path: Path) -> None:
    assert retention.disk_ratio(tmp_path / "a" / "b") == retention.disk_ratio(tmp_path) >= 0
