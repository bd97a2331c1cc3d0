"""Records that a start after a crash must not believe: what a power cut, or an older version, may have left."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq.message import ids, record
from store import MessageStore, MessageStoreConfig, StoreMessage
from tests.store.conftest import HOST, OpenStore, message, read_all

V6 = ids.encode_host("2001:db8::1", 10911)
LONG = "A\x01" + "x" * 3000
Spoil = Callable[[bytearray, record.RecordFields, int], None]


def flip_body(data: bytearray, fields: record.RecordFields, start: int) -> None:
    data[fields.body_position + 5] ^= 1


def lose_sector_of_properties(data: bytearray, fields: record.RecordFields, start: int) -> None:
    end = start + fields.size_bytes
    sector = (end - 1000) // 512 * 512
    data[sector : sector + 512] = bytes(512)


def lose_end(data: bytearray, fields: record.RecordFields, start: int) -> None:
    end = start + fields.size_bytes
    data[end - end % 512 : end] = bytes(end % 512)


def move_physical_offset(data: bytearray, fields: record.RecordFields, start: int) -> None:
    data[start + 35] ^= 8


def nothing(data: bytearray, fields: record.RecordFields, start: int) -> None:
    return


def crashed_with(store: MessageStore, last: StoreMessage, spoil: Spoil, path: Path) -> None:
    store.put_message(message(b"whole"))
    put = store.put_message(last)
    store.abandon()
    data = bytearray(path.read_bytes())
    spoil(data, record.split_record(memoryview(data), put.physical_offset), put.physical_offset)
    path.write_bytes(data)


@pytest.mark.parametrize("hosts", [(HOST, HOST), (V6, HOST), (HOST, V6), (V6, V6)], ids=["44", "64", "46", "66"])
@pytest.mark.parametrize(
    ("spoil", "left"),
    [(nothing, 2), (flip_body, 1), (lose_sector_of_properties, 1), (lose_end, 1), (move_physical_offset, 1)],
)
def test_a_start_believes_whole_records_only(
    small: MessageStoreConfig, open_store: OpenStore, hosts: tuple[bytes, bytes], spoil: Spoil, left: int
) -> None:
    last = message(b"last of all", properties=LONG)
    last = dataclasses.replace(last, born_host=hosts[0], store_host=hosts[1])
    crashed_with(open_store(small), last, spoil, small.commit_log_folders[0] / f"{0:020d}")
    store = open_store(small)
    assert len(read_all(store, "T")) == left
    assert store.put_message(message(b"next")).queue_offset == left


def test_properties_too_long_for_their_length_end_the_log(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """RocketMQ 4.9 stores a batch's message like this, with a negative length, and acknowledges it."""
    store = open_store(small)
    end = store.put_message(message(b"whole")).size_bytes
    store.abandon()
    long = b"A\x01" + b"x" * 40_000
    size = 91 + len(b"T") + len(long)
    head = record.HEAD_V4.pack(size, record.MESSAGE_MAGIC, 0, 0, 0, 1, end, 0, 1, HOST, 1, HOST, 0, 0, 0)
    path = small.commit_log_folders[0] / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[end : end + size] = head + b"\x01T" + len(long).to_bytes(2, "big") + long
    path.write_bytes(data)
    again = open_store(small)
    assert (again.max_physical_offset, len(read_all(again, "T"))) == (end, 1)


def test_what_was_only_prepared_gets_no_place_by_a_crash(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    for sys_flag in (0, 4, 0, 12, 8):
        store.put_message(message(b"%d" % sys_flag, sys_flag=sys_flag, keys="k"))
    store.abandon()
    again = open_store(small)
    found = [record.decode_record(raw) for raw in read_all(again, "T")]
    assert [(each.body, each.queue_offset) for each in found] == [(b"0", 0), (b"0", 1), (b"8", 2)]
