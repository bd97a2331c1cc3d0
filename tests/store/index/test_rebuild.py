"""A damaged index file is made anew from the log while the store runs; what others know is found meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq.message import record
from store import MessageStore, MessageStoreConfig
from store.index import rebuild as index_rebuild
from store.index.file import ENTRY, HEADER_BYTES
from tests.store.conftest import Clock, OpenStore, message, opened, small_config
from tests.waiting import WITHIN_S, aside

COUNT = 350
ENTRIES = 50  # of a file
ENTRIES_AT = HEADER_BYTES + 4 * 100
FOREVER = 1 << 62
Damage = Callable[[bytearray], None]


def zeroed_header(data: bytearray) -> None:
    data[:HEADER_BYTES] = bytes(HEADER_BYTES)


def header_of_ones(data: bytearray) -> None:
    data[:HEADER_BYTES] = b"\x7f" * HEADER_BYTES


def other_count(data: bytearray) -> None:
    data[39] ^= 8


def lost_end(data: bytearray) -> None:
    data[ENTRIES_AT + 20 * (ENTRIES - 10) :] = bytes(20 * 10)


def swapped_entries(data: bytearray) -> None:
    """Each chain leads to an entry of another hash."""
    for number in range(1, ENTRIES):
        at = ENTRIES_AT + 20 * number
        key_hash, *rest = ENTRY.unpack_from(data, at)
        ENTRY.pack_into(data, at, key_hash ^ 1, *rest)


def emptied(data: bytearray) -> None:
    data[:] = bytes(len(data))


async def rebuilt(store: MessageStore) -> None:
    async with asyncio.timeout(WITHIN_S):
        while store.parts.index.markers():
            await asyncio.sleep(0.01)


def written(root: Path) -> MessageStoreConfig:
    config = small_config(root, index_entries=ENTRIES)
    store = opened(config)
    for number in range(COUNT):
        store.put_message(message(b"%d" % number + bytes(300), keys=f"k{number} a b"[: 5 + number % 5]))
    store.close()
    return config


def index_files(config: MessageStoreConfig) -> list[Path]:
    return sorted((config.root / "index").iterdir())


def spoil(path: Path, damage: Damage) -> bytes:
    before = path.read_bytes()
    data = bytearray(before)
    damage(data)
    path.write_bytes(data)
    return before


def found(store: MessageStore) -> list[int]:
    """Return the numbers of the messages that their keys lead to."""
    return [number for number in range(COUNT) if _is_found(store, number)]


def _is_found(store: MessageStore, number: int) -> bool:
    buffers = store.query_message("T", f"k{number}", 9, 0, FOREVER).buffers
    return f"k{number}" in [key for raw in buffers for key in record.decode_record(raw).keys]


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (lost_end, 3),
        *((damage, place) for damage in (zeroed_header, header_of_ones, other_count) for place in (0, 3, -1)),
    ],
)
async def test_after_a_clean_stop_a_damaged_file_is_made_anew(tmp_path: Path, damage: Damage, place: int) -> None:
    config = written(tmp_path / "store")
    paths = index_files(config)
    before = spoil(paths[place], damage)
    store = opened(config)
    assert len(found(store)) >= COUNT - ENTRIES
    async with aside(store.run()):
        await rebuilt(store)
        assert found(store) == list(range(COUNT))
        assert index_files(config) == paths
    store.put_message(message(keys="after"))
    assert len(store.query_message("T", "after", 9, 0, FOREVER).buffers) == 1
    store.close()
    if place >= 0:
        assert _entries(paths[place].read_bytes()) == _entries(before)
    again = opened(config)
    assert found(again) == list(range(COUNT)) and not again.parts.index.markers()
    again.close()


def _entries(data: bytes) -> list[tuple[int, ...]]:
    return [ENTRY.unpack_from(data, ENTRIES_AT + 20 * number) for number in range(1, ENTRIES)]


def test_a_clock_that_was_set_back_is_no_damage(tmp_path: Path, open_store: OpenStore, clock: Clock) -> None:
    """Each clean start made the file anew otherwise, and each take-over is one."""
    config = small_config(tmp_path / "store")
    store = open_store(config)
    for number in range(3):
        store.put_message(message(keys=f"k{number}"))
        clock.advance(-3600)
    store.close()
    again = open_store(config)
    assert not again.parts.index.markers()
    assert all(again.query_message("T", f"k{number}", 9, 0, FOREVER).buffers for number in range(3))


@pytest.mark.parametrize("damage", [zeroed_header, header_of_ones, emptied, swapped_entries])
async def test_after_a_crash_a_damaged_file_is_made_anew(tmp_path: Path, damage: Damage) -> None:
    config = written(tmp_path / "store")
    store = opened(config)
    store.put_message(message(keys="late"))
    store.log_flusher.finish()
    store.queue_flusher.write_out()
    store.parts.dispatcher.put_pending()
    store.queue_flusher.sync(1, store.max_physical_offset)
    store.abandon()
    spoil(index_files(config)[2], damage)
    store = opened(config)
    async with aside(store.run()):
        found(store)  # some damage shows when a chain is followed
        await rebuilt(store)
        assert found(store) == list(range(COUNT))
    store.close()


async def test_a_chain_that_leads_astray_is_noticed_by_the_query_that_follows_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = written(tmp_path / "store")
    spoil(index_files(config)[3], swapped_entries)
    store = opened(config)
    async with aside(store.run()):
        assert not any(getattr(each, "event", "") == "index_file_damaged" for each in caplog.records)
        assert COUNT - ENTRIES <= len(found(store)) < COUNT
        (report,) = [each for each in caplog.records if getattr(each, "event", "") == "index_file_damaged"]
        assert report.__dict__["path"].startswith(str(config.root / "index"))
        await rebuilt(store)
        assert found(store) == list(range(COUNT))
    store.close()


@pytest.mark.parametrize("after_crash", [False, True])
@pytest.mark.parametrize("damage", ["emptied", "deleted"])
async def test_an_index_of_one_file_that_is_gone_is_made_anew(
    tmp_path: Path, damage: str, *, after_crash: bool
) -> None:
    config = small_config(tmp_path, index_entries=5000)
    store = opened(config)
    for number in range(COUNT):
        store.put_message(message(b"%d" % number + bytes(300), keys=f"k{number}"))
    store.close()
    if after_crash:
        store = opened(config)
        store.abandon()
    (path,) = index_files(config)
    if damage == "emptied":
        spoil(path, emptied)
    else:
        path.unlink()
    store = opened(config)
    store.put_message(message(keys="after"))
    async with aside(store.run()):
        await rebuilt(store)
        assert found(store) == list(range(COUNT))
        assert len(store.query_message("T", "after", 9, 0, FOREVER).buffers) == 1
    store.close()


async def test_a_stop_in_between_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_rebuild, "SLICE_BYTES", 1000)
    config = written(tmp_path / "store")
    spoil(index_files(config)[3], zeroed_header)
    store = opened(config)
    async with aside(store.run()):
        while not store.index_rebuilder.current:
            await asyncio.sleep(0)
        await asyncio.sleep(0.005)
    assert store.parts.index.markers()
    store.close()
    store = opened(config)
    async with aside(store.run()):
        await rebuilt(store)
        assert found(store) == list(range(COUNT))
    store.close()


async def test_of_a_damaged_stretch_of_the_log_only_the_damaged_messages_are_missing(tmp_path: Path) -> None:
    config = written(tmp_path / "store")
    spoil(index_files(config)[3], zeroed_header)
    store = opened(config)
    (unit,) = store.consume_queue_units("T", 0, 170, 1)
    path = sorted((config.root / "commitlog").iterdir())[unit.physical_offset // config.commit_log_file_bytes]
    at = unit.physical_offset % config.commit_log_file_bytes

    def torn(data: bytearray) -> None:
        data[at + 4] ^= 1

    spoil(path, torn)
    async with aside(store.run()):
        await rebuilt(store)
        assert found(store) == [number for number in range(COUNT) if number != 170]
    store.close()


async def test_an_empty_file_whose_messages_others_have_is_forgotten(tmp_path: Path) -> None:
    """Each start after a kill made it anew otherwise: 40 MB each, until the disk was full."""
    config = small_config(tmp_path / "store", index_entries=ENTRIES)
    store = opened(config)
    store.put_message(message())  # RocketMQ makes a file for one without a key, too
    for number in range(COUNT):
        store.put_message(message(keys=f"k{number}"))
    store.close()
    paths = index_files(config)
    paths[0].with_name(str(int(paths[0].name) - 1)).write_bytes(bytes(paths[0].stat().st_size))
    store = opened(config)
    assert store.parts.index.markers()
    async with aside(store.run()):
        await rebuilt(store)
        assert found(store) == list(range(COUNT))
    assert index_files(config) == paths
    store.close()


async def test_a_file_whose_messages_have_expired_is_forgotten(tmp_path: Path) -> None:
    config = written(tmp_path / "store")
    spoil(index_files(config)[0], zeroed_header)
    store = opened(config)
    store.parts.log.queue.files.pop(0).delete()
    async with aside(store.run()):
        await rebuilt(store)
    assert len(index_files(config)) >= 6
    assert found(store)[-1] == COUNT - 1
    store.close()
