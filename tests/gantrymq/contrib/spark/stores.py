"""A store folder made by hand: a log, and consume queues that point into it."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.appliance.reports.stores import Record, write_log

LOG_FILE_BYTES = 1 << 14
QUEUE_FILE_UNITS = 50
_UNIT = struct.Struct(">qiq")
FILLER = _UNIT.pack(0, 0x7FFFFFFF, 0)


def write_store(root: Path, records: Sequence[Record], *, first: int = 0) -> list[int]:
    """A store of these records; queue offsets begin at `first` in each queue. Returns their places, and the end."""
    numbered: list[Record] = []
    ends: dict[tuple[str, int], int] = {}
    for record in records:
        key = record.topic, record.queue_id
        offset = ends.setdefault(key, first)
        ends[key] += 1
        numbered.append(dataclasses.replace(record, queue_offset=offset))
    places = write_log(root / "commitlog", numbered, file_bytes=LOG_FILE_BYTES)
    for record, place in zip(numbered, places, strict=False):
        size_bytes = len(record.encode(place))
        put_unit(root, record.topic, record.queue_id, record.queue_offset, _UNIT.pack(place, size_bytes, 0))
    return places


def put_unit(root: Path, topic: str, queue_id: int, index: int, unit: bytes) -> None:
    """Write one unit; its file has its whole size from birth, as a broker makes it."""
    folder = root / "consumequeue" / topic / str(queue_id)
    folder.mkdir(parents=True, exist_ok=True)
    base = index - index % QUEUE_FILE_UNITS
    path = folder / f"{base * _UNIT.size:020}"
    if not path.exists():
        with path.open("wb") as file:
            file.write(FILLER * (index - base))
            file.truncate(QUEUE_FILE_UNITS * _UNIT.size)
    with path.open("r+b") as file:
        file.seek((index - base) * _UNIT.size)
        file.write(unit)


def rows_of(reader: Any) -> list[dict[str, Any]]:
    """All rows that a batch reader gives, without Spark."""
    found = [batch for part in reader.partitions() for batch in reader.read(part)]
    return [row for batch in found for row in batch.to_pylist()]
