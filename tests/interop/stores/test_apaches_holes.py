"""Apache's own broker falls into the holes of its store, live, and our store gets past the same folders.

One life of a folder in five starts of Apache's broker; before each damage is met, a copy goes to our store. What each
hole is, and our side of it in detail, tells tests/store/test_holes.py.
"""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.frames import send_fields
from appliance.bench.peer import Peer, PeerError
from gantrymq.message import properties as names
from gantrymq.message import record
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store import MessageStore, MessageStoreConfig, PutMessageStatus
from tests.any_disk import ANY_DISK
from tests.peers.dispatch import wait_dispatched
from tests.peers.fixtures import make_apache_peer
from tests.store.conftest import message, read_all
from tests.store.golden import commit_log_records
from tests.waiting import WITHIN_S

pytestmark = pytest.mark.slow

TOPIC = "Holes"
QUEUES = 4
DAMAGED, ZEROED, TOO_LONG, BATCH = range(QUEUES)  # one queue for each story
LOG_FILE_BYTES = 1 << 20
PROPERTIES = {
    "mappedFileSizeCommitLog": str(LOG_FILE_BYTES),
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "4000",
    "flushCommitLogThoroughInterval": "500",  # a checkpoint in seconds, not in a minute
    "flushConsumeQueueThoroughInterval": "500",
}


def send(peer: Peer, queue_id: int, body: bytes, *, key: str = "") -> None:
    """Send one message; it is acknowledged."""
    _send(peer, RequestCode.SEND_MESSAGE_V2, queue_id, names.encode_properties({"KEYS": key}), body)


def send_batch(peer: Peer, queue_id: int, messages: list[Message], properties: str) -> None:
    """Send a batch with properties for all of it; it is acknowledged."""
    _send(peer, RequestCode.SEND_BATCH_MESSAGE, queue_id, properties, encode_batch(messages))


def _send(peer: Peer, code: RequestCode, queue_id: int, properties: str, body: bytes) -> None:
    is_batch = code is RequestCode.SEND_BATCH_MESSAGE
    fields = send_fields("holes", TOPIC, queue_id, properties, is_batch=is_batch)
    with rpc.connect(peer.broker_address) as connection:
        answer = rpc.call(connection, RemotingCommand.request(code, fields, body))
    assert answer.code == ResponseCode.SUCCESS, answer.remark


def has_key(peer: Peer, key: str) -> bool:
    fields = {"topic": TOPIC, "key": key, "maxNum": "9", "beginTimestamp": "0", "endTimestamp": str(1 << 62)}
    with rpc.connect(peer.broker_address) as connection:
        answer = rpc.call(connection, RemotingCommand.request(RequestCode.QUERY_MESSAGE, fields))
    return answer.code == ResponseCode.SUCCESS


def max_offsets(peer: Peer) -> list[int]:
    return rpc.max_offsets(peer.broker_address, TOPIC, QUEUES)


@contextmanager
def our_store(folder: Path) -> Iterator[MessageStore]:
    """Our store on a folder, or on what is left of it."""
    config = MessageStoreConfig(
        root=folder,
        commit_log_file_bytes=LOG_FILE_BYTES,
        consume_queue_file_bytes=2000,
        index_slots=100,
        index_entries=4000,
        **ANY_DISK,
    )
    store = MessageStore(config)
    store.load()
    try:
        store.start()
        yield store
    finally:
        store.close()


def our_offsets(store: MessageStore) -> list[int]:
    return [store.max_offset(TOPIC, queue_id) for queue_id in range(QUEUES)]


def body(number: int) -> bytes:
    return b"%06d" % number + bytes(200)


def test_apache_falls_into_each_hole_and_our_store_does_not(tmp_path: Path) -> None:
    peer = make_apache_peer(tmp_path / "apache", broker_properties=PROPERTIES)
    copy = tmp_path / "ours"
    with peer:
        rpc.create_topic(peer.broker_address, TOPIC, QUEUES)
        _acknowledge_what_is_not_stored(peer, tmp_path / "fresh")
        for number in range(20):
            send(peer, ZEROED, body(number), key=f"zeroed-{number}")
        for number in range(20):
            send(peer, DAMAGED, body(number), key=f"damaged-{number}")
        _wait(lambda: max_offsets(peer) == [20, 20, 0, 0])
        peer.stop_broker()

        _zero_queue_and_damage_record(peer.store)
        shutil.copytree(peer.store, copy)
        _see_zeros_taken_for_a_message(peer, copy)
        _see_what_was_cut_come_back(peer, copy)
        _make_files_and_a_bad_batch(peer)
        peer.kill_broker()

        shutil.rmtree(copy)
        shutil.copytree(peer.store, copy)
        _see_keys_and_messages_lost(peer, copy)
        _see_a_stranger_stop_the_start(peer, copy)


def _acknowledge_what_is_not_stored(peer: Peer, fresh: Path) -> None:
    """A record larger than a file: Apache says yes, makes two files of nothing, and has no message."""
    too_long = bytes(LOG_FILE_BYTES + 1)
    send(peer, TOO_LONG, too_long)
    time.sleep(0.5)  # it would be dispatched by now
    assert max_offsets(peer) == [0] * QUEUES
    assert len(list((peer.store / "commitlog").iterdir())) >= 2
    with our_store(fresh) as store:
        assert store.put_message(message(too_long)).status is PutMessageStatus.MESSAGE_ILLEGAL


