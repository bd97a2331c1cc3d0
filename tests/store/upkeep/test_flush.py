"""Waiting for the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from store import MessageStore, PutMessageStatus, RunningFlags
from store.base import file_bytes
from store.index.file import IndexFile
from store.upkeep import flush
from tests.store.conftest import Clock, OpenStore, message, small_config
from tests.waiting import WITHIN_S, aside, until


async def flushed(store: MessageStore, end_offset: int) -> bool:
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    store.when_flushed(end_offset, future.set_result)
    async with asyncio.timeout(WITHIN_S):
        return await future


async def test_many_who_wait_are_served_by_few_syncs(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path, flush_disk_type="SYNC_FLUSH"))
    syncs = 0
    sync = store.parts.log.sync

    def counted() -> int:
        nonlocal syncs
        syncs += 1
        return sync()

    monkeypatch.setattr(store.parts.log, "sync", counted)
    async with aside(store.run()):
        ends = [put.physical_offset + put.size_bytes for put in (store.put_message(message()) for _ in range(100))]
        assert all(await asyncio.gather(*(flushed(store, end) for end in ends)))
    assert syncs <= 3
    assert store.flushed_offset == store.max_physical_offset


async def test_what_is_flushed_already_is_answered_at_once(store: MessageStore) -> None:
    answers: list[bool] = []
    store.when_flushed(0, answers.append)
    assert answers == [True]


async def test_a_disk_that_does_not_answer_is_a_timeout(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, sync_flush_timeout_ms=50))
    put = store.put_message(message())
    assert not await flushed(store, put.physical_offset + put.size_bytes)  # nobody runs the flusher


async def test_a_disk_that_fails_ends_writing(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path, flush_disk_type="SYNC_FLUSH"))

    def fail() -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(store.parts.log, "sync", fail)
        async with aside(store.run()):
            put = store.put_message(message())
            assert not await flushed(store, put.physical_offset + put.size_bytes)
            assert store.put_message(message()).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert store.flags & RunningFlags.SYNC_ERROR
    store.close()
    assert (tmp_path / "abort").exists()  # the next start looks closely


async def test_a_message_whose_keys_still_wait_is_read_again_after_a_crash(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush, "SYNC_QUEUES_INTERVAL_S", 0)
    store = open_store(small_config(tmp_path, consume_queue_flush_interval_ms=10, flush_interval_ms=10))
    put = store.put_message(message(keys="k1"))
    monkeypatch.setattr(store.queue_flusher, "_put_pending", lambda: None)  # as while the index can't grow
    waits = store.put_message(message(keys="k2"))
    store.parts.dispatcher.put_pending()
    store.put_message(message(keys="k3"))
    assert len(store.parts.index.pending) == 1
    async with aside(store.run()):
        await until(lambda: store.checkpoint.synced.end_offset >= waits.physical_offset)
        await until(lambda: store.flushed_offset == store.max_physical_offset)
        await asyncio.sleep(0.2)  # rounds of the flusher, which may promise no more
        assert put.physical_offset < store.checkpoint.synced.end_offset <= waits.physical_offset + waits.size_bytes
    store.abandon()


async def test_after_a_sync_that_failed_a_stop_promises_no_more_than_before(
    tmp_path: Path, open_store: OpenStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path))
    store.put_message(message(bytes(1000)))
    store.flush()
    store.queue_flusher.sync(store.parts.log.store_timestamp, promised := store.parts.log.flushed_offset)

    def fail() -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(store.parts.log, "sync", fail)
        for _ in range(200):  # over more than one file
            clock.now += 0.1
            store.put_message(message(bytes(1000)))
        async with aside(store.run()):
            await until(lambda: bool(store.flags & RunningFlags.SYNC_ERROR))
    store.close()  # the kernel takes the next sync for done, though it has dropped what the one before had to write
    log = sorted((tmp_path / "commitlog").iterdir())[1]
    with log.open("r+b") as file:
        file.seek(8192)
        file.write(bytes(8192))
    store = open_store(small_config(tmp_path))
    assert promised <= store.max_physical_offset <= int(log.name) + 8192
    store.close()


async def test_a_clock_that_was_set_back_is_no_promise_of_all_that_came_since(
    tmp_path: Path, open_store: OpenStore, clock: Clock
) -> None:
    """A start without a seal, and RocketMQ's, take what was stored before the checkpoint's times for synced."""
    store = open_store(small_config(tmp_path))
    store.put_message(message())
    store.flush()
    clock.now -= 3600
    back_ms = store.put_message(message(bytes(20_000))).store_timestamp
    async with aside(store.run()):
        await until(lambda: store.checkpoint.physic_ms == back_ms)
    store.abandon()
    store = open_store(small_config(tmp_path))
    store.flush()
    assert (store.checkpoint.physic_ms, store.checkpoint.logics_ms) == (back_ms, back_ms)


def test_units_of_many_queues_are_synced_with_their_extensions(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each folder may be on a disk of its own."""
    monkeypatch.setattr(flush, "FEW_QUEUE_FILES", 3)
    synced: list[Path] = []
    monkeypatch.setattr(file_bytes, "sync_file_system", synced.append)
    store = open_store(small_config(tmp_path, consume_queue_ext_enable=True))
    for queue_id in range(4):
        store.put_message(message(queue_id=queue_id))
    store.flush()
    assert sorted(synced) == [tmp_path / "consumequeue", tmp_path / "consumequeue_ext"]


