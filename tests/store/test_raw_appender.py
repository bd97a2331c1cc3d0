"""A copy of another store's log: whatever the pieces, it is byte for byte the same, and its queues and index follow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gantrymq.message import ids, sysflag
from store import MessageStore, MessageStoreConfig, PutMessageStatus
from store.base.errors import CopyRefused, NoRoomForCopy
from store.log.mapped_file import MappedFile
from tests.store.conftest import HOST, Clock, message, read_all, small_config
from tests.store.made_records import Making

FILE_BYTES = 65536
V6_HOST = ids.encode_host("::1", 10911)


@pytest.fixture
def master(tmp_path: Path, clock: Clock) -> Iterator[MessageStore]:
    """Three files and a bit, of several topics, with and without a place in a queue, a record of 20 KB among them."""
    store = MessageStore(small_config(tmp_path / "master"), clock=clock, monotonic=clock)
    store.load()
    store.start()
    fill(store, clock, 300)
    assert store.max_physical_offset > 3 * FILE_BYTES
    yield store
    store.close()


def fill(store: MessageStore, clock: Clock, count: int, *, seed: int = 1) -> None:
    dice = random.Random(seed)
    for number in range(count):
        clock.now += 0.01
        put = message(
            dice.randbytes(20_000 if number == 70 else dice.randrange(1500)),
            topic=f"T{number % 3}",
            queue_id=number % 2,
            tags=f"tag{number % 5}",
            keys=f"key-{number}",
            sys_flag=sysflag.TRANSACTION_PREPARED if number % 50 == 7 else 0,
        )
        if number % 11 == 0:
            put.born_host = put.store_host = V6_HOST
        assert store.put_message(put).status is PutMessageStatus.PUT_OK


class CopyAt:
    """A store that is a copy, on a folder of its own; `reopen` closes or abandons it and opens it again."""

    def __init__(self, config: MessageStoreConfig, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self.store = self._open()

    def _open(self) -> MessageStore:
        store = MessageStore(self._config, is_copy=True, clock=self._clock, monotonic=self._clock)
        store.load()
        store.start()
        return store

    def reopen(self, *, crash: bool) -> None:
        if crash:
            self.store.abandon()
        else:
            self.store.close()
        self.store = self._open()


@pytest.fixture
def copy(tmp_path: Path, clock: Clock) -> Iterator[CopyAt]:
    copied = CopyAt(small_config(tmp_path / "copy"), clock)
    yield copied
    copied.store.close()


def log_of(store: MessageStore) -> bytes:
    """All bytes of the log's files, from the first one on."""
    return b"".join(path.read_bytes() for path in sorted((store.config.root / "commitlog").iterdir()))


@pytest.fixture
def log(master: MessageStore) -> bytes:
    """All that the master has written."""
    return log_of(master)[: master.max_physical_offset]


def pieces(data: bytes, dice: random.Random, largest: int) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        size = dice.randint(1, largest)
        yield data[position : position + size]
        position += size


def assert_same(copied: MessageStore, master: MessageStore) -> None:
    end = master.max_physical_offset
    assert copied.max_physical_offset == copied.copy.end == end
    start = copied.parts.log.min_offset
    assert log_of(copied)[: end - start] == log_of(master)[start:end]
    for topic in sorted(master.topics()):
        for queue_id in master.queue_ids(topic):
            assert copied.max_offset(topic, queue_id) == master.max_offset(topic, queue_id)
            ours, theirs = read_all(copied, topic, queue_id), read_all(master, topic, queue_id)
            assert ours == theirs[len(theirs) - len(ours) :]
            assert ours or start


@pytest.mark.parametrize("largest", [90, 3000, 200_000])
def test_pieces_of_any_size_make_the_same_log_queues_and_index(
    master: MessageStore, log: bytes, copy: CopyAt, largest: int
) -> None:
    dice = random.Random(largest)
    for piece in pieces(log, dice, largest):
        copy.store.copy.append_raw(copy.store.copy.end, piece)
    assert_same(copy.store, master)
    found = copy.store.query_message("T1", "key-1", 10, 0, 1 << 60)
    assert [bytes(each) for each in found.buffers] == [
        bytes(each) for each in master.query_message("T1", "key-1", 10, 0, 1 << 60).buffers
    ]


