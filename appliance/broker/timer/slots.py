"""Files of what is due later: one for each hour, and one for each minute of the hours that are near.

Entries are appended, so each file is in order of the timer's queue. When an hour comes near, its file is split into
minutes; the parts have files of their own (`.part`), so that a split that was interrupted is simply done again. All
methods block and are called from threads, one at a time.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from appliance.broker.timer.entries import ENTRY_BYTES, pack_entry, unpack_entries
from appliance.settings.replaced_file import sync_path
from store.base import file_bytes

MINUTE_MS = 60_000
HOUR_MINUTES = 60
HOUR, MINUTE, PART, ROLLING = "hour", "minute", "part", "rolling"
READ_BYTES = 4096 * ENTRY_BYTES
_NAME = re.compile(rf"([0-9]{{1,12}})\.({HOUR}|{MINUTE}|{PART})")


class Slot(NamedTuple):
    """A file: what it is, and its first minute since the epoch."""

    kind: str
    minute: int

    @property
    def name(self) -> str:
        return f"{self.minute:010d}.{self.kind}"


def hour_slot(minute: int) -> Slot:
    return Slot(HOUR, minute - minute % HOUR_MINUTES)


class SlotFolder:
    """The folder of the files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, indexed: int) -> dict[Slot, int]:
        """Return the files with their entries' number. Entries from `indexed` on go: the queue will say them again.

        Only what came after the last sync can be torn, and all of that is from there on.
        """
        found: dict[Slot, int] = {}
        if not self.folder.is_dir():
            return found
        for path in self.folder.iterdir():
            match = _NAME.fullmatch(path.name)
            if match is None:
                if path.suffix == f".{ROLLING}":
                    path.unlink()  # interrupted
                continue
            slot = Slot(match[2], int(match[1]))
            count = self._cut(path, indexed)
            if count:
                found[slot] = count
            else:
                path.unlink()
        return found

    def append(self, buffers: dict[Slot, bytearray]) -> None:
        """Append to many files; what is done leaves `buffers`. OSError: the rest is still in there, and in no file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for slot in list(buffers):
            self._append_one(self.path_of(slot), buffers[slot])
            del buffers[slot]

    def write(self, slot: Slot, data: bytes | bytearray, *, fresh: bool) -> None:
        """Append to one file, or start it again."""
        if fresh:
            self.path_of(slot).unlink(missing_ok=True)
        self._append_one(self.path_of(slot), data)

    def read(self, slot: Slot, position: int) -> bytes:
        """Return whole entries from a position in bytes on, b"" at the end or when there is no file."""
        try:
            fd = os.open(self.path_of(slot), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            data = os.pread(fd, READ_BYTES, position)
        finally:
            os.close(fd)
        return data[: len(data) - len(data) % ENTRY_BYTES]

    def rename(self, source: Slot, target: Slot) -> None:
        """Put one file in the place of another, durably; an empty one removes it."""
        path = self.path_of(source)
        if path.stat().st_size == 0:
            path.unlink()
            self.path_of(target).unlink(missing_ok=True)
        else:
            self.sync([source])
            path.replace(self.path_of(target))
        sync_path(self.folder)

    def sync(self, slots: Iterable[Slot]) -> None:
        """Wait until the disk has these files and their names."""
        wanted = list(slots)
        if not wanted:
            return
        for slot in wanted:
            with (
                contextlib.suppress(FileNotFoundError),  # all of it was delivered meanwhile
                file_bytes.closed_after(os.open(self.path_of(slot), os.O_RDONLY | os.O_CLOEXEC)) as fd,
            ):
                os.fdatasync(fd)
        sync_path(self.folder)

    def delete(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self.path_of(slot).unlink(missing_ok=True)

    def path_of(self, slot: Slot) -> Path:
        return self.folder / slot.name

    def _append_one(self, path: Path, data: bytes | bytearray) -> None:
        with file_bytes.closed_after(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)) as fd:
            end = os.fstat(fd).st_size
            position, rest = end, bytes(data)
            try:
                while rest:
                    written = os.pwrite(fd, rest, position)
                    position, rest = position + written, rest[written:]
            except OSError:
                os.ftruncate(fd, end)
                raise

    def _cut(self, path: Path, indexed: int) -> int:
        """Cut a file behind its last sound entry below `indexed`; return how many it keeps."""
        with path.open("r+b") as file:
            count = os.fstat(file.fileno()).st_size // ENTRY_BYTES
            while count:
                data = os.pread(file.fileno(), ENTRY_BYTES, (count - 1) * ENTRY_BYTES)
                entry = next(unpack_entries(data), None)
                if entry is not None and entry.queue_offset < indexed:
                    break
                count -= 1
            os.ftruncate(file.fileno(), count * ENTRY_BYTES)
        return count


def by_minute(data: bytes) -> dict[int, bytearray]:
    """Split a run of entries by the minute in which they are due; what is no entry is left out."""
    parts: dict[int, bytearray] = {}
    for entry in unpack_entries(data):
        parts.setdefault(entry.due_ms // MINUTE_MS, bytearray()).extend(pack_entry(*entry))
    return parts
