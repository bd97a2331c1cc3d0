"""A store of ours with something in every part, and a way to see that nobody touched it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import MessageStore, MessageStoreConfig, StoreBatch
from tests.store.conftest import HOST, Clock, OpenStore, message

MESSAGES = 820  # of queue T-0; more than one commit log file, more than one index file


def fill(store: MessageStore, clock: Clock, count: int = MESSAGES) -> None:
    """Numbered messages in T-0 with tags and keys; a batch, a delayed, a prepared and a rolled back one elsewhere."""
    for number in range(count):
        clock.now += 0.01
        store.put_message(message(b"%06d" % number + bytes(70), keys=f"k{number}", tags=f"t{number % 3}"))
    batch = encode_batch([Message("B", b"one", keys="b1 b2"), Message("B", b"two", tags="x")])
    store.put_batch(StoreBatch("B", 1, batch, b"", 0, 0, 1, HOST, HOST))
    store.put_message(message(b"later", topic="D", properties="DELAY\x012", keys="d"))
    store.put_message(message(b"half", topic="H", sys_flag=4, keys="h"))
    store.put_message(message(b"undone", topic="H", sys_flag=12))


@pytest.fixture
def stopped(small: MessageStoreConfig, open_store: OpenStore, clock: Clock) -> MessageStoreConfig:
    """The settings of a filled store that was stopped cleanly."""
    store = open_store(small)
    fill(store, clock)
    store.close()
    return small


def snapshot(root: Path) -> dict[str, tuple[int, int, str]]:
    """Every name under the folder, with mode, modification time and content."""
    found = {}
    for path in sorted(root.rglob("*")):
        stat = path.stat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def log_file(config: MessageStoreConfig, base: int = 0) -> Path:
    return config.root / "commitlog" / f"{base:020d}"


def queue_file(config: MessageStoreConfig, topic: str = "T", queue_id: int = 0, index: int = 0) -> Path:
    return config.root / "consumequeue" / topic / str(queue_id) / f"{index * 20:020d}"
