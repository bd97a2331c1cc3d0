"""How much one read looks at and brings, to the byte and to the unit: RocketMQ's limits, boundaries included."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gantrymq.message import ids, record
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.message.properties import string_hash_code
from gantrymq.remoting.protocol import FRAME_BYTES_MAX
from store import GetMessageStatus, MessageStore, PutMessageStatus, StoreBatch, TagFilter, reader
from tests.store.conftest import HOST, Clock, OpenStore, message, small_config

OK, ILLEGAL = PutMessageStatus.PUT_OK, PutMessageStatus.MESSAGE_ILLEGAL
TAG_A = TagFilter(frozenset({string_hash_code("A")}))
ANYTHING = None


def filled(open_store: OpenStore, root: Path, count: int = 40, **settings: int) -> tuple[MessageStore, int]:
    """Return the store and the size of each of its records."""
    store = open_store(small_config(root, **settings))
    size = 0
    for _ in range(count):
        size = store.put_message(message(bytes(100), tags="A")).size_bytes
    return store, size


def change_limits(store: MessageStore, **limits: int) -> None:
    store.limits = store.limits._replace(**limits)


@pytest.fixture(params=[ANYTHING, TAG_A], ids=["all", "tag"])
def wanted(request: pytest.FixtureRequest) -> TagFilter | None:
    """The quick way through recent units, and the way unit by unit."""
    found: TagFilter | None = request.param
    return found


@pytest.mark.parametrize("asked", [0, -1, 1])
def test_who_asks_for_none_gets_one(
    tmp_path: Path, open_store: OpenStore, wanted: TagFilter | None, asked: int
) -> None:
    store, _size = filled(open_store, tmp_path)
    result = store.get_message("g", "T", 0, 3, asked, wanted)
    assert (result.message_count, result.next_begin_offset) == (1, 4)


@pytest.mark.parametrize(("spare", "count"), [(-1, 2), (0, 3), (1, 3)])
@pytest.mark.parametrize("cold", [False, True])
def test_bytes_may_reach_the_limit(
    tmp_path: Path, open_store: OpenStore, wanted: TagFilter | None, cold: bool, spare: int, count: int
) -> None:
    store, size = filled(open_store, tmp_path)
    limit = {"disk_bytes_max" if cold else "memory_bytes_max": 3 * size + spare}
    change_limits(store, hot_bytes=0 if cold else 1 << 40, **limit)
    result = store.get_message("g", "T", 0, 5, 32, wanted)
    assert (result.message_count, result.next_begin_offset) == (count, 5 + count)
    assert result.size_bytes == sum(map(len, result.buffers)) == count * size


def test_the_first_message_comes_however_large_it_is(
    tmp_path: Path, open_store: OpenStore, wanted: TagFilter | None
) -> None:
    store, _size = filled(open_store, tmp_path, transfer_bytes_in_memory_max=10, transfer_bytes_in_disk_max=10)
    assert store.get_message("g", "T", 0, 0, 32, wanted).message_count == 1


@pytest.mark.parametrize(("cold", "count"), [(False, 7), (True, 4)])
def test_messages_may_reach_the_limit(
    tmp_path: Path, open_store: OpenStore, wanted: TagFilter | None, cold: bool, count: int
) -> None:
    store, _size = filled(open_store, tmp_path, transfer_count_in_memory_max=7, transfer_count_in_disk_max=4)
    change_limits(store, hot_bytes=0 if cold else 1 << 40)
    result = store.get_message("g", "T", 0, 0, 32, wanted)
    assert (result.message_count, result.next_begin_offset) == (count, count)


@pytest.mark.parametrize(("asked", "seen"), [(32, 800), (800, 800), (850, 850), (5000, 900)])
def test_a_filter_looks_at_so_many_units(tmp_path: Path, open_store: OpenStore, asked: int, seen: int) -> None:
    store, _size = filled(open_store, tmp_path, 900)
    result = store.get_message("g", "T", 0, 0, asked, TagFilter(frozenset({1})))
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.NO_MATCHED_MESSAGE, seen)


def test_what_lies_as_far_back_as_memory_reaches_is_hot(
    tmp_path: Path, open_store: OpenStore, wanted: TagFilter | None
) -> None:
    """Each record by itself decides which limits count."""
    store, size = filled(open_store, tmp_path, transfer_count_in_disk_max=1)
    change_limits(store, hot_bytes=10 * size)
    assert store.get_message("g", "T", 0, 30, 32, wanted).message_count == 10
    assert store.get_message("g", "T", 0, 29, 32, wanted).message_count == 11, "the first goes in any case"
    assert store.get_message("g", "T", 0, 28, 32, wanted).message_count == 1


def test_an_offset_below_the_first_kept_leads_to_it(tmp_path: Path, open_store: OpenStore) -> None:
    store, _size = filled(open_store, tmp_path)
    store.raise_min_offset("T", 0, 12)
    result = store.get_message("g", "T", 0, 11, 32)
    expected = (GetMessageStatus.OFFSET_TOO_SMALL, 12, 12, 40)
    assert (result.status, result.next_begin_offset, result.min_offset, result.max_offset) == expected


@pytest.mark.parametrize(
    ("tags", "status"),
    [("A", GetMessageStatus.MESSAGE_WAS_REMOVING), ("B", GetMessageStatus.NO_MATCHED_MESSAGE)],
)
def test_the_last_reason_for_nothing_is_told(store: MessageStore, tags: str, status: GetMessageStatus) -> None:
    """First messages of a file that is just deleted, then one of the file that follows."""
    for number in range(4):
        store.put_message(message(bytes(30_000), tags="A" if number < 2 else tags))
    for file in store.parts.log.queue.files[:1] if tags == "B" else list(store.parts.log.queue.files):
        store.parts.log.queue.files.remove(file)
    result = store.get_message("g", "T", 0, 0, 32, TAG_A)
    assert (result.status, result.next_begin_offset) == (status, 4)


def test_messages_of_a_key_come_oldest_first(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, query_messages_max=3))
    offsets = [store.put_message(message(b"%d" % number, keys="k")).physical_offset for number in range(5)]
    for asked, expected in ((2, offsets[-2:]), (64, offsets[-3:])):
        found = [record.decode_record(raw) for raw in store.query_message("T", "k", asked, 0, 1 << 62).buffers]
        assert [each.physical_offset for each in found] == expected


def test_an_answer_by_key_fits_into_a_clients_frame(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest that fit, and the newest in any case: else its client has nothing but a broken connection."""
    assert FRAME_BYTES_MAX - reader.QUERY_BYTES_MAX >= 1 << 20
    monkeypatch.setattr(reader, "QUERY_BYTES_MAX", 3000)
    store = open_store(small_config(tmp_path))
    for size, expected in ((1300, [0]), (1300, [0, 1]), (1300, [1, 2]), (5000, [3]), (10, [4])):
        store.put_message(message(bytes(size), keys="k"))
        found = [record.decode_record(raw) for raw in store.query_message("T", "k", 64, 0, 1 << 62).buffers]
        assert [each.queue_offset for each in found] == expected


