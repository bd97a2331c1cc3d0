"""What a start needs to know about the last stop: checkpoint, abort marker, lock.

The checkpoint holds three store timestamps (ms): of the last commit-log message, of the last message in the consume
queues, and of the last entry in the index, each as far as the disk surely has them. After an unclean stop recovery
starts from a file older than the oldest of the first two.

Behind them, in bytes that RocketMQ leaves alone, stand our own: the offset below which nothing has to be looked at
again, and where the oldest file begins that the store still promises to have. They count only beside the timestamps
they were written with: RocketMQ may have run the store since, and have deleted files.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import zlib
from pathlib import Path
from typing import NamedTuple

from store.base import file_bytes
from store.base.errors import StoreDamaged, StoreLocked

CHECKPOINT_BYTES = 4096
_STAMPS = struct.Struct(">qqq")
SAFETY_MS = 3000  # RocketMQ's allowance for clocks and order of flushes
SYNCED_AT = 512  # RocketMQ 4.9 has 24 bytes in use, 5.x twice as many
_SYNCED = struct.Struct(">qqqqqq")
_SEAL = struct.Struct(">I")
KEPT_AT = 1024  # apart from the others: an older program writes those, and leaves this alone
_KEPT = struct.Struct(">q")
NOT_KNOWN = -1


class Synced(NamedTuple):
    """How far log, queues and index were on disk together, and what they must still say for that to be believed."""

    end_offset: int = 0  # all records below are on disk, and so are their units and index entries
    queue_end: int = 0  # end of the last message that any queue had then
    index_end: int = 0  # where the last message starts that the index had then
    closed_at: int = -1  # the log's end, after a clean stop; all of it was synced, so the next start may say so
    units: int = -1  # so many units all queues had together then; -1: they were not counted
    queue_files: int = -1  # ConsumeQueueTable.files_below(end_offset); -1: they were not counted

    @property
    def log_end(self) -> int:
        """The log was at least so long, and on disk."""
        return max(self.end_offset, self.closed_at, 0)


NOT_SYNCED = Synced()


class Checkpoint:
    """The file `checkpoint`, rewritten in place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.physic_ms = 0
        self.logics_ms = 0
        self.index_ms = 0
        self.synced = NOT_SYNCED
        self.kept_from = NOT_KNOWN  # the log has everything from this physical offset on: only retention raises it
        self._lock = threading.Lock()  # several threads save

    def load(self) -> None:
        """Read the timestamps; a missing or short file reads as zeros, which means recover everything. StoreDamaged."""
        try:
            with self.path.open("rb") as file:
                head = file.read(_STAMPS.size)
                file.seek(SYNCED_AT)
                own = file.read(_SYNCED.size + _SEAL.size)
                file.seek(KEPT_AT)
                kept = file.read(_KEPT.size + _SEAL.size)
        except FileNotFoundError:
            return
        except IsADirectoryError as exc:
            raise _is_a_folder(self.path) from exc
        if len(head) == _STAMPS.size:
            self.physic_ms, self.logics_ms, self.index_ms = (max(stamp, 0) for stamp in _STAMPS.unpack(head))
        if len(own) == _SYNCED.size + _SEAL.size and _SEAL.unpack_from(own, _SYNCED.size)[0] == _seal(head, own):
            self.synced = Synced._make(_SYNCED.unpack_from(own))
        if len(kept) == _KEPT.size + _SEAL.size and _SEAL.unpack_from(kept, _KEPT.size)[0] == _kept_seal(head, kept):
            (self.kept_from,) = _KEPT.unpack_from(kept)

    def save(self) -> None:
        """Write and sync. Blocks on the disk."""
        # Our two blocks have seals that cover RocketMQ's timestamps, too: where a power cut leaves old and new bytes
        # side by side, no seal fits, and the block counts as absent. Then a start reads more, and believes nothing.
        with self._lock, file_bytes.closed_after(file_bytes.create_sized(self.path, CHECKPOINT_BYTES)) as fd:
            head, own = _STAMPS.pack(self.physic_ms, self.logics_ms, self.index_ms), _SYNCED.pack(*self.synced)
            kept = _KEPT.pack(self.kept_from)
            file_bytes.write_all(fd, head, 0)
            file_bytes.write_all(fd, own + _SEAL.pack(_seal(head, own)), SYNCED_AT)
            file_bytes.write_all(fd, kept + _SEAL.pack(_kept_seal(head, kept)), KEPT_AT)
            os.fdatasync(fd)

    def keep_from(self, min_offset: int) -> None:
        """The log's oldest file begins there now; nothing is promised of what comes before. Not saved yet."""
        self.kept_from = max(min_offset, NOT_KNOWN)

    def recovery_bound_ms(self) -> int:
        """Everything stored up to this time is surely on disk, in the log and in the queues."""
        return max(0, min(self.physic_ms, self.logics_ms) - SAFETY_MS)


def _seal(head: bytes, own: bytes) -> int:
    """Tie our numbers to RocketMQ's."""
    return zlib.crc32(head + own[: _SYNCED.size], 1)


def _kept_seal(head: bytes, kept: bytes) -> int:
    return zlib.crc32(head + kept[: _KEPT.size], 2)


class AbortMarker:
    """The empty file `abort`: there while the store runs, and after it did not stop cleanly."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def exists(self) -> bool:
        """StoreDamaged when it is a folder: it could not be taken away at the stop."""
        if self._path.is_dir():
            raise _is_a_folder(self._path)
        return self._path.exists()

    def create(self) -> None:
        self._path.touch()
        file_bytes.sync_folder(self._path.parent)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
        file_bytes.sync_folder(self._path.parent)


class StoreLock:
    """The file `lock`, held as a POSIX record lock on its first byte: the kind Java takes (flock would not see it)."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._fd = -1

    def acquire(self) -> None:
        """Take the lock. StoreLocked when another process has it, StoreDamaged when it is a folder."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path in _held:  # record locks don't exclude their own process
            raise StoreLocked(str(self._path))
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except IsADirectoryError as exc:
            raise _is_a_folder(self._path) from exc
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError as exc:
            os.close(fd)
            raise StoreLocked(str(self._path)) from exc
        self._fd = fd
        _held.add(self._path)
        os.pwrite(fd, b"lock", 0)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)  # closing any descriptor of the file ends the lock
            self._fd = -1
            _held.discard(self._path)


def is_held_here(path: Path) -> bool:
    """Return whether this process holds the lock. Then the file must not be opened: closing it would end the lock."""
    return path.absolute() in _held


def _is_a_folder(path: Path) -> StoreDamaged:
    return StoreDamaged(str(path), "is a folder and must be a file: move it away; the start creates a new one")


_held: set[Path] = set()
