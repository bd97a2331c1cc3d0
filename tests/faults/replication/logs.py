"""A member's log as it lies on disk, read byte by byte with a reader of its own: nothing of the store's is trusted."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import orjson

from tests.faults.replication.history import EpochRow, Log, QueueKey, Stored

MAGIC, BLANK = -626843481, -875286124  # of a message, and of the rest of a file that is full
HEAD = struct.Struct(">iiiiiqqiq")  # size, magic, crc, queue id, flag, queue offset, place, sysFlag, born timestamp
HOST_BYTES, HOST_V6_BYTES = 8, 20
BORN_HOST_V6, STORE_HOST_V6 = 1 << 4, 1 << 5


class BadRecord(Exception):
    """The bytes at that place are no record, or name another place."""


def read_log(member: str, store: Path) -> Log:
    """The log of a store whose broker may run, up to its last whole record. BadRecord."""
    files = sorted(path for path in (store / "commitlog").iterdir() if path.name.isdecimal())
    begin = int(files[0].name) if files else 0
    data = b"".join(path.read_bytes() for path in files)
    stored, end = [], 0
    for record, end in _records(data, begin):  # noqa: B007 - the end of the last one
        if record is not None:
            stored.append(record)
    return Log(member, begin, data[:end], stored, _epochs(store))


def _records(data: bytes, begin: int) -> Iterator[tuple[Stored | None, int]]:
    """Each record, None for a blank, with where it ends in `data`; until there are zeros."""
    at = 0
    while at + 8 <= len(data):
        size, magic = struct.unpack_from(">ii", data, at)
        if not size:
            return
        if magic == BLANK:
            yield None, at + size
        elif magic == MAGIC:
            record = _record(data, at)
            if record.physical_offset != begin + at:
                raise BadRecord(f"the record at {begin + at} says that it stands at {record.physical_offset}")
            yield record, at + size
        else:
            raise BadRecord(f"no record at {begin + at}")
        at += size


def _record(data: bytes, at: int) -> Stored:
    _size, _magic, _crc, queue_id, _flag, queue_offset, place, sys_flag, _born = HEAD.unpack_from(data, at)
    at += HEAD.size + (HOST_V6_BYTES if sys_flag & BORN_HOST_V6 else HOST_BYTES)
    at += 8 + (HOST_V6_BYTES if sys_flag & STORE_HOST_V6 else HOST_BYTES)
    at += 4 + 8  # reconsume times, prepared offset
    (body_bytes,) = struct.unpack_from(">i", data, at)
    body = data[at + 4 : at + 4 + body_bytes]
    at += 4 + body_bytes
    topic = data[at + 1 : at + 1 + data[at]].decode()
    return Stored(place, QueueKey(topic, queue_id), queue_offset, body)


def _epochs(store: Path) -> list[EpochRow]:
    path = store / "config" / "epochs.json"
    rows = orjson.loads(path.read_bytes())["epochs"] if path.exists() else []
    return [EpochRow(*row) for row in rows]
