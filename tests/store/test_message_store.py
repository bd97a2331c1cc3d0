"""Put and get through the front door."""

from __future__ import annotations

import dataclasses

import pytest

from gantrymq.errors import RecordError
from gantrymq.message import ids, record
from gantrymq.message import properties as names
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import (
    GetMessageStatus,
    MessageStore,
    MessageStoreConfig,
    PutMessageStatus,
    StoreBatch,
    StoreNotRunning,
    TagFilter,
)
from tests.store.conftest import HOST, Clock, OpenStore, message, read_all

OK = PutMessageStatus.PUT_OK


def batch(messages: list[Message], properties: bytes = b"", **changes: object) -> StoreBatch:
    made = StoreBatch("T", 0, encode_batch(messages), properties, 0, 0, 1, HOST, HOST)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def store(small: MessageStoreConfig, open_store: OpenStore) -> MessageStore:
    return open_store(small)


def test_a_message_comes_back_as_it_went_in(store: MessageStore, clock: Clock) -> None:
    put = store.put_message(message(b"body", tags="A", keys="k"))
    assert (put.status, put.queue_offset, put.physical_offset) == (OK, 0, 0)
    (raw,) = read_all(store, "T")
    stored = record.decode_record(raw)
    assert len(raw) == put.size_bytes
    assert (stored.body, stored.tags, stored.keys, stored.queue_offset) == (b"body", "A", ["k"], 0)
    assert stored.store_timestamp == put.store_timestamp == int(clock.now * 1000)
    assert store.look_message_by_offset(0) == stored
    assert store.look_message_by_offset(1) is None


def test_each_queue_counts_by_itself(store: MessageStore) -> None:
    for queue_id in (0, 1, 0):
        store.put_message(message(queue_id=queue_id))
    assert (store.max_offset("T", 0), store.max_offset("T", 1), store.max_offset("T", 2)) == (2, 1, 0)
    assert store.queue_ids("T") == [0, 1]
    assert store.topics() == {"T"}


def test_files_roll_and_nothing_is_lost(store: MessageStore) -> None:
    bodies = [b"%d" % number + bytes(1000) for number in range(300)]
    for body in bodies:
        assert store.put_message(message(body)).status is OK
    assert [record.decode_record(raw).body for raw in read_all(store, "T")] == bodies
    assert store.max_physical_offset > 5 * 65536


@pytest.mark.parametrize("spare", [7, 8, 9])
def test_eight_bytes_always_remain_for_the_blank_record(store: MessageStore, spare: int) -> None:
    fixed = store.put_message(message(b"")).size_bytes
    store.put_message(message(bytes(65536 - 2 * fixed - spare)))
    store.put_message(message(b"next"))
    assert [record.decode_record(raw).body for raw in read_all(store, "T")][-1] == b"next"


def test_a_batch_becomes_ordinary_records(store: MessageStore) -> None:
    store.put_message(message())
    put = store.put_batch(batch([Message("T", b"1", tags="A"), Message("T", b"2", flag=9)], b"CLUSTER\x01c"))
    stored = [record.decode_record(raw) for raw in read_all(store, "T")][1:]
    assert (put.status, put.message_count, put.queue_offset) == (OK, 2, 1)
    assert list(put.offsets) == [each.physical_offset for each in stored]
    assert [(each.body, each.flag, each.queue_offset) for each in stored] == [(b"1", 0, 1), (b"2", 9, 2)]
    assert stored[0].properties == {"TAGS": "A", "CLUSTER": "c"}
    assert stored[1].properties == {"CLUSTER": "c"}


def test_a_batch_stays_in_one_file(store: MessageStore) -> None:
    store.put_message(message(bytes(60000)))
    put = store.put_batch(batch([Message("T", bytes(3000)) for _ in range(4)]))
    assert put.physical_offset == 65536
    assert len(read_all(store, "T")) == 5


@pytest.mark.parametrize(
    "refused",
    [
        batch([Message("T", b"")], b"DELAY\x011"),
        batch([Message("T", b"")], b"TIMER_DELAY_SEC\x015"),
        batch([Message("T", b"")], sys_flag=4),
        batch([]),
        batch([Message("T", bytes(20000)) for _ in range(4)]),
    ],
)
def test_batches_know_no_delay_no_transaction_and_have_to_fit(store: MessageStore, refused: StoreBatch) -> None:
    assert store.put_batch(refused).status is PutMessageStatus.MESSAGE_ILLEGAL


