"""How often a disk can be asked to keep what was written: what bounds a broker with SYNC_FLUSH."""

from __future__ import annotations

import os
import time
from pathlib import Path

_WRITE = bytes(1024)
_FILE_BYTES = 16 << 20


def fsyncs_per_s(folder: Path, seconds: float) -> float:
    """Writes of 1 KB, each followed by fdatasync, in a file whose blocks are allocated as a commit log's are."""
    path = folder / "fsync-rate"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, _FILE_BYTES)
        os.fsync(descriptor)
        count, start = 0, time.monotonic()
        while (taken_s := time.monotonic() - start) < seconds or not count:
            os.pwrite(descriptor, _WRITE, count * len(_WRITE) % _FILE_BYTES)
            os.fdatasync(descriptor)
            count += 1
        return count / taken_s
    finally:
        os.close(descriptor)
        path.unlink()
