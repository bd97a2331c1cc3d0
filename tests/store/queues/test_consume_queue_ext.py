"""The extension of consume queues: Apache's bytes, addresses, roll-over, filters, recovery, cleaning."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gantrymq.message import properties as names
from gantrymq.message import record
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import ConsumeQueueUnit, MessageStore, MessageStoreConfig, StoreBatch, StoreDamaged, TagFilter
from store.queues.consume_queue_ext import ADDRESS_BASE, ADDRESS_MAX, ConsumeQueueExt, ExtUnit
from store.queues.descriptors import DescriptorCache
from tests.store.conftest import HOST, Clock, OpenStore, message, read_all, small_config
from tests.store.golden import unpack

TAG_A = names.string_hash_code("A")


def with_ext(root: Path) -> MessageStoreConfig:
    return small_config(root, consume_queue_ext_enable=True, consume_queue_ext_file_bytes=100)


def golden(folder: Path) -> MessageStoreConfig:
    config = unpack("cq_ext", folder)
    object.__setattr__(config, "consume_queue_ext_enable", True)
    return config


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def ext_of(store: MessageStore, topic: str = "T", queue_id: int = 0) -> ConsumeQueueExt:
    queue = store.parts.queues.find(topic, queue_id)
    assert queue is not None and queue.ext is not None
    return queue.ext


def units_of(store: MessageStore, topic: str = "T") -> list[ConsumeQueueUnit]:
    """All units one by one: several at once end at a file's end."""
    indexes = range(store.min_offset(topic, 0), store.max_offset(topic, 0))
    return [unit for index in indexes for unit in store.consume_queue_units(topic, 0, index, 1)]


def codes_of(store: MessageStore, topic: str = "T") -> list[int | None]:
    found = [ext_of(store, topic).unit(unit.tags_code) for unit in units_of(store, topic)]
    return [unit.tags_code if unit is not None else None for unit in found]


