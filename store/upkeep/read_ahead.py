"""Reading old records into the page cache before they are looked at, so that the loop waits for no disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def read_places(places: Iterable[tuple[Path, int, int]]) -> None:
    """Read (file, start, bytes) into the page cache. Blocks. Errors are left to the reader, who gets them again."""
    opened: dict[Path, int] = {}
    try:
        for path, start, size_bytes in places:
            if path not in opened:
                opened[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            os.pread(opened[path], size_bytes, start)
    except OSError:
        return
    finally:
        for fd in opened.values():
            os.close(fd)
