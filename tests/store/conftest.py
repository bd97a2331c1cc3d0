"""A small store in a temporary folder, and messages to put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gantrymq.message import ids, record
from store import MessageStore, MessageStoreConfig, StoreMessage
from tests.any_disk import ANY_DISK
from tests.waiting import Clock

HOST = ids.encode_host("127.0.0.1", 10911)
OpenStore = Callable[..., MessageStore]


@pytest.fixture
def clock() -> Clock:
    return Clock(1_700_000_000.0)


@pytest.fixture
def small(tmp_path: Path) -> MessageStoreConfig:
    return small_config(tmp_path / "store")


def small_config(root: Path, **settings: Any) -> MessageStoreConfig:
    """Settings with files small enough to roll within a test."""
    return MessageStoreConfig(
        **{
            "root": root,
            "commit_log_file_bytes": 65536,
            "consume_queue_file_bytes": 2000,
            "index_slots": 100,
            "index_entries": 400,
            **ANY_DISK,
            **settings,
        }
    )


@pytest.fixture
def open_store(clock: Clock) -> Iterator[OpenStore]:
    """Open stores on settings; all are closed at the end, but for those that were abandoned."""
    opened: list[MessageStore] = []

    def open_(config: MessageStoreConfig) -> MessageStore:
        store = MessageStore(config, clock=clock, monotonic=clock)
        store.load()
        opened.append(store)
        store.start()
        return store

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore, tmp_path: Path) -> MessageStore:
    return open_store(small_config(tmp_path))


def opened(config: MessageStoreConfig, **clocks: Callable[[], float]) -> MessageStore:
    """A store on the real clock, or on those; whoever opens it closes it."""
    store = MessageStore(config, **clocks)
    store.load()
    store.start()
    return store


def message(
    body: bytes = b"hello",
    *,
    topic: str = "T",
    queue_id: int = 0,
    tags: str = "",
    keys: str = "",
    properties: str = "",
    sys_flag: int = 0,
) -> StoreMessage:
    pairs = [pair for pair in (keys and f"KEYS\x01{keys}", tags and f"TAGS\x01{tags}", properties) if pair]
    return StoreMessage(topic, queue_id, body, "\x02".join(pairs).encode(), 0, sys_flag, 1, HOST, HOST)


def read_all(store: MessageStore, topic: str, queue_id: int = 0) -> list[bytes]:
    """Return all records of a queue, as a consumer would get them."""
    records: list[bytes] = []
    offset = store.min_offset(topic, queue_id)
    while True:
        result = store.get_message("g", topic, queue_id, offset, 32)
        data = b"".join(result.buffers)
        position = 0
        while position < len(data):
            size = int.from_bytes(data[position : position + 4], "big")
            records.append(data[position : position + size])
            position += size
        if not result.message_count:
            return records
        offset = result.next_begin_offset


def bodies(store: MessageStore, topic: str = "T", queue_id: int = 0) -> list[bytes]:
    return [record.decode_record(raw).body for raw in read_all(store, topic, queue_id)]


def put_numbered(store: MessageStore, count: int, *, size: int = 100, queue_id: int = 0, start: int = 0) -> list[int]:
    """Put numbered messages of one size; return their physical offsets."""
    return [
        store.put_message(message(b"%06d" % number + bytes(size), queue_id=queue_id, keys=f"k{number}")).physical_offset
        for number in range(start, start + count)
    ]


def log_path(config: MessageStoreConfig, physical_offset: int = 0) -> Path:
    return config.commit_log_folders[0] / f"{physical_offset - physical_offset % config.commit_log_file_bytes:020d}"


def overwrite(config: MessageStoreConfig, physical_offset: int, data: bytes) -> None:
    """Damage the commit log."""
    with log_path(config, physical_offset).open("r+b") as file:
        file.seek(physical_offset % config.commit_log_file_bytes)
        file.write(data)
