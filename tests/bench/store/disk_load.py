"""A process that writes a file as the store writes its log: mapped, at a rate, synced each interval or never.

    python -m tests.bench.store.disk_load FILE BYTES BYTES_A_SECOND SYNC_INTERVAL_S

It goes on from the start when the file is full, until it is ended. With it, what the disk's work does to a process
that has nothing to do with the disk can be measured.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from store.base import file_bytes

RECORD_BYTES = 1200
RECORDS_A_TURN = 16
AHEAD_BYTES = 16 << 20


def write(path: Path, size_bytes: int, rate_bytes: int, sync_interval_s: float) -> None:
    """Never returns."""
    fd = file_bytes.create_sized(path, size_bytes)
    file_bytes.allocate_range(fd, 0, size_bytes)
    mapped = mmap.mmap(fd, size_bytes)
    mapped.madvise(mmap.MADV_RANDOM)
    if sync_interval_s:
        threading.Thread(target=_sync, args=(fd, sync_interval_s), daemon=True).start()
    record = os.urandom(RECORD_BYTES)
    position = warm_to = written = 0
    started = time.monotonic()
    while True:
        if position + RECORD_BYTES > size_bytes:
            position = warm_to = 0
        if position + RECORD_BYTES * RECORDS_A_TURN > warm_to:
            file_bytes.read_through(fd, warm_to, min(warm_to + AHEAD_BYTES, size_bytes))
            warm_to += AHEAD_BYTES
        for at in range(position, min(position + RECORD_BYTES * RECORDS_A_TURN, size_bytes), RECORD_BYTES):
            if at + RECORD_BYTES <= size_bytes:
                mapped[at : at + RECORD_BYTES] = record
        position += RECORD_BYTES * RECORDS_A_TURN
        written += RECORD_BYTES * RECORDS_A_TURN
        if (ahead_s := written / rate_bytes - (time.monotonic() - started)) > 0:
            time.sleep(min(ahead_s, 0.01))  # the load has a rate


@contextmanager
def running(path: Path, size_bytes: int, rate_bytes: int, sync_interval_s: float) -> Iterator[None]:
    """While the block runs, another process writes this file; it is removed at the end."""
    arguments = [str(path), str(size_bytes), str(rate_bytes), str(sync_interval_s)]
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.store.disk_load", *arguments])
    try:
        yield
        if process.poll() is not None:
            raise OSError(f"the process that loads the disk has ended by itself, with {process.returncode}")
    finally:
        process.kill()
        process.wait()
        path.unlink(missing_ok=True)


def _sync(fd: int, interval_s: float) -> None:
    while True:
        time.sleep(interval_s)  # as often as a broker syncs
        os.fdatasync(fd)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
