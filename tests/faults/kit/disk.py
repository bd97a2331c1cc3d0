"""A disk without memory for what was not synced: what a folder looks like after the power went.

The rules are POSIX's, stricter than any one file system. fsync and fdatasync of a file make its bytes durable as they
were when the call began; fsync of a folder makes its names durable, nothing else does. Of the rest chance decides, per
sector of 512 bytes for contents, per folder for names, per file for its length.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SECTOR_BYTES = 512
LOCK_NAME = "lock"  # closing any descriptor of it would end the store's lock; nobody syncs it
Names = dict[str, int]  # inode by name


class Disk:
    """Watches one folder from now on, when everything in it counts as durable."""

    def __init__(self, root: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root.resolve()
        self.syncs = 0
        self.on_sync: Callable[[int], None] = lambda number: None  # called before each, with its number
        self._chance = chance
        self._lock = threading.RLock()
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, Names] = {}
        self._held: dict[int, int] = {}  # inode to descriptor: it can't be given to another file, and can be read
        for folder, _folders, names in os.walk(self.root):
            self._take_names(Path(folder))
            for name in names:
                if name != LOCK_NAME:
                    fd = os.open(Path(folder, name), os.O_RDONLY)
                    self._take_content(fd)
                    os.close(fd)
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def after_power_cut(self, target: Path) -> None:
        """Build in `target` what the disk would hold if the power went now."""
        with self._lock:
            self._rebuild(self.root, self.root.stat().st_ino, target)

    def close(self) -> None:
        for fd in self._held.values():
            os.close(fd)
        self._held.clear()

    def _watched(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def watched_sync(fd: int) -> None:
            path = Path(f"/proc/self/fd/{fd}").readlink()
            if not path.is_relative_to(self.root):
                sync(fd)
                return
            with self._lock:  # real disks need longer; the store must not count on that
                self.syncs += 1
                self.on_sync(self.syncs)
                if path.is_dir():
                    self._take_names(path)
                else:
                    self._take_content(fd)

        return watched_sync

    def _take_names(self, folder: Path) -> None:
        with os.scandir(folder) as entries:
            self._names[folder.stat().st_ino] = {entry.name: entry.inode() for entry in entries}

    def _take_content(self, fd: int) -> None:
        inode = os.fstat(fd).st_ino
        if inode not in self._held:
            self._held[inode] = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        self._contents[inode] = self._read(inode, None)

    def _read(self, inode: int, path: Path | None) -> bytes:
        """What the page cache has of a file: of one that was synced even after its name is gone."""
        fd = self._held.get(inode)
        if fd is not None:
            return os.pread(fd, os.fstat(fd).st_size, 0)
        return path.read_bytes() if path is not None and path.is_file() and path.stat().st_ino == inode else b""

    def _rebuild(self, folder: Path, inode: int, target: Path) -> None:
        target.mkdir()
        names = self._names.get(inode, {})
        if folder.is_dir() and folder.stat().st_ino == inode and self._chance.random() < 0.5:
            with os.scandir(folder) as entries:
                names = {entry.name: entry.inode() for entry in entries}
        for name, child in names.items():
            path = folder / name
            if child in self._names or (path.is_dir() and path.stat().st_ino == child):
                self._rebuild(path, child, target / name)
            else:
                (target / name).write_bytes(self._content_after_cut(child, path))

    def _content_after_cut(self, inode: int, path: Path) -> bytes:
        durable, now = self._contents.get(inode, b""), self._read(inode, path)
        content = bytearray(durable)
        if self._chance.random() < 0.5:
            size = len(now)
            del content[size:]
            content += bytes(size - len(content))
        written = self._chance.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        for at in range(0, len(content), SECTOR_BYTES):
            if self._chance.random() < written:
                sector = now[at : at + SECTOR_BYTES]
                content[at : at + len(sector)] = sector[: len(content) - at]
        return bytes(content)


def settings_of(flush_disk_type: str) -> dict[str, Any]:
    """Fast flushing: many syncs in little time."""
    return {
        "commit_log_file_bytes": 1 << 19,
        "flush_disk_type": flush_disk_type,
        "flush_interval_ms": 5,
        "consume_queue_flush_interval_ms": 10,
    }
