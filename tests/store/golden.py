"""Apache's store folders, unpacked with the settings they were written with."""

from __future__ import annotations

import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from store import MessageStoreConfig
from tests.any_disk import ANY_DISK

ARCHIVES = Path(__file__).parent.parent / "golden" / "stores"
_SMALL: dict[str, Any] = {
    "commit_log_file_bytes": 65536,
    "consume_queue_file_bytes": 2000,
    "index_slots": 100,
    "index_entries": 400,
}
_SETTINGS: dict[str, dict[str, Any]] = {
    "clean_broker": {"commit_log_file_bytes": 1 << 20, "index_slots": 100, "index_entries": 400},
    "crash_abort": _SMALL,
    "rolled_preblank": _SMALL,
    "ipv6_delay": _SMALL,
    "cq_ext": _SMALL | {"consume_queue_ext_file_bytes": 100},
}
GOLDEN_STORES = tuple(_SETTINGS)


def unpack(name: str, folder: Path) -> MessageStoreConfig:
    """Unpack an archive; return the settings that open it."""
    with tarfile.open(ARCHIVES / f"{name}.tgz") as archive:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    (root,) = folder.iterdir()
    return MessageStoreConfig(root=root, **_SETTINGS[name], **ANY_DISK)


def commit_log_records(root: Path) -> Iterator[tuple[int, bytes]]:
    """Walk the log files by sizes and magic only, independent of the store's own code; yield (offset, record)."""
    for path in sorted((root / "commitlog").iterdir()):
        data = path.read_bytes()
        position = 0
        while position + 8 <= len(data):
            size = int.from_bytes(data[position : position + 4], "big")
            if data[position + 4 : position + 8] != bytes.fromhex("DAA320A7"):
                break
            yield int(path.name) + position, data[position : position + size]
            position += size


def queue_units(root: Path, topic: str, queue_id: int) -> dict[int, tuple[int, int, int]]:
    """Read a queue's files without the store's code: index to (physical offset, size, tags code), fillers left out."""
    units = {}
    for path in sorted((root / "consumequeue" / topic / str(queue_id)).iterdir()):
        data = path.read_bytes().rstrip(b"\0")  # most of a file is not written yet
        data += bytes(-len(data) % 20)
        for index, (offset, size, code) in enumerate(struct.iter_unpack(">QIq", data), int(path.name) // 20):
            if size and size != 0x7FFFFFFF:
                units[index] = (offset, size, code)
    return units