def _zero_queue_and_damage_record(folder: Path) -> None:
    queue_file = folder / "consumequeue" / TOPIC / str(ZEROED) / f"{0:020d}"
    queue_file.write_bytes(bytes(2000))
    (offset,) = [
        offset
        for path in (folder / "commitlog").iterdir()
        for offset in _offsets_of(path, body(10))
        if record.split_record(path.read_bytes(), offset - int(path.name)).queue_id == DAMAGED
    ]
    base = offset - offset % LOG_FILE_BYTES
    with (folder / "commitlog" / f"{base:020d}").open("r+b") as file:
        file.seek(offset - base + 100)
        file.write(b"\xff")


def _offsets_of(path: Path, content: bytes) -> list[int]:
    """Physical offsets of the records in a log file that have this body."""
    data = path.read_bytes()
    found, at = [], data.find(content)
    while at >= 0:
        found.append(int(path.name) + at - 88)
        at = data.find(content, at + 1)
    return found


def _see_zeros_taken_for_a_message(peer: Peer, copy: Path) -> None:
    """A zeroed queue file: Apache has one unit, of no message; ours has all twenty messages."""
    peer.start_broker()
    assert max_offsets(peer) == [10, 1, 0, 0]
    (copy / "abort").touch()  # after a clean stop ours would not look for damage amid the log, and keep all twenty
    with our_store(copy) as store:
        assert our_offsets(store) == [10, 20, 0, 0]
        assert [record.decode_record(raw).body for raw in read_all(store, TOPIC, ZEROED)] == [
            body(number) for number in range(20)
        ]


def _see_what_was_cut_come_back(peer: Peer, copy: Path) -> None:
    """A cut log goes on with a record of the same length: Apache has the nine behind it again after a clean stop."""
    send(peer, DAMAGED, body(900), key="damaged-90")  # as long as what was cut, key and all
    _wait(lambda: max_offsets(peer)[DAMAGED] == 11)
    peer.stop_broker()
    with our_store(copy) as store:
        raw = bytes(store.message_bytes(read_position(store, DAMAGED, 9)) or b"")
        fields = record.split_record(raw)
        properties = fields.properties.replace(b"damaged-9", b"damaged-90")
        new = message(body(900), topic=TOPIC, queue_id=DAMAGED, properties=properties.decode())
        put = store.put_message(new)
        assert (put.queue_offset, put.size_bytes) == (10, fields.size_bytes + 1)
    with our_store(copy) as store:
        assert our_offsets(store) == [11, 20, 0, 0]
    peer.start_broker()
    assert max_offsets(peer)[DAMAGED] == 20


def read_position(store: MessageStore, queue_id: int, index: int) -> int:
    (unit,) = store.consume_queue_units(TOPIC, queue_id, index, 1)
    return unit.physical_offset


def _make_files_and_a_bad_batch(peer: Peer) -> None:
    """More log files with a checkpoint behind them; a batch whose joined properties are too long; a message behind."""
    for number in range(4):
        send(peer, TOO_LONG, bytes(400_000), key=f"filler-{number}")
    time.sleep(3.5)  # Apache's allowance before its checkpoint counts
    sent_ms = int(time.time() * 1000)
    send(peer, TOO_LONG, body(1), key="filler-4")
    _wait(lambda: _checkpoint_ms(peer.store) >= sent_ms)
    wait_dispatched(peer.broker_address)
    own = Message(TOPIC, b"own", properties={"A": "x" * 20_000})
    send_batch(peer, BATCH, [own], "B\x01" + "y" * 20_000)
    send(peer, BATCH, b"behind", key="behind")
    assert has_key(peer, "zeroed-3") and has_key(peer, "damaged-3")


def _checkpoint_ms(folder: Path) -> int:
    """Up to when a broker's commit log and consume queues are on the disk, as it has noted it."""
    log_ms, queues_ms = struct.unpack_from(">qq", (folder / "checkpoint").read_bytes())
    return min(log_ms, queues_ms)


def _see_keys_and_messages_lost(peer: Peer, copy: Path) -> None:
    """After the kill Apache has lost the old keys, and the message behind the batch. Ours has the keys.

    It cuts at the batch's record as Apache does: what was acknowledged there can't be read by anyone. Our own broker
    refuses such a batch.
    """
    with our_store(copy) as store:
        for key in ("zeroed-3", "damaged-3", "filler-4"):
            assert len(store.query_message(TOPIC, key, 9, 0, 1 << 62).buffers) == 1, key
        assert our_offsets(store)[BATCH] == 0
    peer.start_broker()
    assert not has_key(peer, "zeroed-3") and not has_key(peer, "damaged-3")
    assert has_key(peer, "filler-4")
    assert max_offsets(peer)[BATCH] == 0 and not has_key(peer, "behind")
    peer.kill_broker()


def _see_a_stranger_stop_the_start(peer: Peer, copy: Path) -> None:
    """A stray file in the commit log's folder: Apache's broker does not start, ours does."""
    for folder in (peer.store, copy):
        (folder / "commitlog" / "notes.txt").write_text("mine")
    with pytest.raises(PeerError, match="ended with 253"):  # exit(-3)
        peer.start_broker()
    with our_store(copy) as store:
        assert store.put_message(message()).status is PutMessageStatus.PUT_OK
    assert len(list(commit_log_records(copy))) > 0


def _wait(condition: object, timeout_s: float = WITHIN_S) -> None:
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
