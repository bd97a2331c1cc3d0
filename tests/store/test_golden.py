"""Folders written by Apache RocketMQ open here and read exactly; what is written here reads back the same way."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.message import properties as names
from gantrymq.message import record
from store import GetMessageStatus, TagFilter
from tests.store.conftest import OpenStore, message, read_all
from tests.store.golden import GOLDEN_STORES, commit_log_records, queue_units, unpack

EXT_ADDRESS_MAX = -(1 << 31) - 1


@pytest.mark.parametrize("name", GOLDEN_STORES)
def test_every_record_and_every_unit_is_read_exactly(name: str, tmp_path: Path, open_store: OpenStore) -> None:
    config = unpack(name, tmp_path)
    records = dict(commit_log_records(config.root))
    folders = list((config.root / "consumequeue").glob("*/*"))
    units = {(f.parent.name, int(f.name)): queue_units(config.root, f.parent.name, int(f.name)) for f in folders}

    store = open_store(config)

    assert store.max_physical_offset == max(offset + len(raw) for offset, raw in records.items())
    for offset, raw in records.items():
        assert store.message_bytes(offset) == raw
        assert store.message_bytes(offset + 1) is None
    assert store.topics() == {topic for topic, _ in units}
    for (topic, queue_id), expected in units.items():
        first, last = min(expected), max(expected)
        assert (store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)) == (first, last + 1)
        for index, unit in expected.items():
            assert store.consume_queue_units(topic, queue_id, index, 1) == [unit]
        assert read_all(store, topic, queue_id) == [records[expected[index][0]] for index in sorted(expected)]


@pytest.mark.parametrize("name", [name for name in GOLDEN_STORES if name != "cq_ext"])
def test_tags_codes_and_due_times_are_computed_as_apache_did(name: str, tmp_path: Path, open_store: OpenStore) -> None:
    config = unpack(name, tmp_path)
    folders = list((config.root / "consumequeue").glob("*/*"))
    expected = {(f.parent.name, int(f.name)): queue_units(config.root, f.parent.name, int(f.name)) for f in folders}
    for path in config.root.glob("consumequeue/*/*/*"):
        path.unlink()

    store = open_store(config)

    for (topic, queue_id), units in expected.items():
        for index, unit in units.items():
            assert store.consume_queue_units(topic, queue_id, index, 1) == [unit]


@pytest.mark.parametrize("name", GOLDEN_STORES)
def test_every_key_is_found_in_the_index(name: str, tmp_path: Path, open_store: OpenStore) -> None:
    config = unpack(name, tmp_path)
    records = dict(commit_log_records(config.root))
    store = open_store(config)
    first_indexed = min(file.begin_offset for file in store.parts.index.files)
    asked = 0
    for offset, raw in records.items():
        fields = record.split_record(raw)
        properties = names.decode_properties(fields.properties)
        for key in [properties.get("UNIQ_KEY", ""), *properties.get("KEYS", "").split(" ")]:
            if key and offset >= first_indexed:
                found = store.query_message(fields.topic.decode(), key, 64, 0, 1 << 62)
                assert raw in found.buffers or len(found.buffers) == 64
                asked += 1
    assert asked


def test_an_index_apache_wrote_and_one_written_here_are_the_same_bytes(tmp_path: Path, open_store: OpenStore) -> None:
    config = unpack("clean_broker", tmp_path)
    (path,) = (config.root / "index").iterdir()
    apaches = path.read_bytes()
    path.unlink()
    for queue_file in config.root.glob("consumequeue/*/*/*"):
        queue_file.unlink()  # with neither queues nor index, both are made from the log

    store = open_store(config)
    store.close()

    (ours,) = (config.root / "index").iterdir()
    assert ours.read_bytes() == apaches


@pytest.mark.parametrize("name", GOLDEN_STORES)
def test_an_apache_store_takes_new_messages_and_keeps_the_old(name: str, tmp_path: Path, open_store: OpenStore) -> None:
    config = unpack(name, tmp_path)
    store = open_store(config)
    topic = next(iter(store.topics()))
    queue_id = store.queue_ids(topic)[0]
    before = read_all(store, topic, queue_id)
    put = store.put_message(message(b"new", topic=topic, queue_id=queue_id), delay=False)
    store.close()

    again = open_store(config)

    assert put.queue_offset == again.max_offset(topic, queue_id) - 1
    after = read_all(again, topic, queue_id)
    assert after[:-1] == before
    assert record.decode_record(after[-1]).body == b"new"


def test_leading_fillers_are_not_messages(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(unpack("rolled_preblank", tmp_path))
    assert store.min_offset("T1", 0) == 581
    result = store.get_message("g", "T1", 0, 0, 32)
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.OFFSET_TOO_SMALL, 581)


def test_extension_addresses_pass_a_tag_filter(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(unpack("cq_ext", tmp_path))
    units = store.consume_queue_units("T1", 0, 0, 6)
    assert all(unit.tags_code <= EXT_ADDRESS_MAX for unit in units[:2])
    assert (
        store.get_message("g", "T1", 0, 0, 32, TagFilter(frozenset({names.string_hash_code("T")}))).message_count == 6
    )


@pytest.mark.parametrize("name", GOLDEN_STORES)
def test_an_apache_store_survives_our_crash(name: str, tmp_path: Path, open_store: OpenStore) -> None:
    config = unpack(name, tmp_path)
    store = open_store(config)
    expected = {(topic, q): read_all(store, topic, q) for topic in store.topics() for q in store.queue_ids(topic)}
    store.abandon()

    again = open_store(config)

    assert {(topic, q): read_all(again, topic, q) for topic, q in expected} == expected
