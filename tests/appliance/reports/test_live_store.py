"""Reading the log of a store that is being written: always a prefix of what was put, in the end all of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.any_disk import ANY_DISK
from tests.waiting import wait_until

pytest.importorskip("numpy")

from appliance.reports.commit_log_files import CommitLogFiles, read_range
from gantrymq.message.batch import encode_batch
from gantrymq.message.ids import encode_host
from gantrymq.message.model import Message
from store import MessageStore, MessageStoreConfig, StoreBatch, StoreMessage

HOST = encode_host("127.0.0.1", 10911)
ROUNDS = 300


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    config = MessageStoreConfig(
        root=tmp_path / "store", commit_log_file_bytes=1 << 18, index_slots=100, index_entries=100_000, **ANY_DISK
    )
    opened = MessageStore(config)
    opened.load()
    opened.start()
    yield opened
    opened.close()


def offsets_until(log: CommitLogFiles, end: int) -> list[int]:
    return [
        offset
        for file in log.files()
        if file.start < end
        for block in read_range(file, file.start, min(file.end, end))
        for offset in block.physical_offset.tolist()
    ]


def test_a_reader_beside_the_writer_sees_a_growing_prefix(store: MessageStore, tmp_path: Path) -> None:
    log = CommitLogFiles([tmp_path / "store" / "commitlog"])
    put: list[int] = []
    seen: list[list[int]] = []
    done = threading.Event()

    def read() -> None:
        boundary = 0
        while not done.is_set():
            end = log.valid_end(boundary)
            assert end >= boundary
            boundary = end
            seen.append(offsets_until(log, end))

    put.append(store.put_message(StoreMessage("T", 0, b"the first", b"", 0, 0, 1, HOST, HOST)).physical_offset)
    reader = threading.Thread(target=read)
    reader.start()
    wait_until(lambda: seen or not reader.is_alive())  # else all may be put before it gets a core
    for number in range(ROUNDS):
        if number % 5:
            message = StoreMessage("T", 0, bytes(number * 7), b"TAGS\x01a", 0, 0, 1, HOST, HOST)
            put.append(store.put_message(message).physical_offset)
        else:
            body = encode_batch([Message("T", bytes(100 + part)) for part in range(20)])
            put += store.put_batch(StoreBatch("T", 0, body, b"", 0, 0, 1, HOST, HOST)).offsets
    done.set()
    reader.join()
    assert seen and all(found == put[: len(found)] for found in seen)
    assert log.valid_end() == store.max_physical_offset
    assert offsets_until(log, log.valid_end()) == put
    assert len(log.begun_files()) > 1
