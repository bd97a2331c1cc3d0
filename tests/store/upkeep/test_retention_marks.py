"""Marks of the disk and of the store, exactly at them and just above: RocketMQ acts above, never at."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import RunningFlags
from store.upkeep import retention
from tests.store import conftest
from tests.store.conftest import OpenStore
from tests.store.upkeep.ageing import NOON, age, aged, other_hour

pytestmark = pytest.mark.usefixtures("half_full")


@pytest.mark.parametrize(("ratio", "goes"), [(0.75, False), (0.76, True)])
async def test_old_files_go_above_the_mark(tmp_path: Path, open_store: OpenStore, ratio: float, goes: bool) -> None:
    store = aged(open_store, tmp_path, 73, delete_when=other_hour(NOON))
    assert bool(await store.cleaner.clean(NOON, ratio)) is goes


@pytest.mark.parametrize(("ratio", "goes"), [(0.85, False), (0.86, True)])
async def test_young_files_go_above_the_second_mark(
    tmp_path: Path, open_store: OpenStore, ratio: float, goes: bool
) -> None:
    store = aged(open_store, tmp_path, 1, delete_when=other_hour(NOON))
    assert bool(await store.cleaner.clean(NOON, ratio)) is goes


async def test_young_files_stay_where_force_is_not_allowed(tmp_path: Path, open_store: OpenStore) -> None:
    store = aged(open_store, tmp_path, 1, delete_when=other_hour(NOON), clean_forcibly_enable=False)
    assert await store.cleaner.clean(NOON, 0.99) == 0


@pytest.mark.parametrize(("hours", "goes"), [(71.99, False), (72, True)])
async def test_a_file_is_old_when_its_hours_are_full(
    tmp_path: Path, open_store: OpenStore, hours: float, goes: bool
) -> None:
    store = aged(open_store, tmp_path, hours, delete_when=other_hour(NOON))
    store.cleaner.delete_soon()
    assert bool(await store.cleaner.clean(NOON, 0.1)) is goes


@pytest.mark.parametrize(("ratio", "full"), [(0.9, False), (0.91, True)])
async def test_writes_end_above_the_third_mark(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, ratio: float, full: bool
) -> None:
    store = aged(open_store, tmp_path, 1, delete_when=other_hour(NOON))
    monkeypatch.setattr(retention, "disk_ratio", lambda path: ratio)
    store.cleaner.check_space()
    assert bool(store.flags & RunningFlags.DISK_FULL) is full
    assert store.is_writeable is not full


async def test_a_store_may_be_as_large_as_its_limit(tmp_path: Path, open_store: OpenStore) -> None:
    store = aged(open_store, tmp_path, 1, delete_when=other_hour(NOON))
    size = store.max_physical_offset - store.min_physical_offset
    files = len(store.parts.log.queue.files)
    for limit, left in ((size, files), (size - 1, files - 1), (size - 1 - 65536, files - 2), (1, 1)):
        object.__setattr__(store.config, "store_bytes_max", limit)
        await store.cleaner.clean(NOON, 0.1)
        assert len(store.parts.log.queue.files) == left


async def test_an_operators_wish_lasts_twenty_rounds(tmp_path: Path, open_store: OpenStore) -> None:
    store = aged(open_store, tmp_path, 1, delete_when=other_hour(NOON))
    store.cleaner.delete_soon()
    for _ in range(19):
        assert await store.cleaner.clean(NOON, 0.1) == 0
    age(store.config, NOON, 73)
    assert await store.cleaner.clean(NOON, 0.1) > 0
    for _ in range(500):
        store.put_message(conftest.message(bytes(1000)))
    store.log_flusher.finish()
    age(store.config, NOON, 73)
    assert await store.cleaner.clean(NOON, 0.1) == 0