@pytest.mark.parametrize("crash", [True, False])
def test_a_copy_that_ends_within_a_record_goes_on_after_a_restart(
    master: MessageStore, log: bytes, copy: CopyAt, crash: bool
) -> None:
    dice = random.Random(3)
    for _ in range(12):
        end = copy.store.copy.end
        for piece in pieces(log[end : end + len(log) // 10], dice, 5000):
            copy.store.copy.append_raw(copy.store.copy.end, piece)
        copy.reopen(crash=crash)
        assert copy.store.copy.end == copy.store.max_physical_offset <= end + len(log) // 10
    copy.store.copy.append_raw(copy.store.copy.end, log[copy.store.copy.end :])
    assert_same(copy.store, master)


@pytest.mark.parametrize("end", [0, 5000, FILE_BYTES, FILE_BYTES - 3])
def test_the_first_piece_of_a_run_may_be_a_byte(master: MessageStore, log: bytes, copy: CopyAt, end: int) -> None:
    if end:
        copy.store.copy.append_raw(0, log[:end])
    for crash in (False, True):
        copy.reopen(crash=crash)
        for _ in range(20):
            at = copy.store.copy.end
            copy.store.copy.append_raw(at, log[at : at + 1])
    at = copy.store.copy.end
    copy.store.copy.append_raw(at, log[at:])
    assert_same(copy.store, master)


def test_an_empty_copy_may_begin_with_a_later_file(master: MessageStore, log: bytes, copy: CopyAt) -> None:
    copy.store.copy.append_raw(2 * FILE_BYTES, log[2 * FILE_BYTES :])
    assert copy.store.parts.log.min_offset == 2 * FILE_BYTES
    assert_same(copy.store, master)
    copy.reopen(crash=True)
    assert_same(copy.store, master)


def test_nobody_reads_a_record_before_it_is_whole_and_who_waits_hears_of_it_then(
    master: MessageStore, copy: CopyAt
) -> None:
    heard: list[tuple[str, int, int, int]] = []

    def listen(topic: str, queue_id: int, first_offset: int, codes: object) -> None:
        assert copy.store.get_message("g", topic, queue_id, first_offset, 1).message_count == 1
        heard.append((topic, queue_id, first_offset, len(list(codes))))  # type: ignore[call-overload]

    copy.store.arrival_listener = listen
    first = bytes(master.message_bytes(0) or b"")
    copy.store.copy.append_raw(0, first[:-1])
    assert not heard and copy.store.max_physical_offset == 0 and copy.store.copy.end == len(first) - 1
    copy.store.copy.append_raw(len(first) - 1, first[-1:])
    assert heard == [("T0", 0, 0, 1)]


def test_a_copy_takes_no_messages(copy: CopyAt) -> None:
    assert copy.store.put_message(message()).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert "slave" in copy.store.why_refused()


@pytest.mark.parametrize("at", [-1, 1])
def test_a_gap_and_a_repetition_are_refused(log: bytes, copy: CopyAt, at: int) -> None:
    copy.store.copy.append_raw(0, log[:1000])
    with pytest.raises(CopyRefused, match="the next byte of this log"):
        copy.store.copy.append_raw(1000 + at, b"x")


def test_what_is_no_record_is_refused_and_erased(master: MessageStore, log: bytes, copy: CopyAt) -> None:
    copy.store.copy.append_raw(0, log[:5000])
    end = copy.store.max_physical_offset
    with pytest.raises(CopyRefused, match="are no record"):
        copy.store.copy.append_raw(5000, bytes(9000))
    assert copy.store.copy.end == copy.store.max_physical_offset == end
    assert not any(log_of(copy.store)[end:])
    copy.store.copy.append_raw(end, log[end : master.max_physical_offset])
    assert_same(copy.store, master)


@pytest.mark.parametrize("comes_back", [True, False])
def test_what_could_not_be_erased_is_erased_before_a_clean_stop_and_before_more(
    log: bytes, copy: CopyAt, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    write = MappedFile.write
    copy.store.copy.append_raw(0, log[:5000])
    end = copy.store.max_physical_offset

    def erase_nothing(file: MappedFile, position: int, data: memoryview) -> None:
        if not any(data):
            raise OSError("Input/output error")
        write(file, position, data)

    with monkeypatch.context() as patch:
        patch.setattr(MappedFile, "write", erase_nothing)
        with pytest.raises(NoRoomForCopy):
            copy.store.copy.append_raw(5000, b"x" * 9000)
        if not comes_back:
            copy.store.close()
            assert not copy.store.is_closed_cleanly
            return
    copy.store.copy.append_raw(end, log[end : end + 100])
    assert not any(log_of(copy.store)[end + 100 :])


def test_records_that_name_another_place_are_refused(master: MessageStore, copy: CopyAt) -> None:
    first = bytes(master.message_bytes(0) or b"")
    copy.store.copy.append_raw(0, first)
    with pytest.raises(CopyRefused, match="are no record"):
        copy.store.copy.append_raw(len(first), first)


@pytest.mark.parametrize("file_bytes", [FILE_BYTES // 2, FILE_BYTES * 2])
def test_files_of_another_size_are_refused(master: MessageStore, tmp_path: Path, clock: Clock, file_bytes: int) -> None:
    copy = CopyAt(small_config(tmp_path / "other", commit_log_file_bytes=file_bytes), clock)
    try:
        with pytest.raises(CopyRefused, match=r"mappedFileSizeCommitLog has to be the master's|are no record"):
            copy.store.copy.append_raw(0, log_of(master)[: master.max_physical_offset])
    finally:
        copy.store.close()


def test_the_joint_begins_with_the_newest_record(log: bytes, copy: CopyAt) -> None:
    assert (copy.store.copy.joint_start(), copy.store.copy.reader(0)()) == (0, b"")
    copy.store.copy.append_raw(0, log[:-1])
    start = copy.store.copy.joint_start()
    assert copy.store.message_bytes(start) is not None
    assert copy.store.copy.reader(start)() == log[start:-1]
    assert HOST in log[start:]


@pytest.mark.parametrize("topic", [b"..", b"../../outside", b"/absolute", b"a\0b", b""])
def test_no_folder_is_made_for_a_topic_that_is_no_name(copy: CopyAt, topic: bytes) -> None:
    making = Making(FILE_BYTES)
    making.add(topic=topic, properties=b"KEYS\x01key")
    making.add(topic=b"T")
    copy.store.copy.append_raw(0, bytes(making.data))
    copy.store.flush()
    folder = copy.store.config.root / "consumequeue"
    assert [path.name for path in folder.rglob("*") if path.is_dir()] == ["T", "0"]
    assert copy.store.max_physical_offset == len(making.data)


@pytest.mark.parametrize("count", [2, 7, 400])
def test_pieces_that_come_together_are_one_append(master: MessageStore, log: bytes, copy: CopyAt, count: int) -> None:
    dice = random.Random(count)
    parts = list(pieces(log, dice, 3000))
    for start in range(0, len(parts), count):
        copy.store.copy.append_raw(copy.store.copy.end, *parts[start : start + count])
    assert_same(copy.store, master)


def test_a_write_that_takes_a_part_is_gone_on_with(
    master: MessageStore, log: bytes, copy: CopyAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(5)
    at_once = MappedFile.write_together

    def some_of(file: MappedFile, start: int, run: Sequence[bytes | memoryview]) -> int:
        whole = b"".join(run)
        return at_once(file, start, [whole[: dice.randrange(len(whole) + 1)]])

    monkeypatch.setattr(MappedFile, "write_together", some_of)
    parts = list(pieces(log, dice, 3000))
    for start in range(0, len(parts), 7):
        copy.store.copy.append_raw(copy.store.copy.end, *parts[start : start + 7])
    assert_same(copy.store, master)


def test_what_came_before_a_full_disk_counts(
    master: MessageStore, log: bytes, copy: CopyAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_room_to = copy.store.parts.log.make_room_to
    with monkeypatch.context() as patch:
        patch.setattr(copy.store.parts.log, "make_room_to", lambda end: end <= 5000 and make_room_to(end))
        with pytest.raises(NoRoomForCopy):
            copy.store.copy.append_raw(0, log[:4000], log[4000:8000], log[8000:])
    end = copy.store.copy.end
    assert 0 < end == copy.store.max_physical_offset <= 4000
    copy.store.copy.append_raw(end, log[end:])
    assert_same(copy.store, master)


def test_a_bad_record_in_the_middle_leaves_what_was_good(master: MessageStore, log: bytes, copy: CopyAt) -> None:
    size = len(bytes(master.message_bytes(0) or b""))
    with pytest.raises(CopyRefused, match="are no record"):
        copy.store.copy.append_raw(0, log[:size], bytes(100), bytes(30_000))
    assert copy.store.copy.end == copy.store.max_physical_offset == size
    assert not any(log_of(copy.store)[size:])


def test_a_write_that_fails_half_way_leaves_nothing_behind_the_end(
    master: MessageStore, log: bytes, copy: CopyAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.store.copy.append_raw(0, log[:1000])
    write, fails = MappedFile.write, iter([True])

    def half(file: MappedFile, start: int, data: memoryview) -> None:
        if next(fails, False):
            write(file, start, data[: len(data) // 2])
            raise OSError(5, "Input/output error")
        write(file, start, data)

    monkeypatch.setattr(MappedFile, "write", half)
    with pytest.raises(NoRoomForCopy, match="Input/output error"):
        copy.store.copy.append_raw(1000, log[1000:20_000])
    end = copy.store.copy.end
    assert end == copy.store.max_physical_offset
    assert not any(log_of(copy.store)[end:])
    copy.store.copy.append_raw(end, log[end:])
    assert_same(copy.store, master)


def test_a_copy_that_cannot_erase_its_last_part_stops_as_after_a_crash(
    master: MessageStore, log: bytes, copy: CopyAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = copy.store
    stopped.copy.append_raw(0, log[:1000])

    def fail(file: MappedFile, start: int, data: memoryview) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(MappedFile, "write", fail)
        stopped.close()
    assert not stopped.is_closed_cleanly
    copy.reopen(crash=False)
    copy.store.copy.append_raw(copy.store.copy.end, log[copy.store.copy.end :])
    assert_same(copy.store, master)


def test_a_copy_whose_disk_did_not_take_it_takes_no_more(copy: CopyAt) -> None:
    copy.store.health.sync_failed(OSError(5, "Input/output error"))
    with pytest.raises(NoRoomForCopy, match="did not take"):
        copy.store.copy.append_raw(0, b"x")


def test_a_copy_that_stopped_before_its_first_whole_record_starts_again(copy: CopyAt, log: bytes) -> None:
    base = 2 * FILE_BYTES
    for _ in range(3):
        if not copy.store.copy.end:
            copy.store.copy.append_raw(base, log[base : base + 50])
        copy.reopen(crash=False)