def test_a_time_between_two_messages_finds_the_nearer_and_the_earlier_of_two_as_near(
    store: MessageStore, clock: Clock
) -> None:
    start_ms = int(clock.now * 1000)
    for _ in range(4):
        for _ in range(2):  # two in each millisecond
            store.put_message(message(bytes(10)))
        clock.now += 10
    asked = {-1: 0, 0: 0, 4999: 1, 5000: 1, 5001: 2, 10_000: 2, 30_000: 6, 30_001: 7, 99_000: 7}
    assert {at: store.offset_by_time("T", 0, start_ms + at) for at in asked} == asked
    assert store.offset_by_time("T", 1, start_ms) == 0
    assert store.store_timestamp("T", 0, 8) == -1


def test_times_are_read_beside_hosts_of_any_length(store: MessageStore, clock: Clock) -> None:
    v6 = ids.encode_host("2001:db8::1", 10911)
    made = [message(), dataclasses.replace(message(), born_host=v6, store_host=v6), message()]
    times = []
    for each in made:
        clock.now += 7
        times.append(store.put_message(each).store_timestamp)
    assert [store.store_timestamp("T", 0, number) for number in range(3)] == times
    assert [store.offset_by_time("T", 0, at) for at in times] == [0, 1, 2]
    assert store.earliest_store_timestamp() == store.earliest_store_timestamp("T", 0) == times[0]
    assert store.earliest_store_timestamp("T", 7) == -1


