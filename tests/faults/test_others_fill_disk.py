"""The disk is full, and by whom: others' bytes cost no acknowledged message, the store's own make the oldest go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gantrymq.client.admin.client import AdminClient
from gantrymq.client.produce.producer import Producer
from gantrymq.errors import GantryError
from gantrymq.message import record
from gantrymq.message.model import Message
from store import MessageStore, MessageStoreConfig, PutMessageStatus, RunningFlags
from store.upkeep import disk_share, retention
from store.upkeep.disk_share import NOTES_NAME
from tests.any_disk import ROCKETMQS_MARKS
from tests.faults.kit.small_disk import SmallDisk, small_disk
from tests.harness import serving
from tests.store.conftest import message, opened, read_all, small_config
from tests.waiting import until

OK = PutMessageStatus.PUT_OK
DISK_BYTES = 48 << 20
LOG_FILE_BYTES = 1 << 20
BODY = bytes(20_000)
PATIENCE_S = 240


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", DISK_BYTES) as mounted:
        yield mounted


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleaning begins at once, and each look at the disk is soon followed by the next."""
    monkeypatch.setattr(retention, "FIRST_ROUND_AFTER_S", 0.0)
    monkeypatch.setattr(retention, "CHECK_SPACE_EVERY_S", 0.05)
    monkeypatch.setattr(disk_share, "COUNT_EVERY_S", 0.05)


def config_at(root: Path, **settings: Any) -> MessageStoreConfig:
    usual = {
        "commit_log_file_bytes": LOG_FILE_BYTES,
        "clean_interval_ms": 50,
        "delete_log_files_pause_ms": 0,
        "index_enable": False,
        "flush_interval_ms": 10,
    }
    return small_config(root, **{**ROCKETMQS_MARKS, **usual, **settings})


@contextlib.asynccontextmanager
async def running(config: MessageStoreConfig) -> AsyncIterator[MessageStore]:
    store = opened(config)
    task = asyncio.create_task(store.run())
    try:
        yield store
    finally:
        task.cancel()
        await asyncio.wait({task})
        store.close()


def put(store: MessageStore, number: int) -> bool:
    return store.put_message(message(b"%06d" % number + BODY)).status is OK


async def fill(store: MessageStore, start: int, size_bytes: int) -> int:
    """Put so many bytes, all acknowledged; return the next number."""
    number = start
    while (number - start) * len(BODY) < size_bytes:
        assert put(store, number)
        number += 1
        await asyncio.sleep(0)
    await until(lambda: store.flushed_offset == store.max_physical_offset)
    return number


async def counted_anew(store: MessageStore) -> None:
    """Until two more rounds of cleaning had their chance to delete something."""
    for _ in range(2):
        before = store.cleaner.shares
        await until(lambda before=before: store.cleaner.shares is not before)  # type: ignore[misc]


def numbers(store: MessageStore) -> list[int]:
    return [int(record.decode_record(raw).body[:6]) for raw in read_all(store, "T")]


async def test_others_bytes_cost_no_acknowledged_message(disk: SmallDisk) -> None:
    async with running(config_at(disk.path / "store")) as store:
        count = await fill(store, 0, 16 << 20)
        disk.leave(1 << 20)
        await until(lambda: not store.is_writeable)
        await counted_anew(store)
        assert numbers(store) == list(range(count)), "an acknowledged message was given up for others' bytes"
        assert not put(store, count)
        shares = store.cleaner.shares
        assert shares is not None and 16 << 20 <= shares.store_bytes < 20 << 20 < shares.others_bytes < 31 << 20
        assert store.cleaner.others_fill
        assert "others filled it" in store.trouble()
        disk.empty()
        await until(lambda: store.is_writeable)
        assert not store.cleaner.others_fill and not store.trouble()
        assert put(store, count)
        assert numbers(store) == list(range(count + 1))


async def test_the_last_byte_taken_by_others_costs_nothing_either(disk: SmallDisk) -> None:
    """At 100 %: what was acknowledged up to the refusal is what the folder holds, also for the next process."""
    config = config_at(disk.path / "store")
    async with running(config) as store:
        count = await fill(store, 0, 8 << 20)
        disk.leave(0)
        while put(store, count):
            count += 1
        await until(lambda: bool(store.flags & RunningFlags.DISK_FULL))
        await counted_anew(store)
        assert numbers(store) == list(range(count))
    async with running(config) as again:
        assert not again.is_writeable
        await counted_anew(again)
        assert numbers(again) == list(range(count))
        disk.empty()
        await until(lambda: put(again, count))
        assert numbers(again) == list(range(count + 1))


