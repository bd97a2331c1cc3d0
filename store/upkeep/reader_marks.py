"""Marks of readers outside the broker: "I still read the log from here on". The cleaner spares those files a while.

    <store>/readers/<host>-<pid>    20 digits, a physical offset; the reader holds the file's lock (flock)

A mark counts while its lock is held, so a reader that was killed holds nothing, and at most HOLD_S, so a reader that
hangs doesn't either. It says nothing about the disk: the cleaner asks for marks only while the disk has room. RocketMQ
ignores the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

FOLDER = "readers"
HOLD_S = 1800.0  # a file's worth of rows takes seconds to read; a starved machine may be a hundred times slower
MARKS_MAX = 16
_DIGITS = 20


class ReaderMark(contextlib.AbstractContextManager["ReaderMark"]):
    """This process's mark, from `with` to its end. Raises OSError where it may not write."""

    def __init__(self, store_folder: Path, physical_offset: int) -> None:
        self._path = store_folder / FOLDER / f"{os.uname().nodename}-{os.getpid()}"
        self._path.parent.mkdir(exist_ok=True)
        self._descriptor = self._locked()
        self.move(physical_offset)

    def _locked(self) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # only a cleaner that looks just now has it, for microseconds
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
            os.close(descriptor)  # the cleaner took the file, not yet locked, for a dead reader's

    def move(self, physical_offset: int) -> None:
        """What lies before this offset is needed no longer."""
        os.pwrite(self._descriptor, f"{physical_offset:0{_DIGITS}}".encode(), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # the folder may be gone, and the lock ends with the descriptor anyway
            self._path.unlink()
        os.close(self._descriptor)


class ReaderMarks:
    """All marks of a store, as its cleaner sees them. `clock` is steady, in seconds."""

    def __init__(self, store_folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = store_folder / FOLDER
        self._clock = clock
        self._seen: dict[tuple[str, int], float] = {}  # name and inode -> when it was first looked at

    def lowest(self) -> int | None:
        """The lowest offset that a reader needs; None without a mark that counts. Blocks."""
        try:
            paths = sorted(self._folder.iterdir())[:MARKS_MAX]
        except FileNotFoundError:
            return None
        seen, offsets = {}, []
        for path in paths:
            with contextlib.suppress(OSError, ValueError), path.open("rb") as file:  # it ended just now, or is no mark
                if not _is_held(file.fileno()):
                    path.unlink()  # its reader was killed
                    continue
                key = (path.name, os.fstat(file.fileno()).st_ino)
                since = seen[key] = self._seen.get(key, self._clock())
                if self._clock() - since <= HOLD_S:
                    offsets.append(int(file.read(_DIGITS)))
        self._seen = seen
        return min(offsets, default=None)


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
