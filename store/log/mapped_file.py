"""One fixed-size, memory-mapped file of the commit log.

A file is mapped when first used and unmapped when the last view of it is gone: readers hold views, and deleting only
removes the name. Pages below `allocated_end` own disk blocks; only those may be written, since a write into a hole of a
full disk ends the process (SIGBUS), while an allocation only fails.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from store.base import file_bytes


class MappedFile:
    """A run of `size` bytes starting at `base` of the log. Positions given to it count from the file's start."""

    __slots__ = ("_address", "_fd", "_is_named", "_map", "_view", "allocated_end", "base", "path", "size")

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.base = int(path.name)
        self.size = size
        self.allocated_end = 0
        self._fd = -1
        self._is_named = False  # the disk surely has the name: once this process has synced the folder
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None
        self._address = 0

    @property
    def end(self) -> int:
        return self.base + self.size

    @property
    def descriptor(self) -> int:
        """Of the file, to write to it; -1 while it is not open for that."""
        return self._fd

    @property
    def map(self) -> mmap.mmap:
        """The writable map."""
        if self._map is None:
            self._open()
        assert self._map is not None
        return self._map

    @property
    def view(self) -> memoryview:
        """The file's bytes to read; slices of it keep the mapping alive."""
        if self._view is None:
            self._view = memoryview(self.map).toreadonly()
        return self._view

    def open_for_write(self) -> None:
        """Create the file if needed, map it and keep a descriptor for allocation and sync."""
        if self._fd < 0:
            self._fd = file_bytes.create_sized(self.path, self.size)
        if self._map is None:
            self._open()
        assert self._map is not None
        # Without this a fault on a cold page reads ahead, which on ext4 can mean one folio of 8 MiB: 20 ms on the loop.
        self._map.madvise(mmap.MADV_RANDOM)

    def allocate(self, end: int) -> None:
        """Allocate disk blocks up to `end`. OSError when the disk has none."""
        end = min(end, self.size)
        if end > self.allocated_end:
            self.open_for_write()
            file_bytes.allocate_range(self._fd, self.allocated_end, end)
            self.allocated_end = end

    def peek(self, start: int, size_bytes: int) -> bytes:
        """Read bytes that may be a hole, without the map: on a full tmpfs a look into a hole ends the process."""
        with self.path.open("rb") as file:
            return os.pread(file.fileno(), size_bytes, start)

    def warm(self, start: int, end: int) -> None:
        """Read an allocated range into the page cache, so that the writer only needs to map its pages."""
        if self._fd >= 0:
            file_bytes.read_through(self._fd, start, min(end, self.allocated_end))

    def is_in_memory(self, start: int, end: int) -> bool:
        """Whether a look at this range waits for no disk."""
        return self._map is not None and file_bytes.is_in_memory(self._address + start, end - start)

    def write(self, start: int, data: memoryview) -> None:
        """Write to the file itself, not through the map. Blocks; OSError when the disk fails."""
        if self._fd < 0:
            self.open_for_write()
        file_bytes.write_all(self._fd, data, start)

    def write_together(self, start: int, pieces: Sequence[bytes | memoryview]) -> int:
        """Write pieces behind each other in one call, or the first of their bytes; return how many. As `write`."""
        if self._fd < 0:
            self.open_for_write()
        return os.pwritev(self._fd, pieces, start)

    def sync(self) -> None:
        """Wait until the disk has what was written so far, and the file's name.

        Not mmap.flush: it holds the interpreter lock while it waits.
        """
        if self._fd >= 0:
            os.fdatasync(self._fd)
        else:
            with file_bytes.closed_after(os.open(self.path, os.O_RDWR | os.O_CLOEXEC)) as fd:
                os.fdatasync(fd)
        if not self._is_named:
            file_bytes.sync_folder(self.path.parent)
            file_bytes.sync_folder(self.path.parent.parent)
            self._is_named = True

    def zero_from(self, position: int) -> None:
        """Erase everything from `position` on and make that durable: records of a stale tail must not come back."""
        self.open_for_write()
        file_bytes.zero_range(self._fd, position, self.size)
        self.allocated_end = 0
        os.fdatasync(self._fd)

    def finish(self) -> None:
        """The file is full and synced: close the descriptor and release the pages that only the writer used."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._map is not None:
            self._map.madvise(mmap.MADV_NORMAL)  # from now on it is only read, mostly in order
            file_bytes.release_pages(self._address, self.size)

    def modified_at(self) -> float:
        """When the file was last written, seconds since the epoch; retention goes by this, as RocketMQ's does."""
        return self.path.stat().st_mtime

    def delete(self) -> None:
        """Remove the name; readers keep their bytes until they release their views."""
        self.path.unlink(missing_ok=True)
        if self._map is not None:
            file_bytes.release_pages(
                self._address, self.size
            )  # a GiB of pages: to unmap them would hold the interpreter lock
        self.close()

    def close(self) -> None:
        """Release map and descriptor. Views that were handed out stay valid."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._map = None
        self._view = None

    def _open(self) -> None:
        fd = self._fd if self._fd >= 0 else os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._map = mmap.mmap(fd, self.size)
        finally:
            if fd != self._fd:
                os.close(fd)
        self._address = file_bytes.map_address(self._map)