@pytest.mark.parametrize("others_bytes", [0, 20 << 20], ids=["alone", "beside what was there before"])
async def test_a_store_that_fills_the_disk_lets_its_oldest_go(disk: SmallDisk, others_bytes: int) -> None:
    disk.leave(DISK_BYTES - others_bytes)
    async with running(config_at(disk.path / "store")) as store:
        number = taken = 0
        async with asyncio.timeout(PATIENCE_S):
            while store.min_physical_offset < 4 * LOG_FILE_BYTES:
                number += 1
                taken += put(store, number)
                await asyncio.sleep(0)
        assert not store.cleaner.others_fill
        await until(lambda: store.is_writeable)
        assert taken * len(BODY) > 0.85 * DISK_BYTES - others_bytes - (2 << 20), "it gave up before its room was used"


async def test_whoever_wants_rocketmqs_rule_has_it(disk: SmallDisk) -> None:
    async with running(config_at(disk.path / "store", clean_forcibly_for_others=True)) as store:
        await fill(store, 0, 16 << 20)
        disk.leave(1 << 20)
        await until(lambda: store.min_physical_offset > 8 * LOG_FILE_BYTES)
        assert not store.cleaner.others_fill


async def test_a_restart_remembers_what_others_had(disk: SmallDisk) -> None:
    """Neither does it take bytes for old that came while the broker was down, nor old ones for new."""
    config = config_at(disk.path / "store")
    disk.leave(DISK_BYTES - (10 << 20))
    async with running(config) as store:
        count = await fill(store, 0, 16 << 20)
        await counted_anew(store)
    disk.leave(1 << 20)
    async with running(config) as again:
        assert not again.is_writeable
        await counted_anew(again)
        assert numbers(again) == list(range(count))
        use = again.cleaner.shares.by_folder[config.commit_log_folders[0]]  # type: ignore[union-attr]
        assert 10 << 20 <= use.others_floor < 11 << 20


async def test_of_a_store_without_notes_only_its_own_bytes_count(disk: SmallDisk) -> None:
    """One that comes from RocketMQ: how long others have had their bytes is not known."""
    config = config_at(disk.path / "store")
    disk.leave(DISK_BYTES - (20 << 20))
    async with running(config) as store:
        count = await fill(store, 0, 16 << 20)
    (config.root / NOTES_NAME).unlink()
    disk.leave(1 << 20)
    async with running(config) as again:
        await until(lambda: not again.is_writeable)
        await counted_anew(again)
        assert numbers(again) == list(range(count))


async def test_of_two_disks_one_filled_by_others_is_no_reason(tmp_path: Path) -> None:
    """Were it not for others, new files would still find room there."""
    with small_disk(tmp_path / "a", DISK_BYTES) as first, small_disk(tmp_path / "b", DISK_BYTES) as second:
        folders = f"{first.path / 'log'},{second.path / 'log'}"
        async with running(config_at(second.path / "store", commit_log=Path(folders))) as store:
            count = await fill(store, 0, 16 << 20)
            first.leave(1 << 20)
            await until(lambda: store.parts.log.queue.full_folders == {first.path / "log"})
            second.leave(1 << 20)
            await until(lambda: not store.is_writeable)
            await counted_anew(store)
            assert numbers(store) == list(range(count))
            second.empty()
            await until(lambda: put(store, count))


async def test_a_producer_is_told_whose_bytes_they_are(disk: SmallDisk) -> None:
    marks = {**ROCKETMQS_MARKS, "commit_log_file_bytes": LOG_FILE_BYTES, "clean_interval_ms": 50}
    async with (
        serving(disk.path, store=marks) as cluster,
        Producer(cluster.namesrv_address, group="P", retries=0) as producer,
        AdminClient(cluster.namesrv_address) as admin,
    ):
        for number in range(100):
            await producer.send(Message("T", b"%d" % number + BODY))
        disk.leave(1 << 20)
        await until(lambda: not cluster.broker.store.is_writeable)
        with pytest.raises(GantryError, match=r"others filled it: [\d.]+ MiB are this store's, [\d.]+ MiB are others'"):
            await producer.send(Message("T", BODY))
        info = await admin.brokers.runtime_info(cluster.broker_address)
        assert info["diskFilledByOthers"] == "true"
        assert int(info["diskOthersBytes"]) > 20 << 20 > int(info["diskStoreBytes"]) > 100 * len(BODY)
        disk.empty()
        await until(lambda: cluster.broker.store.is_writeable)
        await producer.send(Message("T", BODY))
