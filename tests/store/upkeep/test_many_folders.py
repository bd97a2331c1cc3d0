"""A commit log in several folders: who gets a new file, what is read, what a missing folder means."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.message import record
from store import MessageStore, MessageStoreConfig, PutMessageStatus, StoreDamaged
from tests.store.conftest import OpenStore, message, read_all, small_config


def config_of(root: Path, names: str = "b,a", **settings: object) -> MessageStoreConfig:
    paths = ",".join(str(root / name) for name in names.split(","))
    return small_config(root / "store", commit_log=Path(paths), **settings)


def put(store: MessageStore, count: int) -> None:
    for number in range(count):
        assert store.put_message(message(b"%d" % number + bytes(30_000))).status is PutMessageStatus.PUT_OK


@pytest.fixture
def stopped(tmp_path: Path, open_store: OpenStore) -> MessageStoreConfig:
    """Of five files in the two folders."""
    config = config_of(tmp_path)
    store = open_store(config)
    put(store, 10)
    store.close()
    return config


def files_in(folder: Path) -> list[int]:
    return sorted(int(path.name) // 65536 for path in folder.iterdir()) if folder.is_dir() else []


def test_new_files_go_to_the_folders_in_turn_sorted_by_name(
    tmp_path: Path, stopped: MessageStoreConfig, open_store: OpenStore
) -> None:
    assert (files_in(tmp_path / "a"), files_in(tmp_path / "b")) == ([0, 2, 4], [1, 3])
    again = open_store(stopped)
    bodies = [record.decode_record(raw).body for raw in read_all(again, "T")]
    assert bodies == [b"%d" % number + bytes(30_000) for number in range(10)]
    assert again.health.disk_ratios().keys() == {tmp_path / "a", tmp_path / "b"}


def test_a_nearly_full_folder_is_passed_over_until_all_are(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(config_of(tmp_path))
    store.parts.log._allocator.close()
    store.parts.log.request_prepare = lambda: None  # type: ignore[method-assign]  # files are made when needed, not before
    store.parts.log.queue.full_folders = {tmp_path / "a"}
    put(store, 4)
    assert (files_in(tmp_path / "a"), files_in(tmp_path / "b")) == ([], [0, 1])
    store.parts.log.queue.full_folders = {tmp_path / "a", tmp_path / "b"}
    put(store, 4)
    assert (files_in(tmp_path / "a"), files_in(tmp_path / "b")) == ([2], [0, 1, 3])


def test_a_read_only_folder_is_read_and_gets_nothing_new(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(config_of(tmp_path, "a"))
    put(store, 4)
    store.close()
    store = open_store(config_of(tmp_path, "b", read_only_commit_log=str(tmp_path / "a")))
    put(store, 4)
    assert len(read_all(store, "T")) == 8
    assert files_in(tmp_path / "a") == [0, 1]
    assert files_in(tmp_path / "b")[:2] == [2, 3]


def test_a_folder_that_is_not_there_any_more_is_noticed(
    tmp_path: Path, stopped: MessageStoreConfig, open_store: OpenStore
) -> None:
    (tmp_path / "b").rename(tmp_path / "unmounted")
    with pytest.raises(StoreDamaged, match="files are missing"):
        open_store(stopped)
    (tmp_path / "unmounted").rename(tmp_path / "b")
    assert len(read_all(open_store(stopped), "T")) == 10


def test_the_next_file_is_warmed_whole_before_its_turn(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, warm_files_enable=True, commit_log_file_bytes=1 << 20))
    put(store, 1)
    store.parts.log._allocator.close()  # waits for it
    following = store.parts.log._next
    assert following is not None and following.allocated_end == following.size == store.parts.log._warm_next_to
    put(store, 40)
    store.close()
    assert files_in(tmp_path / "commitlog") == [0, 16]