@pytest.mark.parametrize("cut", [3, 21, -1])
def test_a_torn_batch_stores_nothing(store: MessageStore, cut: int) -> None:
    whole = batch([Message("T", b"1", tags="A")])
    with pytest.raises(RecordError):
        store.put_batch(dataclasses.replace(whole, body=whole.body[:cut]))
    assert store.max_physical_offset == 0


def test_ipv6_hosts_are_stored_with_their_flags(store: MessageStore) -> None:
    v6 = ids.encode_host("2001:db8::1", 1)
    store.put_message(dataclasses.replace(message(), born_host=v6))
    store.put_batch(dataclasses.replace(batch([Message("T", b"b")]), store_host=v6))
    first, second = [record.decode_record(raw) for raw in read_all(store, "T")]
    assert (first.born_host, first.sys_flag) == (("2001:db8::1", 1), 0x10)
    assert (second.store_host, second.sys_flag) == (("2001:db8::1", 1), 0x20)
    assert store.store_timestamp("T", 0, 0) == first.store_timestamp


def test_a_delayed_message_waits_under_the_schedule_topic(store: MessageStore) -> None:
    store.put_message(message(b"later", queue_id=3, tags="A", properties="DELAY\x012"))
    store.put_message(message(b"latest", properties="DELAY\x0199"))
    (raw,) = read_all(store, "SCHEDULE_TOPIC_XXXX", 1)
    stored = record.decode_record(raw)
    assert stored.properties == {"TAGS": "A", "REAL_TOPIC": "T", "REAL_QID": "3", "DELAY": "2"}
    (unit,) = store.consume_queue_units("SCHEDULE_TOPIC_XXXX", 1, 0, 1)
    assert unit.tags_code == stored.store_timestamp + 5000
    (last,) = read_all(store, "SCHEDULE_TOPIC_XXXX", 17)
    assert record.decode_record(last).properties["DELAY"] == "18"


def test_a_delivered_message_is_not_delayed_again(store: MessageStore) -> None:
    store.put_message(message(properties="DELAY\x012"), delay=False)
    assert len(read_all(store, "T")) == 1
    assert store.topics() == {"T"}


def test_prepared_messages_have_no_place_in_a_queue(store: MessageStore) -> None:
    store.put_message(message(keys="k", sys_flag=4))
    store.put_message(message(sys_flag=8))
    assert store.max_offset("T", 0) == 1
    assert len(store.query_message("T", "k", 32, 0, 1 << 62).buffers) == 1


def test_the_listener_hears_once_of_each_put(store: MessageStore) -> None:
    heard: list[tuple[object, ...]] = []
    store.arrival_listener = lambda topic, queue_id, first, codes: heard.append((topic, queue_id, first, list(codes)))
    store.put_message(message(tags="TagA"))
    store.put_batch(batch([Message("T", b"1"), Message("T", b"2", tags="TagA")]))
    assert heard == [("T", 0, 0, [2598919]), ("T", 0, 1, [0, 2598919])]


def test_a_tag_filter_passes_over_the_rest(store: MessageStore) -> None:
    for number in range(10):
        store.put_message(message(b"%d" % number, tags="A" if number % 3 == 0 else "B"))
    wanted = TagFilter(frozenset({names.string_hash_code("A")}))
    result = store.get_message("g", "T", 0, 1, 32, wanted)
    assert (result.status, result.message_count, result.next_begin_offset) == (GetMessageStatus.FOUND, 3, 10)
    none = store.get_message("g", "T", 0, 0, 32, TagFilter(frozenset({1})))
    assert (none.status, none.next_begin_offset) == (GetMessageStatus.NO_MATCHED_MESSAGE, 10)


def test_an_unknown_queue_is_empty_and_stays_unknown(store: MessageStore) -> None:
    result = store.get_message("g", "Nobody", 0, 3, 32)
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0)
    assert (store.min_offset("Nobody", 0), store.max_offset("Nobody", 0)) == (0, 0)
    assert store.topics() == set()


def test_adjacent_records_share_one_view(store: MessageStore) -> None:
    for queue_id in (0, 0, 1, 0):
        store.put_message(message(queue_id=queue_id))
    assert [len(view) for view in store.get_message("g", "T", 0, 0, 2).buffers] == [194]
    assert sum(len(view) for view in store.get_message("g", "T", 0, 0, 32).buffers) == 3 * 97