@pytest.mark.parametrize("over", [0, 1])
def test_a_body_may_reach_the_limit(tmp_path: Path, open_store: OpenStore, over: int) -> None:
    store = open_store(small_config(tmp_path, message_bytes_max=300))
    expected = ILLEGAL if over else OK
    assert store.put_message(message(bytes(300 + over))).status is expected
    one = encode_batch([Message("T", b"")])
    body = encode_batch([Message("T", bytes(300 - len(one) + over))])
    assert len(body) == 300 + over
    assert store.put_batch(StoreBatch("T", 0, body, b"", 0, 0, 1, HOST, HOST)).status is expected


@pytest.mark.parametrize("over", [0, 1])
def test_properties_may_reach_the_limit(store: MessageStore, over: int) -> None:
    text = "A\x01" + "x" * (32767 - 2 + over)
    expected = PutMessageStatus.PROPERTIES_SIZE_EXCEEDED if over else OK
    assert store.put_message(message(properties=text)).status is expected


def test_a_get_that_took_long_is_told(tmp_path: Path, open_store: OpenStore, clock: Clock) -> None:
    store, _size = filled(open_store, tmp_path)
    looked = store.read_queue

    def slowly(*question: object) -> object:
        clock.now += 0.25
        return looked(*question)  # type: ignore[arg-type]

    store.read_queue = slowly  # type: ignore[assignment,method-assign]
    store.get_message("g", "T", 0, 0, 32)
    assert store.stats.runtime_info()["getMessageEntireTimeMax"] == "250"


def test_counters_count_messages(tmp_path: Path, open_store: OpenStore) -> None:
    store, size = filled(open_store, tmp_path, 3)
    body = encode_batch([Message("T", b"1"), Message("T", b"2")])
    put = store.put_batch(StoreBatch("T", 0, body, b"", 0, 0, 1, HOST, HOST))
    assert (store.stats.put_times, store.stats.put_bytes) == (5, 3 * size + put.size_bytes)
    store.get_message("g", "T", 0, 1, 32)
    store.get_message("g", "T", 0, 5, 32)
    assert (store.stats.get_found_times, store.stats.get_miss_times, store.stats.get_transferred) == (1, 1, 4)


@pytest.mark.parametrize("is_opened_anew", [False, True], ids=["same run", "next run"])
@pytest.mark.parametrize("more_bytes", [0, 1, -1], ids=["at a record's end", "a byte more", "a byte less"])
def test_what_is_not_shown_yet_is_not_passed_over(
    tmp_path: Path, open_store: OpenStore, wanted: TagFilter | None, is_opened_anew: bool, more_bytes: int
) -> None:
    """A reader that asks at each answer's next offset gets all of it, once more of it is shown."""
    store, size = filled(open_store, tmp_path)
    if is_opened_anew:
        store.close()
        store = open_store(small_config(tmp_path))
    store.show_below(10 * size + more_bytes)
    shown = 9 if more_bytes < 0 else 10
    result = store.get_message("g", "T", 0, 4, 32, wanted)
    assert (result.message_count, result.next_begin_offset) == (shown - 4, shown)
    result = store.get_message("g", "T", 0, shown, 32, wanted)
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.OFFSET_OVERFLOW_ONE, shown)
    assert store.shown_max_offset("T", 0) == shown
    store.show_below(store.max_physical_offset)
    assert store.get_message("g", "T", 0, shown, 32, wanted).next_begin_offset == min(shown + 32, 40)
