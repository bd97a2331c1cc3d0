"""Commit logs made by hand, from the format's description alone, so that reader and writer can't share a mistake."""

from __future__ import annotations

import socket
import struct
import tarfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "golden" / "stores"
HOUR_MS = 3_600_000
NOON = 1_795_262_400_000  # 2026-11-21 12:00 UTC


@dataclass(frozen=True)
class Record:
    """What a test wants in the log."""

    topic: str = "orders"
    body: bytes = b"hello"
    properties: dict[str, str] = field(default_factory=dict)
    stored_at: int = NOON
    born_ip: str = "10.0.0.0"  # ends in zero bytes, which careless readers lose
    store_ip: str = "127.0.0.1"
    queue_id: int = 0
    queue_offset: int = 0
    is_v2: bool = False
    sys_flag: int = 0

    def encode(self, physical_offset: int) -> bytes:
        born, store = _host(self.born_ip), _host(self.store_ip)
        sys_flag = self.sys_flag | (16 if len(born) == 20 else 0) | (32 if len(store) == 20 else 0)
        topic = self.topic.encode()
        properties = "\x02".join(f"{key}\x01{value}" for key, value in self.properties.items()).encode()
        parts = (
            struct.pack(">i", zlib.crc32(self.body) & 0x7FFFFFFF),
            struct.pack(">iiqqi", self.queue_id, 7, self.queue_offset, physical_offset, sys_flag),
            struct.pack(">q", self.stored_at - 5),
            born,
            struct.pack(">q", self.stored_at),
            store,
            struct.pack(">iqi", 3, 0, len(self.body)),
            self.body,
            struct.pack(">h" if self.is_v2 else ">b", len(topic)),
            topic,
            struct.pack(">h", len(properties)),
            properties,
        )
        rest = b"".join(parts)
        return struct.pack(">iI", len(rest) + 8, 0xDAA320AB if self.is_v2 else 0xDAA320A7) + rest


def write_log(folder: Path, records: Iterable[Record], *, file_bytes: int = 1 << 16, start: int = 0) -> list[int]:
    """Append the records behind `start`, rolling files as a broker does. Returns their offsets; the last is the end."""
    folder.mkdir(parents=True, exist_ok=True)
    offset, offsets = start, []
    for record in records:
        data = record.encode(offset)
        room = file_bytes - offset % file_bytes
        if len(data) + 8 > room:
            _put(folder, offset, struct.pack(">iI", room, 0xCBD43194), file_bytes)
            offset += room
            data = record.encode(offset)
        _put(folder, offset, data, file_bytes)
        offsets.append(offset)
        offset += len(data)
    return [*offsets, offset]


def unpack_golden(name: str, folder: Path) -> Path:
    """A store that Apache RocketMQ 4.9.4 wrote; returns its store folder."""
    with tarfile.open(GOLDEN / f"{name}.tgz") as archive:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    return next(path.parent for path in folder.glob("*/commitlog"))


def _put(folder: Path, offset: int, data: bytes, file_bytes: int) -> None:
    path = folder / f"{offset - offset % file_bytes:020}"
    if not path.exists():
        with path.open("wb") as file:
            file.truncate(file_bytes)  # a hole, as the broker's mapping makes it
    with path.open("r+b") as file:
        file.seek(offset % file_bytes)
        file.write(data)


def _host(ip: str) -> bytes:
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    return socket.inet_pton(family, ip) + struct.pack(">i", 30000)