def test_messages_are_found_by_key_and_unique_key(store: MessageStore, clock: Clock) -> None:
    for number in range(500):  # more than one index file
        clock.now += 1
        store.put_message(message(b"%d" % number, keys=f"k{number} all", properties=f"UNIQ_KEY\x01{number:032X}"))
    found = store.query_message("T", "k7", 32, 0, 1 << 62).buffers
    assert b"7" in [record.decode_record(raw).body for raw in found]
    found = store.query_message("T", f"{499:032X}", 32, 0, 1 << 62).buffers
    assert b"499" in [record.decode_record(raw).body for raw in found]
    assert len(store.query_message("T", "all", 1000, 0, 1 << 62).buffers) == 64
    assert store.query_message("Other", "k7", 32, 0, 1 << 62).buffers == []
    result = store.query_message("T", "k400", 32, int((clock.now - 10) * 1000), 1 << 62)
    assert (result.buffers, result.index_last_update_timestamp) == ([], 0)
    result = store.query_message("T", "k499", 32, 0, 1 << 62)
    assert result.index_last_update_timestamp == int(clock.now * 1000)


def test_a_key_that_is_not_ascii_is_found(store: MessageStore) -> None:
    store.put_message(message(keys="schlüssel", properties="UNIQ_KEY\x01" + "ö" * 20))
    assert len(store.query_message("T", "schlüssel", 32, 0, 1 << 62).buffers) == 1
    assert len(store.query_message("T", "ö" * 20, 32, 0, 1 << 62).buffers) == 1


def test_a_deleted_topic_begins_anew(store: MessageStore, small: MessageStoreConfig, open_store: OpenStore) -> None:
    for _ in range(3):
        store.put_message(message(b"old"))
    store.delete_topic("T")
    assert store.topics() == set()
    assert store.put_message(message(b"new")).queue_offset == 0
    assert [record.decode_record(raw).body for raw in read_all(store, "T")] == [b"new"]
    store.close()
    again = open_store(small)
    assert [record.decode_record(raw).body for raw in read_all(again, "T")] == [b"new"]


def test_a_store_that_is_not_open_refuses(store: MessageStore) -> None:
    store.close()
    assert store.put_message(message()).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert store.put_batch(batch([Message("T", b"")])).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    with pytest.raises(StoreNotRunning):
        store.get_message("g", "T", 0, 0, 1)


def test_a_full_disk_is_a_refusal_and_writing_resumes(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from store.base import file_bytes

    store.put_message(message(bytes(60000)))
    store.parts.log._allocator.close()
    if store.parts.log._next is not None:
        store.parts.log._next.delete()
        store.parts.log._next = None

    def no_space(fd: int, start: int, end: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_bytes, "allocate_range", no_space)
    assert store.put_message(message(bytes(60000))).status is PutMessageStatus.CREATE_MAPED_FILE_FAILED
    monkeypatch.undo()
    assert store.put_message(message(b"again")).status is OK
    assert len(read_all(store, "T")) == 2


def test_offsets_by_time_among_lost_messages(store: MessageStore, clock: Clock) -> None:
    start = int(clock.now * 1000)
    for number in range(8):
        clock.now = (start + number // 2 * 100) / 1000  # two at a time
        store.put_message(message())
    for _ in range(100):
        store.put_message(message(bytes(1000)))
    store.parts.log.queue.files.pop(0).delete()
    store.parts.queues.queue("T", 0).correct_min(store.min_physical_offset)
    assert store.offset_by_time("T", 0, start) == store.min_offset("T", 0) > 8
    assert store.earliest_store_timestamp() == store.earliest_store_timestamp("T", 0) == start + 300
    assert store.earliest_store_timestamp("Nobody", 0) == -1


@pytest.mark.parametrize("topic", ["T", "Topic-of-some-length"])
@pytest.mark.parametrize("last", ["01", "Zz", "é1", "1é", "日本"])
@pytest.mark.parametrize("stem", ["", "short", "7F0000010000000000AABBCC0000", "Ünïcode0000000000AABBCC000000"])
def test_keys_are_found_by_javas_hash_whatever_was_hashed_before(
    store: MessageStore, topic: str, stem: str, last: str
) -> None:
    keys = [stem + end for end in ("00", "01", last, "02", last)]
    for key in keys:
        store.put_message(message(topic=topic, properties=f"UNIQ_KEY\x01{key}"))
    for key in keys:
        found = [record.decode_record(raw) for raw in store.query_message(topic, key, 9, 0, 1 << 62).buffers]
        assert [each.properties["UNIQ_KEY"] for each in found] == [each for each in keys if each == key]
        wanted = abs(names.string_hash_code(f"{topic}#{key}"))
        offsets: list[int] = []
        assert not list(store.parts.index.files[-1].search(wanted, offsets, 9, 0, 1 << 62))
        assert offsets
