"""The disk is full: a clear refusal, no damage, and writing goes on by itself when there is space again."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.process.json_file import JsonFile, StateFileError
from gantrymq.message import record
from store import MessageStore, PutMessageStatus
from store.upkeep import retention
from tests.faults.kit.numbered import numbers, put
from tests.faults.kit.small_disk import SmallDisk, small_disk
from tests.store.conftest import opened, small_config
from tests.waiting import WITHIN_S

OK = PutMessageStatus.PUT_OK
NO_FILE = PutMessageStatus.CREATE_MAPED_FILE_FAILED
NO_SERVICE = PutMessageStatus.SERVICE_NOT_AVAILABLE
DISK_BYTES = 8 << 20
LOG_FILE_BYTES = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", DISK_BYTES) as mounted:
        yield mounted


def put_until_refused(store: MessageStore, number: int) -> tuple[int, PutMessageStatus]:
    """Return the number of the first refused message, and how it was refused."""
    while (status := put(store, number)) is OK:
        number += 1
        assert number < 100_000, "nothing refuses"
    return number, status


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("pages", [0, 1, 40, 255, 256, 257, 300])
def test_a_roll_that_finds_no_space_is_refused_until_there_is(disk: SmallDisk, pages: int) -> None:
    """A file has 256 pages: it is this file's successor that finds no space, or the one after that."""
    config = small_config(disk.path / "store", commit_log_file_bytes=LOG_FILE_BYTES, index_enable=False)
    store = opened(config)
    put(store, 0)
    disk.leave(pages * 4096)
    number, status = put_until_refused(store, 1)
    assert status is NO_FILE
    descriptors = open_descriptors()
    assert {put(store, number) for _ in range(200)} == {NO_FILE}
    assert open_descriptors() <= descriptors + 2
    assert numbers(store) == list(range(number))
    disk.empty()
    for _ in range(1500):  # more than a file
        assert put(store, number) is OK
        number += 1
    assert numbers(store) == list(range(number))
    store.close()
    again = opened(config)
    assert numbers(again) == list(range(number))
    again.close()


@pytest.mark.parametrize("pages", [0, 1, 40])
def test_an_append_that_finds_no_space_is_refused_until_there_is(tmp_path: Path, pages: int) -> None:
    """A file so large that its blocks are allocated piece by piece: 16 MiB at first."""
    with small_disk(tmp_path / "disk", 24 << 20) as disk:
        disk.leave(20 << 20)
        config = small_config(
            tmp_path / "store", commit_log=disk.path / "log", commit_log_file_bytes=32 << 20, index_enable=False
        )
        store = opened(config)
        put(store, 0)
        disk.leave(pages * 4096)
        number, status = put_until_refused(store, 1)
        assert status is NO_FILE
        assert number > (16 << 20) // 1200
        disk.empty()
        for _ in range(1500):
            assert put(store, number) is OK
            number += 1
        store.close()
        again = opened(config)
        assert numbers(again) == list(range(number))
        again.close()


def test_a_file_that_may_not_grow_is_a_full_disk_too(tmp_path: Path) -> None:
    """The same by a limit on file sizes (RLIMIT_FSIZE), for which nobody needs to be root."""
    config = small_config(tmp_path, commit_log_file_bytes=LOG_FILE_BYTES)
    store = opened(config)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LOG_FILE_BYTES // 2, hard))
    try:
        assert {put(store, 0) for _ in range(100)} == {NO_FILE}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert put(store, 0) is OK
    assert numbers(store) == [0]
    store.close()


async def wait_for(store: MessageStore, number: int, wanted: bool) -> int:
    """Put until the answer is (not) a refusal; return the next number."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            status = put(store, number)
            assert status in (OK, NO_SERVICE)
            number += status is OK
            if (status is OK) is wanted:
                return number
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("index_entries", [400, 40_000], ids=["queues", "index"])
async def test_queues_and_index_without_space_stop_the_writing_until_there_is(
    disk: SmallDisk, tmp_path: Path, index_entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has a disk of its own and goes on; what is acknowledged gets its units and index entries later."""
    monkeypatch.setattr(retention, "CHECK_SPACE_EVERY_S", 0.05)
    config = small_config(
        disk.path / "store",
        commit_log=tmp_path / "log",
        commit_log_file_bytes=LOG_FILE_BYTES,
        consume_queue_file_bytes=2000,
        consume_queue_flush_interval_ms=10,
        index_entries=index_entries,
    )
    store = opened(config)
    running = asyncio.create_task(store.run())
    number = await wait_for(store, 0, True)
    if index_entries > 400:
        store.parts.dispatcher.put_pending()
    disk.leave(0)
    number = await wait_for(store, number, False)
    assert numbers(store) == list(range(number))
    disk.empty()
    number = await wait_for(store, number, True)
    for _ in range(100):
        number = await wait_for(store, number, True)
    running.cancel()
    await asyncio.wait({running})
    assert numbers(store) == list(range(number))
    assert missing_keys(store, number) == []
    store.close()
    again = opened(config)
    assert numbers(again) == list(range(number))
    assert missing_keys(again, number) == []
    again.close()


def missing_keys(store: MessageStore, count: int) -> list[int]:
    return [
        number for number in range(count)
        if not any(
            record.decode_record(raw).keys == [f"k{number}"]
            for raw in store.query_message("T", f"k{number}", 64, 0, 1 << 62).buffers
        )
    ]  # fmt: skip


def test_a_state_file_without_space_keeps_its_old_text(disk: SmallDisk) -> None:
    path = disk.path / "config" / "topics.json"
    JsonFile(path).write(b'{"a":1}', 1)
    disk.leave(0)
    file = JsonFile(path)
    for version in range(2, 20):
        with pytest.raises(StateFileError, match="No space left on device"):
            file.write(b'{"a":%d}' % version + b" " * 20_000, version)
    assert JsonFile(path).load() == {"a": 1}
    disk.empty()
    file.write(b'{"a":20}', 20)
    assert JsonFile(path).load() == {"a": 20}
    assert not os.path.lexists(path.with_name("topics.json.tmp"))
