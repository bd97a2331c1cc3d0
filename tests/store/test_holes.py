"""The holes of RocketMQ's own store, each with what RocketMQ does there and what this store does.

What RocketMQ does was seen in a running 4.9; the docstrings tell it. Its way of reading a log, by sizes and magic only,
is that of `commit_log_records`: where this finds more than our store does, it shows what RocketMQ would bring back.
More about the same holes: test_recovery (damaged tails, what was cut, zeroed queue, stray files, the index after a
crash) and test_message_store (batches and records that no file can hold).
"""

from __future__ import annotations

import logging
import shutil
import struct

import pytest

from gantrymq.message import record
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import MessageStoreConfig, PutMessageStatus, StoreBatch
from tests.store.conftest import (
    HOST,
    Clock,
    OpenStore,
    bodies,
    log_path,
    message,
    overwrite,
    put_numbered,
    small_config,
)
from tests.store.golden import commit_log_records, queue_units

OK = PutMessageStatus.PUT_OK
LOG_FILE_BYTES = 65536
CRC_AT = 8  # in a record
FOREVER = 1 << 62


def events(caplog: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    return [entry for entry in caplog.records if getattr(entry, "event", "") == event]


# -- stale tails that come back after truncation ----------------------------------------------------------------------


def test_behind_a_cut_there_is_nothing_left_to_come_back(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """RocketMQ only moves its pointers back: what stood behind a damaged record stays in log and queue files.

    A record of the same length, stored in the damaged one's place, joins the old ones up again: 399 messages are back
    that were gone for everybody in between. See also test_what_was_cut_does_not_come_back.
    """
    store = open_store(small)
    offsets = put_numbered(store, 500)
    store.abandon()
    whole = log_path(small, offsets[100]).read_bytes()
    overwrite(small, offsets[100] + 100, b"\xff")
    assert len(list(commit_log_records(small.root))) == 500  # sizes and magic are in order: they would join up

    again = open_store(small)

    assert again.max_physical_offset == offsets[100] and len(bodies(again)) == 100
    again.close()
    data = log_path(small, offsets[100]).read_bytes()
    assert data[: offsets[100]] == whole[: offsets[100]]
    assert not data[offsets[100] :].strip(b"\0")
    assert [path.name for path in small.commit_log_folders[0].iterdir()] == [f"{0:020d}"]
    assert sorted(queue_units(small.root, "T", 0)) == list(range(100))
    assert len(list(commit_log_records(small.root))) == 100


def test_units_rocketmq_left_behind_a_cut_are_dropped(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """After a cut RocketMQ keeps the old units in its queue files. When a longer record follows, they point into the
    middle of it, and the queue's indexes jump past them.

    Here such a folder is taken over: the log has 11 messages, the queue 20 units.
    """
    store = open_store(small)
    offsets = put_numbered(store, 20)
    store.close()
    path = small.root / "consumequeue" / "T" / "0" / f"{0:020d}"
    stale_units = path.read_bytes()[11 * 20 : 20 * 20]
    overwrite(small, offsets[10], bytes(LOG_FILE_BYTES - offsets[10]))
    path.write_bytes(path.read_bytes()[: 10 * 20].ljust(2000, b"\0"))
    second = open_store(small)
    put_numbered(second, 1, size=3000, start=900)
    second.close()
    path.write_bytes((path.read_bytes()[: 11 * 20] + stale_units).ljust(2000, b"\0"))
    assert all(offset < second.max_physical_offset for offset in offsets[11:])  # RocketMQ: below the end, so valid

    again = open_store(small)

    assert again.max_offset("T", 0) == 11
    assert [body[:6] for body in bodies(again)] == [b"%06d" % number for number in (*range(10), 900)]
    assert again.put_message(message(b"next")).queue_offset == 11


def test_what_rocketmq_has_joined_up_already_is_read_as_it_is(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """No reader can tell: once a new record of the same length stands before them, old ones are in place and whole.

    A folder that RocketMQ left in this state, after its clean stop, has them for us as for RocketMQ: nothing is lost,
    nothing is out of step. Only a store that cut by itself can have erased them (the tests above).
    """
    store = open_store(small)
    offsets = put_numbered(store, 20)
    expected = bodies(store)
    raw = bytes(store.message_bytes(offsets[10]) or b"").replace(b"000010", b"000900")
    store.close()
    crc = struct.pack(">i", record.body_crc(b"000900" + bytes(100)))
    overwrite(small, offsets[10], raw[:CRC_AT] + crc + raw[CRC_AT + 4 :])
    again = open_store(small)
    assert bodies(again) == [*expected[:10], b"000900" + bytes(100), *expected[11:]]


# -- records whose embedded offset is not their position --------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
def test_a_file_that_belongs_elsewhere_is_not_part_of_the_log(
    small: MessageStoreConfig, open_store: OpenStore, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """RocketMQ never compares a record's embedded offset with its place, and dispatches by the embedded one.

    A copy of the first file under the next one's name (a restore gone wrong, a recycled disk) gives its queues the
    first file's messages a second time. See also test_a_damaged_tail_is_cut_where_it_begins[stale position].
    """
    store = open_store(small)
    put_numbered(store, 250)
    fits = len(list(commit_log_records(small.root)))
    size = store.max_physical_offset // 250
    put_numbered(store, (LOG_FILE_BYTES - store.max_physical_offset - 8) // size, start=250)
    store.put_message(message(bytes(60000)))
    expected = bodies(store)[:-1]
    store.close() if clean else store.abandon()
    shutil.copy(log_path(small), log_path(small, LOG_FILE_BYTES))
    assert len(list(commit_log_records(small.root))) == 2 * len(expected) > 2 * fits  # RocketMQ would take them all

    again = open_store(small)

    assert again.max_physical_offset <= LOG_FILE_BYTES
    assert bodies(again) == expected
    assert again.put_message(message(b"next")).queue_offset == len(expected)
    assert events(caplog, "commit_log_cut")[0].__dict__["path"] == str(log_path(small, LOG_FILE_BYTES))


@pytest.mark.parametrize("damage", ["first record of the middle file", "zeroed page", "middle of the first file"])
def test_a_cut_that_costs_whole_files_is_an_error_with_its_place(
    small: MessageStoreConfig, open_store: OpenStore, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """RocketMQ cuts at a damaged record and deletes the files behind it, as it does with the torn end of every crash.

    So do we, but this is no torn end: it is an error, with its place and what it costs.
    """
    store = open_store(small)
    offsets = put_numbered(store, 300, size=900)
    store.abandon()
    in_second_file = next(offset for offset in offsets if offset >= LOG_FILE_BYTES)
    at = offsets[20] if damage.startswith("middle") else in_second_file
    overwrite(small, at, bytes(4096) if damage == "zeroed page" else b"\0\0\0\x01")

    again = open_store(small)

    assert again.max_physical_offset in (at, at - at % LOG_FILE_BYTES)
    (entry,) = events(caplog, "commit_log_cut")
    assert entry.levelno == logging.ERROR
    assert entry.__dict__["physical_offset"] == at
    assert entry.__dict__["files_with_records_behind"] >= 3
    assert len(bodies(again)) == offsets.index(at)


def test_a_wrong_offset_names_no_message(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """RocketMQ reads four bytes at whatever offset a client names and takes them for a record's size.

    A body can hold what looks like a record: it is none, since it says another place.
    """
    store = open_store(small)
    inner = store.put_message(message(b"inner"))
    raw = bytes(store.message_bytes(inner.physical_offset) or b"")
    outer = store.put_message(message(raw))
    inside = outer.physical_offset + 88
    assert record.decode_record(raw).body == b"inner"
    assert store.message_bytes(inside) is None
    assert store.look_message_by_offset(inside) is None


# -- a bogus first unit from a zeroed consume queue -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zeroed", "clean"),
    [
        ("only file", True),
        ("only file", False),
        ("first file", True),
        ("first file", False),
        ("later file", True),
        ("later file", False),
        ("all but one unit", False),
        ("last unit", False),
        ("last units", False),  # after a clean stop all were on disk: zeros behind the last are how a queue ends
    ],
)
def test_a_zeroed_queue_file_is_filled_again(
    small: MessageStoreConfig, open_store: OpenStore, clean: bool, zeroed: str
) -> None:
    """RocketMQ looks at a queue's first unit without its size: zeros are taken for the message at offset 0, and every
    index of the queue is one too high from then on. With other queues in order, it would not even look at the log.

    Here queue 0 loses units while queue 1, which was written later, is whole.
    """
    kept = {"only file": 0, "all but one unit": 1, "last units": 10, "last unit": 59}
    count = 60 if zeroed in kept else 260
    store = open_store(small)
    put_numbered(store, count)
    put_numbered(store, 10, queue_id=1, start=5000)
    expected = bodies(store)
    store.close()
    files = sorted((small.root / "consumequeue" / "T" / "0").iterdir())
    path = files[-1] if zeroed == "later file" else files[0]
    data = path.read_bytes()
    path.write_bytes(data[: kept.get(zeroed, 0) * 20].ljust(2000, b"\0"))
    if not clean:
        (small.root / "abort").touch()

    again = open_store(small)

    assert again.max_offset("T", 0) == count
    assert bodies(again) == expected
    assert len(bodies(again, queue_id=1)) == 10
    assert again.put_message(message(b"next")).queue_offset == count
    again.close()
    assert sorted(queue_units(small.root, "T", 0)) == list(range(count + 1))


def test_filling_a_queue_again_does_not_bring_back_a_deleted_topic(
    small: MessageStoreConfig, open_store: OpenStore
) -> None:
    store = open_store(small)
    store.put_message(message(topic="Gone"))
    put_numbered(store, 5)
    put_numbered(store, 5, queue_id=1)
    store.delete_topic("Gone")
    store.close()
    (small.root / "consumequeue" / "T" / "0" / f"{0:020d}").write_bytes(bytes(2000))
    again = open_store(small)
    assert len(bodies(again)) == 5
    assert again.topics() == {"T"}


def test_a_zeroed_queue_whose_first_messages_expired_keeps_its_indexes(
    small: MessageStoreConfig, open_store: OpenStore
) -> None:
    """RocketMQ counts from 1 here: the bogus unit, then the messages that are left."""
    store = open_store(small)
    offsets = put_numbered(store, 300, size=900)
    expected = bodies(store)
    store.checkpoint.keep_from(LOG_FILE_BYTES)
    store.close()
    log_path(small).unlink()
    for path in (small.root / "consumequeue" / "T" / "0").iterdir():
        path.write_bytes(bytes(2000))
    (small.root / "abort").touch()
    again = open_store(small)
    first = next(number for number, offset in enumerate(offsets) if offset >= LOG_FILE_BYTES)
    assert (again.min_offset("T", 0), again.max_offset("T", 0)) == (first, 300)
    assert bodies(again) == expected[first:]


# -- a batch whose joined properties exceed 32767 bytes ---------------------------------------------------------------


@pytest.mark.parametrize(("joined", "status"), [(32767, OK), (32768, PutMessageStatus.PROPERTIES_SIZE_EXCEEDED)])
def test_a_batch_is_measured_with_its_joined_properties(
    small: MessageStoreConfig, open_store: OpenStore, joined: int, status: PutMessageStatus
) -> None:
    """RocketMQ measures the parts, not their sum: it acknowledges a record with a negative length, can dispatch neither
    it nor what stands behind, and cuts the log there at the next start. Acknowledged messages are lost.
    """
    common = b"B\x01" + b"y" * 9998
    own = Message("T", b"long", properties={"A": "x" * (joined - len(common) - 1 - 2)})
    store = open_store(small)
    put = store.put_batch(StoreBatch("T", 0, encode_batch([Message("T", b"ok"), own]), common, 0, 0, 1, HOST, HOST))
    assert put.status is status
    store.put_message(message(b"behind"))
    store.abandon()
    again = open_store(small)
    assert bodies(again) == ([b"ok", b"long"] if status is OK else []) + [b"behind"]


def test_a_batch_record_rocketmq_should_have_refused_is_reported(
    small: MessageStoreConfig, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """In a folder with such a record RocketMQ cuts there when it starts. So do we, but it is an error, with place."""
    store = open_store(small)
    offsets = put_numbered(store, 3)
    put = store.put_message(message(b"", properties="A\x01" + "x" * 30000))
    put_numbered(store, 9)
    store.abandon()
    at = put.physical_offset + 88 + 1 + len("T")
    overwrite(small, at, struct.pack(">h", -1))
    again = open_store(small)
    assert len(bodies(again)) == len(offsets)
    (entry,) = events(caplog, "commit_log_cut")
    assert (entry.levelno, entry.__dict__["physical_offset"]) == (logging.ERROR, put.physical_offset)
    assert entry.__dict__["whole_records_behind"] == 9


def test_properties_that_outgrow_a_record_by_the_delay_are_refused(
    small: MessageStoreConfig, open_store: OpenStore
) -> None:
    """The names of the real topic and queue are added to a delayed message; RocketMQ checks the text before that, and
    once more in bytes when it encodes: it refuses too, here the status is the same for both.
    """
    store = open_store(small)
    room = 32767 - len("DELAY\x012\x02A\x01")
    put = store.put_message(message(b"", properties="DELAY\x012\x02A\x01" + "x" * room))
    assert put.status is PutMessageStatus.PROPERTIES_SIZE_EXCEEDED
    assert store.max_physical_offset == 0


# -- a record larger than a file, acknowledged but not stored ---------------------------------------------------------


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("kind", ["single", "delayed", "batch"])
def test_what_fits_no_file_is_refused_and_leaves_no_trace(
    small: MessageStoreConfig, open_store: OpenStore, kind: str, over: int
) -> None:
    """RocketMQ closes the current file with a blank, and the next one, all of it, and answers PUT_OK: it never looks at
    the second append's outcome. The message is nowhere, and two files are gone. One byte less, and it is stored.
    """
    store = open_store(small)
    put_numbered(store, 3)
    before = store.max_physical_offset
    room = LOG_FILE_BYTES - 8 + over
    if kind == "batch":
        fixed = 91 + 1
        parts = [bytes(20000), bytes(20000), bytes(room - 40000 - 3 * fixed)]
        body = encode_batch([Message("T", part) for part in parts])
        put = store.put_batch(StoreBatch("T", 0, body, b"", 0, 0, 1, HOST, HOST))
    elif kind == "single":
        put = store.put_message(message(bytes(room - 91 - 1)))
    else:
        properties = "REAL_TOPIC\x01T\x02REAL_QID\x010\x02DELAY\x011"
        fixed = 91 + len("SCHEDULE_TOPIC_XXXX") + len(properties)
        put = store.put_message(message(bytes(room - fixed), properties="DELAY\x011"))
    if over:
        assert put.status is PutMessageStatus.MESSAGE_ILLEGAL
        assert store.max_physical_offset == before
        assert len(store.parts.log.queue.files) == 1
    else:
        assert (put.status, put.physical_offset, put.size_bytes) == (OK, LOG_FILE_BYTES, room)
    store.put_message(message(b"next"))
    expected = bodies(store)
    store.abandon()
    assert bodies(open_store(small)) == expected


# -- index files lost after each crash --------------------------------------------------------------------------------


def test_old_keys_are_found_after_every_crash(small: MessageStoreConfig, open_store: OpenStore, clock: Clock) -> None:
    """After a crash RocketMQ deletes each index file that is newer than the last full one it flushed: with files for 20
    million keys that is all of them, and only the messages of the last log file are indexed again.

    Here no index file was ever full, the checkpoint knows nothing of the index, and the log has several files.
    """
    config = small_config(small.root, index_entries=5000)
    store = open_store(config)
    stored = 0
    for _ in range(3):
        for _ in range(100):
            clock.now += 1
            store.put_message(message(bytes(1500), keys=f"k{stored}"))
            stored += 1
        store.queue_flusher.finish()
        store.log_flusher.finish()
        store.checkpoint.index_ms = 0
        store.checkpoint.save()
        clock.now += 10
        store.put_message(message(keys=f"last{stored}"))
        store.abandon()
        store = open_store(config)
        assert len(store.parts.index.files) == 1
        for number in range(0, stored, 7):
            (raw,) = store.query_message("T", f"k{number}", 9, 0, FOREVER).buffers
            assert record.decode_record(raw).keys == [f"k{number}"]
        assert len(store.query_message("T", f"last{stored}", 9, 0, FOREVER).buffers) == 1
    assert len(store.parts.log.queue.files) > 5


def test_an_entry_half_made_when_the_power_went_is_made_again(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """RocketMQ writes entry, slot and header one after the other and trusts all three when it keeps a file: a slot may
    lead to an entry that the disk never got. Here header and slots disagree in both directions.
    """
    store = open_store(small)
    put_numbered(store, 50)
    store.queue_flusher.finish()
    store.abandon()
    (path,) = (small.root / "index").iterdir()
    data = bytearray(path.read_bytes())
    struct.pack_into(">i", data, 36, 31)  # the header has not heard of the last entries
    data[40 : 40 + 40] = bytes(40)  # and some slots not of any
    path.write_bytes(data)
    again = open_store(small)
    for number in range(50):
        assert len(again.query_message("T", f"k{number}", 9, 0, FOREVER).buffers) == 1


# -- stray files in the folders stopping the start --------------------------------------------------------------------


@pytest.mark.parametrize(
    "stray",
    [
        "commitlog/lost+found/",
        "commitlog/.nfs0000000000a1b2c3",
        "commitlog/00000000000000000000.bak",
        "commitlog/backup/x",
        f"commitlog/{LOG_FILE_BYTES:020d}/",
        "consumequeue/lost+found/0/",
        "consumequeue/readme",
        "consumequeue/T/notes",
        "consumequeue/T/007/",
        "consumequeue/T/٣/",
        "consumequeue/T/99999999999/",
        "consumequeue/T/0/core",
        "consumequeue/T/0/00000000000000000000.bak",
        "index/lost+found/",
        "index/20260101000000000/",
        "index/README",
    ],
)
def test_the_start_passes_over_strangers(
    small: MessageStoreConfig, open_store: OpenStore, stray: str, caplog: pytest.LogCaptureFixture
) -> None:
    """RocketMQ takes what it finds in a commit log's folder for its own: a name that is no number, or another length,
    ends the start with code -3. A disk mounted there has a lost+found.
    """
    store = open_store(small)
    put_numbered(store, 5)
    expected = bodies(store)
    store.close()
    path = small.root / stray
    if stray.endswith("/"):
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    again = open_store(small)
    assert bodies(again) == expected
    assert again.topics() == {"T"} and again.queue_ids("T") == [0]
    assert again.put_message(message(b"next")).status is OK
    again.close()
    assert path.is_dir() if stray.endswith("/") else path.read_text() == "mine"
    assert ("stray file ignored" in caplog.text) == ("/T/0/" not in stray)


def test_a_file_that_got_its_name_but_not_its_length_is_made_again(
    small: MessageStoreConfig, open_store: OpenStore
) -> None:
    """A crash between making the next log file and giving it its length leaves an empty one: RocketMQ won't start."""
    store = open_store(small)
    put_numbered(store, 5)
    store.abandon()
    empty = log_path(small, LOG_FILE_BYTES)
    empty.touch()
    again = open_store(small)
    assert not empty.exists()
    put_numbered(again, 200, size=900)
    assert len(bodies(again)) == 205
    assert empty.stat().st_size == LOG_FILE_BYTES
