"""Which process has a store folder open, found without taking its lock."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import NamedTuple

from store.startup.checkpoint import is_held_here

_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, pid


class LockHolder(NamedTuple):
    """`process_id` is 0 when the kernel does not say: another container, another machine."""

    process_id: int
    command: str

    def __str__(self) -> str:
        return f"process {self.process_id} ({self.command})" if self.process_id else "a process the kernel can't name"


def lock_holder(path: Path) -> LockHolder | None:
    """Return who holds the record lock on the file's first byte, None when no process does."""
    if is_held_here(path):  # opening and closing the file would end this process's own lock
        return LockHolder(os.getpid(), _command(os.getpid()))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
    finally:
        os.close(fd)
    kind, _whence, _start, _length, process_id = _FLOCK.unpack(answer)
    if kind == fcntl.F_UNLCK:
        return None
    return LockHolder(max(process_id, 0), _command(process_id))


def _command(process_id: int) -> str:
    try:
        words = Path(f"/proc/{process_id}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "unknown"
    return " ".join(word.decode("utf-8", "replace") for word in words[:4]).strip()[:120] or "unknown"
