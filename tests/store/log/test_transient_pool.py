"""The transient pool: shown when committed, never more lost than was not, files as without it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gantrymq.message import record
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import GetMessageStatus, MessageStore, PutMessageStatus, StoreBatch
from store.inspect.folder import StoreFolder
from store.inspect.verify import verify_store
from store.log.transient_pool import TransientPool
from tests.store.conftest import HOST, OpenStore, message, read_all, small_config
from tests.waiting import WITHIN_S, aside

OK = PutMessageStatus.PUT_OK


@pytest.fixture
def store(tmp_path: Path, open_store: OpenStore) -> MessageStore:
    return open_store(small_config(tmp_path / "store", transient_pool_enable=True))


def put(store: MessageStore, start: int, stop: int) -> None:
    for number in range(start, stop):
        assert store.put_message(message(b"%06d" % number + bytes(500), keys=f"k{number}")).status is OK


def numbers(store: MessageStore) -> list[int]:
    return [int(record.decode_record(raw).body[:6]) for raw in read_all(store, "T")]


def test_a_message_is_shown_when_it_is_committed(store: MessageStore) -> None:
    put(store, 0, 3)
    got = store.get_message("g", "T", 0, 0, 32)
    assert (got.status, got.next_begin_offset) == (GetMessageStatus.OFFSET_OVERFLOW_ONE, 0)
    assert store.look_message_by_offset(0) is None
    assert not store.query_message("T", "k1", 9, 0, 1 << 62).buffers
    store.parts.log.commit()
    assert numbers(store) == [0, 1, 2]
    put(store, 3, 5)
    assert numbers(store) == [0, 1, 2]
    assert len(store.query_message("T", "k1", 9, 0, 1 << 62).buffers) == 1


async def test_listeners_hear_of_it_then_and_not_before(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, transient_pool_enable=True, commit_interval_ms=30))
    heard: list[tuple[int, int]] = []
    store.arrival_listener = lambda _topic, _queue_id, offset, _codes: heard.append((offset, len(numbers(store))))
    async with aside(store.run()):
        await asyncio.sleep(0.01)  # its parts begin
        put(store, 0, 1)
        body = encode_batch([Message("T", b"000001"), Message("T", b"000002")])
        assert store.put_batch(StoreBatch("T", 0, body, b"", 0, 0, 1, HOST, HOST)).status is OK
        assert not heard
        async with asyncio.timeout(WITHIN_S):
            while len(heard) < 2:
                await asyncio.sleep(0.005)
    assert heard == [(0, 3), (1, 3)]


def test_over_many_files_a_stop_leaves_what_a_store_without_pool_reads(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, transient_pool_enable=True))
    for start in range(0, 1000, 50):
        put(store, start, start + 50)
        if start % 150 == 0:
            store.parts.log.commit()
    store.close()
    with StoreFolder(tmp_path, index_slots=100, index_entries=400) as folder:
        assert not list(verify_store(folder).findings)
    plain = open_store(small_config(tmp_path))
    assert numbers(plain) == list(range(1000))
    put(plain, 1000, 1010)
    plain.close()
    again = open_store(small_config(tmp_path, transient_pool_enable=True))
    put(again, 1010, 1300)
    again.parts.log.commit()
    assert numbers(again) == list(range(1300))


def test_a_killed_process_loses_only_what_was_not_committed(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path, transient_pool_enable=True)
    store = open_store(config)
    put(store, 0, 400)
    store.parts.log.commit()
    put(store, 400, 700)  # beyond the end of the file, too
    seen = numbers(store)
    store.queue_flusher.finish()
    store.abandon()
    again = open_store(config)
    assert seen == numbers(again) == list(range(400))
    put(again, 400, 410)
    again.parts.log.commit()
    assert numbers(again) == list(range(410))


def test_without_memory_for_the_next_file_the_log_waits_at_the_end_of_this_one(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    put(store, 0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(TransientPool, "prepare", refuse)
        statuses = [store.put_message(message(b"%06d" % number + bytes(500))).status for number in range(1, 200)]
    taken = 1 + statuses.count(OK)
    assert 1 < taken < 200 and OK not in statuses[taken:]
    assert store.put_message(message(b"%06d" % taken + bytes(500))).status is OK
    store.parts.log.commit()
    assert numbers(store) == list(range(taken + 1))


def test_when_much_waits_the_writer_commits_itself(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.log.commit_log.WAITING_BYTES_MAX", 100_000)
    put(store, 0, 2000)
    assert store.max_physical_offset - store.parts.log.readable_end <= 100_000 + 2 * store.config.commit_log_file_bytes
    assert len(store.parts.log._pool._buffers) < 5  # type: ignore[union-attr]


def test_what_is_synced_is_committed(store: MessageStore) -> None:
    put(store, 0, 300)
    assert store.parts.log.sync() == store.max_physical_offset == store.flushed_offset
    assert numbers(store) == list(range(300))


def test_with_sync_flush_there_is_no_pool(
    tmp_path: Path, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(small_config(tmp_path, transient_pool_enable=True, flush_disk_type="SYNC_FLUSH"))
    assert any(getattr(each, "event", "") == "transient_pool_unused" for each in caplog.records)
    put(store, 0, 2)
    assert numbers(store) == [0, 1]


def test_memory_of_what_is_committed_is_given_back(tmp_path: Path) -> None:
    config = small_config(tmp_path, transient_pool_enable=True, commit_log_file_bytes=64 << 20)
    store = MessageStore(config)
    store.load()
    store.start()
    for _ in range(40):
        store.put_message(message(bytes(65_000)))
    before = _anonymous_bytes()
    for _ in range(10):
        for _ in range(60):
            store.put_message(message(bytes(65_000)))
        store.parts.log.commit()
    assert _anonymous_bytes() - before < 20 << 20  # of 39 MiB that were appended
    store.close()


def _anonymous_bytes() -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return (int(lines["RssAnon"].split()[0]) + int(lines["RssShmem"].split()[0])) << 10