def test_apaches_units_are_read(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(golden(tmp_path))
    units = store.consume_queue_units("T1", 0, 0, 6)
    assert [unit.tags_code - ADDRESS_BASE for unit in units] == [0, 20, 40, 60, 100, 120]
    for unit in units:
        stored = record.decode_record(store.message_bytes(unit.physical_offset) or b"")
        assert ext_of(store, "T1").unit(unit.tags_code) == ExtUnit(20, 84, stored.store_timestamp, b"")
    assert store.get_message("g", "T1", 0, 0, 32, TagFilter(frozenset({84}))).message_count == 6
    assert store.get_message("g", "T1", 0, 0, 32, TagFilter(frozenset({85}))).message_count == 0


def test_an_extension_apache_wrote_and_one_written_here_are_the_same_bytes(
    tmp_path: Path, open_store: OpenStore
) -> None:
    config = golden(tmp_path)
    apaches = files_of(config.root / "consumequeue_ext/T1/0") | files_of(config.root / "consumequeue/T1/0")
    shutil.rmtree(config.root / "consumequeue")
    shutil.rmtree(config.root / "consumequeue_ext")
    open_store(config).close()
    assert files_of(config.root / "consumequeue_ext/T1/0") | files_of(config.root / "consumequeue/T1/0") == apaches


def test_new_units_go_on_behind_apaches(tmp_path: Path, open_store: OpenStore) -> None:
    config = golden(tmp_path)
    for _ in range(2):
        store = open_store(config)
        store.put_message(message(topic="T1", tags="A"))
        store.close()
    store = open_store(config)
    units = store.consume_queue_units("T1", 0, 6, 2)
    assert [unit.tags_code - ADDRESS_BASE for unit in units] == [140, 160]
    assert store.get_message("g", "T1", 0, 0, 32, TagFilter(frozenset({TAG_A}))).message_count == 2


@pytest.mark.parametrize("flushed", [True, False])
def test_a_filter_looks_through_addresses(tmp_path: Path, open_store: OpenStore, flushed: bool) -> None:
    store = open_store(with_ext(tmp_path))
    for number in range(12):
        store.put_message(message(b"%d" % number, tags="A" if number % 3 == 0 else "B"))
    store.put_batch(StoreBatch("T", 0, encode_batch([Message("T", b"x", tags="A")] * 3), b"", 0, 0, 1, HOST, HOST))
    if flushed:
        store.queue_flusher.finish()
    assert all(unit.tags_code <= ADDRESS_MAX for unit in store.consume_queue_units("T", 0, 0, 15))
    result = store.get_message("g", "T", 0, 0, 32, TagFilter(frozenset({TAG_A})))
    assert (result.message_count, result.next_begin_offset) == (7, 15)
    assert store.get_message("g", "T", 0, 0, 32).message_count == 15


def test_a_unit_whose_extension_is_lost_goes_to_the_client_who_can_tell(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(with_ext(tmp_path))
    for number in range(6):
        store.put_message(message(b"%d" % number, tags="A" if number % 2 else "B"))
    store.flush()
    path = min((tmp_path / "consumequeue_ext/T/0").iterdir())
    with path.open("r+b") as file:
        file.seek(20)  # the second unit's
        file.write(bytes(20))
    queue = store.parts.queues.find("T", 0)
    assert queue is not None
    queue.trim(0)
    codes = [unit.tags_code for unit in store.consume_queue_units("T", 0, 0, 6)]
    assert [store.extended_unit("T", 0, code) is None for code in codes] == [False, True, False, False, False, False]
    for wanted, found in ((TAG_A, 3), (names.string_hash_code("B"), 4), (1, 1)):
        assert store.get_message("g", "T", 0, 0, 32, TagFilter(frozenset({wanted}))).message_count == found


def test_the_listener_hears_the_tags_code_not_the_address(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(with_ext(tmp_path))
    heard: list[object] = []
    store.arrival_listener = lambda *facts: heard.append(facts[3])
    store.put_message(message(tags="A"))
    assert heard == [(TAG_A,)]


def test_delayed_messages_are_due_when_apaches_extension_says(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(with_ext(tmp_path))
    put = store.put_message(message(properties="DELAY\x013"))
    (unit,) = store.consume_queue_units("SCHEDULE_TOPIC_XXXX", 2, 0, 1)
    assert unit.tags_code == put.store_timestamp + 10_000
    store.queue_flusher.finish()
    ext_of(store, "SCHEDULE_TOPIC_XXXX", 2)._written_to -= 1  # the address is known, what it stands for is not
    ext_of(store, "SCHEDULE_TOPIC_XXXX", 2).close()
    next((tmp_path / "consumequeue_ext/SCHEDULE_TOPIC_XXXX/2").iterdir()).unlink()
    (unit,) = store.consume_queue_units("SCHEDULE_TOPIC_XXXX", 2, 0, 1)
    assert unit.tags_code == put.store_timestamp + 10_000


def test_what_a_crash_left_unreferenced_is_erased(tmp_path: Path, open_store: OpenStore) -> None:
    config = with_ext(tmp_path)
    store = open_store(config)
    for _ in range(10):
        store.put_message(message(tags="A"))
    store.queue_flusher.finish()
    ext = ext_of(store)
    for _ in range(7):
        ext.append(TAG_A, 1)
    ext.write_out()
    store.abandon()
    again = open_store(config)
    assert ext_of(again).position == 10 // 4 * 100 + 2 * 20
    again.put_message(message(tags="A"))
    again.queue_flusher.finish()
    assert len(files_of(config.root / "consumequeue_ext/T/0")) == 3
    assert not any(files_of(config.root / "consumequeue_ext/T/0")[f"{200:020d}"][60:])
    assert codes_of(again) == [TAG_A] * 11


@pytest.mark.parametrize("clean", [True, False])
def test_units_whose_extension_is_lost_come_back_from_the_log(
    tmp_path: Path, open_store: OpenStore, clean: bool
) -> None:
    config = with_ext(tmp_path)
    store = open_store(config)
    for number in range(10):
        store.put_message(message(b"%d" % number, tags="A"))
    store.flush()
    if clean:
        store.close()
    else:
        store.abandon()
    (config.root / "consumequeue_ext/T/0" / f"{200:020d}").unlink()
    with (config.root / "consumequeue_ext/T/0" / f"{100:020d}").open("r+b") as file:
        file.seek(40)
        file.write(bytes(60))
    again = open_store(config)
    assert codes_of(again) == [TAG_A] * 10
    assert [record.decode_record(raw).body for raw in read_all(again, "T")] == [b"%d" % number for number in range(10)]


def test_an_extension_that_was_switched_off_for_a_while_goes_on(tmp_path: Path, open_store: OpenStore) -> None:
    config = with_ext(tmp_path)
    store = open_store(config)
    store.put_message(message(tags="A"))
    store.close()
    store = open_store(small_config(tmp_path))
    assert store.get_message("g", "T", 0, 0, 32, TagFilter(frozenset({1}))).message_count == 0  # still read
    store.put_message(message(tags="B"))
    store.close()
    store = open_store(config)
    store.put_message(message(tags="A"))
    assert [unit.tags_code <= ADDRESS_MAX for unit in units_of(store)] == [True, False, True]
    assert store.get_message("g", "T", 0, 0, 32, TagFilter(frozenset({TAG_A}))).message_count == 2


def test_a_queue_without_addresses_goes_on_behind_the_last_unit(tmp_path: Path) -> None:
    for count in (0, 3, 4, 7):
        folder = tmp_path / str(count)
        ext = ConsumeQueueExt(folder, 100, DescriptorCache())
        for number in range(count):
            ext.append(number, 1)
        ext.write_out()
        again = ConsumeQueueExt(folder, 100, DescriptorCache())
        again.load(only_read=False)
        again.end_after_scan()
        assert again.position == ext.position


def test_a_unit_no_file_could_hold_stays_a_plain_code(tmp_path: Path) -> None:
    ext = ConsumeQueueExt(tmp_path, 100, DescriptorCache())
    assert ext.append(7, 1, bytes(77)) == 7
    address = ext.append(7, 1, b"\x01" * 76)
    assert ext.unit(address) == ExtUnit(96, 7, 1, b"\x01" * 76)
    ext.write_out()
    ext.written()
    assert ext.unit(address) == ExtUnit(96, 7, 1, b"\x01" * 76)
    assert ext.unit(address + 96) is None


def test_files_of_another_size_are_an_error_that_says_so(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(with_ext(tmp_path))
    store.put_message(message())
    store.close()
    with pytest.raises(StoreDamaged, match="mappedFileSizeConsumeQueueExt"):
        open_store(small_config(tmp_path, consume_queue_ext_enable=True, consume_queue_ext_file_bytes=200))


async def test_the_extension_goes_with_its_messages_and_its_topic(
    tmp_path: Path, open_store: OpenStore, clock: Clock
) -> None:
    config = with_ext(tmp_path)
    store = open_store(config)
    for _ in range(200):
        store.put_message(message(bytes(1000), tags="A"))
    store.flush()
    assert await store.cleaner.clean(clock.now, 1.0) == 3
    first = store.min_offset("T", 0)
    names_left = sorted(path.name for path in (tmp_path / "consumequeue_ext/T/0").iterdir())
    assert names_left[0] == f"{first // 4 * 100:020d}"
    assert set(codes_of(store)) == {TAG_A}
    store.close()
    store = open_store(config)
    assert set(codes_of(store)) == {TAG_A}
    store.delete_topic("T")
    assert not (tmp_path / "consumequeue_ext/T").exists() and not (tmp_path / "consumequeue/T").exists()
