"""The file of an audit trail: JSON lines, appended, in two parts of bounded size.

FOLDER/audit.jsonl      the newest lines
FOLDER/audit.jsonl.1    those before; replaced when the first part is full

The first line of a part is {"part": random text}: who reads on knows by it whether this is the part that was read. A
file's number on the disk would not do, because file systems give the numbers of removed files to new ones.

The dashboard reads both (dashboard/audit/broker_trails.py) and keeps what it read for longer.
"""

from __future__ import annotations

import os
import secrets
import threading
from pathlib import Path

NAME = "audit.jsonl"
PART_BYTES_MAX = 4 << 20
MODE = 0o600


def older_part(path: Path) -> Path:
    """The part before this one."""
    return path.with_name(path.name + ".1")


class TrailFile:
    """Appends lines. Everything here blocks; calls from several threads take turns."""

    def __init__(self, path: Path, *, part_bytes_max: int = PART_BYTES_MAX) -> None:
        self.path = path
        self._part_bytes_max = part_bytes_max
        self._turn = threading.Lock()

    def append(self, line: bytes) -> None:
        """Write one line, without its end, with one call of the kernel. Raises OSError."""
        with self._turn:
            descriptor = self._open()
            try:
                size = os.fstat(descriptor).st_size
                if size and size + len(line) > self._part_bytes_max:
                    self.path.replace(older_part(self.path))
                    os.close(descriptor)
                    descriptor = self._open()
                    size = 0
                whole = line + b"\n"
                if not size:
                    whole = b'{"part": "%s"}\n' % secrets.token_hex(8).encode() + whole
                elif os.pread(descriptor, 1, size - 1) != b"\n":
                    whole = b"\n" + whole  # a full disk once cut the line before
                os.write(descriptor, whole)
            finally:
                os.close(descriptor)

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, MODE)