async def test_queues_reach_their_files_by_themselves(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, consume_queue_flush_interval_ms=10))
    async with aside(store.run()):
        for _ in range(150):  # more than one file of 100 units
            store.put_message(message())
        async with asyncio.timeout(WITHIN_S):
            while len(list((tmp_path / "consumequeue" / "T" / "0").glob("*"))) < 2:
                await asyncio.sleep(0.01)
        for _ in range(5):
            store.put_message(message())
            await asyncio.sleep(0.02)
    first = store.consume_queue_units("T", 0, 0, 200)
    store.parts.queues.find("T", 0).trim(0)  # type: ignore[union-attr]
    assert len(first) == 155
    assert store.consume_queue_units("T", 0, 0, 200) == first[:100]  # one file
    assert store.get_message("g", "T", 0, 95, 32).message_count == 5
    store.abandon()


@pytest.mark.parametrize(
    ("limit", "waits"), [("WRITE_MANY_UNITS", False), ("WRITE_MANY_BYTES", False), ("", True)], ids=str
)
async def test_units_of_many_queues_wait_until_there_are_many_units_or_bytes(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, limit: str, *, waits: bool
) -> None:
    monkeypatch.setattr(flush, "MANY_DIRTY", 2)
    if limit:
        monkeypatch.setattr(flush, limit, 50)
    store = open_store(small_config(tmp_path, consume_queue_flush_interval_ms=5))
    async with aside(store.run()):
        await asyncio.sleep(0)
        for number in range(60):
            store.put_message(message(queue_id=number % 3))
        if waits:
            await asyncio.sleep(0.2)  # none of forty rounds may write
            assert lacking(store) == 60
        else:
            await until(lambda: lacking(store) == 0)


def lacking(store: MessageStore) -> int:
    """Units that no file has yet."""
    return sum(queue.next_index - queue.written_index for queue in store.parts.queues)


async def test_nobody_is_told_before_the_disk_has_it(tmp_path: Path, open_store: OpenStore) -> None:
    """A sync that began before the message came says nothing about it."""
    store = open_store(small_config(tmp_path, flush_disk_type="SYNC_FLUSH"))
    told: list[tuple[str, bool]] = []
    first = store.put_message(message()).size_bytes
    store.parts.log.sync()
    second = first + store.put_message(message()).size_bytes
    store.when_flushed(second, lambda flushed: told.append(("second", flushed)))
    store.when_flushed(first, lambda flushed: told.append(("first", flushed)))
    store.log_flusher._complete()
    assert told == [("first", True)]
    store.parts.log.sync()
    store.log_flusher._complete()
    assert told == [("first", True), ("second", True)]


async def test_who_waits_for_the_disk_longest_is_told_first_and_the_others_when_their_time_is_over(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is the test's: the flusher's timer is called by hand."""
    now = [1000.0]
    monkeypatch.setattr(flush, "time", SimpleNamespace(monotonic=lambda: now[0]))
    store = open_store(small_config(tmp_path, sync_flush_timeout_ms=5000))
    flusher = store.log_flusher
    end = store.put_message(message()).size_bytes
    told: list[tuple[str, bool]] = []
    for name, waits_from in (("first", 1000.0), ("second", 1000.0), ("third", 1002.0)):
        now[0] = waits_from
        store.when_flushed(end, lambda done, name=name: told.append((name, done)))  # type: ignore[misc]
    now[0] = 1004.9
    flusher._expire()
    assert told == []
    now[0] = 1005.0
    called_at = asyncio.get_running_loop().time()
    flusher._expire()
    assert told == [("first", False), ("second", False)]
    assert flusher._timer is not None
    assert called_at + 2.0 <= flusher._timer.when() <= asyncio.get_running_loop().time() + 2.0
    now[0] = 1006.9
    flusher._expire()
    assert len(told) == 2
    now[0] = 1007.0
    flusher._expire()
    assert told[2:] == [("third", False)]
    assert flusher._timer is None


async def test_the_disk_having_all_up_to_a_messages_end_is_enough(store: MessageStore) -> None:
    put = store.put_message(message())
    end = put.physical_offset + put.size_bytes
    told: list[tuple[int, bool]] = []
    for offset in (end, end + 1):
        store.when_flushed(offset, lambda done, offset=offset: told.append((offset, done)))  # type: ignore[misc]
    store.log_flusher.finish()
    assert told == [(end, True)]


def test_the_index_is_said_to_be_on_disk_up_to_what_it_had_before_it_was_synced(
    store: MessageStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store.put_message(message(keys="a"))
    store.parts.dispatcher.put_pending()
    sync = IndexFile.sync

    def sync_while_one_comes(file: IndexFile) -> None:
        sync(file)
        clock.now += 10
        store.put_message(message(keys="b"))
        store.parts.dispatcher.put_pending()

    monkeypatch.setattr(IndexFile, "sync", sync_while_one_comes)
    store.queue_flusher.sync(first.store_timestamp, store.parts.log.position)
    monkeypatch.undo()
    assert store.parts.index.last_update[0] == first.store_timestamp + 10_000
    assert store.checkpoint.index_ms == first.store_timestamp
    assert store.checkpoint.synced.index_end == first.physical_offset
