"""A bounded set of open files for reading: ten thousand topics must not need as many descriptors."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path


class DescriptorCache:
    """Open-for-reading descriptors by path, the least recently used closed first. Used by one thread.

    A path is known again only in the form it came in: text where files are read a thousand times a second (a Path
    costs more than the read), a Path elsewhere.
    """

    def __init__(self, capacity: int = 128) -> None:
        self._capacity = capacity
        self._open: OrderedDict[str | Path, int] = OrderedDict()

    def read(self, path: str | Path, size_bytes: int, position: int) -> bytes:
        """Return up to `size_bytes` of the file, fewer at its end, none when the file does not exist."""
        fd = self._open.get(path)
        if fd is None:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return b""
            self._open[path] = fd
            if len(self._open) > self._capacity:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(path)
        return os.pread(fd, size_bytes, position)

    def forget(self, path: str | Path) -> None:
        """Close the file, if open: it is about to be deleted."""
        fd = self._open.pop(path, None)
        if fd is not None:
            os.close(fd)

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()
