"""Waiting for the disk."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store import MessageStore, PutMessageStatus, RunningFlags, flush
from tests.store.conftest import OpenStore, crash, message, small_config


@contextlib.asynccontextmanager
async def running(store: MessageStore) -> AsyncIterator[None]:
    task = asyncio.create_task(store.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def flushed(store: MessageStore, end_offset: int) -> bool:
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    store.when_flushed(end_offset, future.set_result)
    async with asyncio.timeout(30):
        return await future


async def test_many_who_wait_are_served_by_few_syncs(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path, flush_disk_type="SYNC_FLUSH"))
    syncs = 0
    sync = store._log.sync

    def counted() -> int:
        nonlocal syncs
        syncs += 1
        return sync()

    monkeypatch.setattr(store._log, "sync", counted)
    async with running(store):
        ends = [put.physical_offset + put.size_bytes for put in (store.put_message(message()) for _ in range(100))]
        assert all(await asyncio.gather(*(flushed(store, end) for end in ends)))
    assert syncs <= 3
    assert store.flushed_offset == store.max_physical_offset


async def test_what_is_flushed_already_is_answered_at_once(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path))
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
        patch.setattr(store._log, "sync", fail)
        async with running(store):
            put = store.put_message(message())
            assert not await flushed(store, put.physical_offset + put.size_bytes)
            assert store.put_message(message()).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert store.flags & RunningFlags.SYNC_ERROR
    store.close()
    assert (tmp_path / "abort").exists()  # the next start looks closely


async def test_queues_reach_their_files_by_themselves(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, consume_queue_flush_interval_ms=10))
    async with running(store):
        for _ in range(150):  # more than one file of 100 units
            store.put_message(message())
        async with asyncio.timeout(30):
            while len(list((tmp_path / "consumequeue" / "T" / "0").glob("*"))) < 2:
                await asyncio.sleep(0.01)
        for _ in range(5):
            store.put_message(message())
            await asyncio.sleep(0.02)
    first = store.consume_queue_units("T", 0, 0, 200)
    store._queues.find("T", 0).trim(0)  # type: ignore[union-attr]
    assert len(first) == 155
    assert store.consume_queue_units("T", 0, 0, 200) == first[:100]  # one file
    assert store.get_message("g", "T", 0, 95, 32).message_count == 5
    crash(store)


async def test_async_flush_follows_by_itself(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, flush_interval_ms=10))
    async with running(store):
        store.put_message(message(bytes(20000)))
        async with asyncio.timeout(30):
            while store.flushed_offset < store.max_physical_offset:
                await asyncio.sleep(0.01)


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
    async with running(store):
        await asyncio.sleep(0)
        for number in range(60):
            store.put_message(message(queue_id=number % 3))
        await asyncio.sleep(0.2)
        lacking = sum(queue.next_index - queue.written_index for queue in store._queues)
        assert lacking == (60 if waits else 0)


async def test_nobody_is_told_before_the_disk_has_it(tmp_path: Path, open_store: OpenStore) -> None:
    """A sync that began before the message came says nothing about it."""
    store = open_store(small_config(tmp_path, flush_disk_type="SYNC_FLUSH"))
    told: list[tuple[str, bool]] = []
    first = store.put_message(message()).size_bytes
    store._log.sync()
    second = first + store.put_message(message()).size_bytes
    store.when_flushed(second, lambda flushed: told.append(("second", flushed)))
    store.when_flushed(first, lambda flushed: told.append(("first", flushed)))
    store._log_flusher._complete()
    assert told == [("first", True)]
    store._log.sync()
    store._log_flusher._complete()
    assert told == [("first", True), ("second", True)]
