"""The transient pool (transientStorePoolEnable): appends go to anonymous memory first, and to the files a little later.

What it is for: a writer never waits for the page cache, whatever the disk does. What it costs: a killed process loses
what was acknowledged in the last 200 ms; so it is off by default, and never used with SYNC_FLUSH. No message is shown
before its file has it, so no consumer has seen what a crash takes back (RocketMQ: MappedFile.writeBuffer,
CommitRealTimeService).

Each file has a buffer of its size; only what is not committed yet takes memory. When that is much, the writer commits.
"""

from __future__ import annotations

import asyncio
import mmap
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from store.base import file_bytes
from store.base.config import PAGE_BYTES
from store.log.mapped_file import MappedFile

WAITING_BYTES_MAX = 128 << 20
Arrival = tuple[str, int, int, Sequence[int]]


class _Buffer:
    """The bytes that one file has not got yet, at the positions they have in the file."""

    __slots__ = ("address", "end", "file", "map")

    def __init__(self, file: MappedFile) -> None:
        self.file = file
        self.end = file.end  # where the log goes on in the next file: behind the blank record
        self.map = mmap.mmap(-1, file.size)
        self.address = file_bytes.map_address(self.map)


class TransientPool:
    """The buffers that are not committed yet, oldest first. `commit` may run on any thread."""

    def __init__(self) -> None:
        self.committed = 0  # the files have the log up to here
        self._buffers: list[_Buffer] = []
        self._lock = threading.Lock()

    def prepare(self, file: MappedFile) -> _Buffer:
        """Return memory for the file. OSError when there is none; nothing has changed then."""
        return _Buffer(file)

    def open(self, buffer: _Buffer) -> mmap.mmap:
        """Have it stand for its file from now on; return the memory."""
        self._buffers.append(buffer)
        return buffer.map

    def end_file(self, end: int) -> None:
        """The newest file is full: its last byte is before this physical offset."""
        if self._buffers:
            self._buffers[-1].end = end

    def commit(self, end: int) -> None:
        """Write what was appended below `end` to its files. Blocks. After OSError the rest waits for the next time."""
        with self._lock:
            for buffer in list(self._buffers):
                base = buffer.file.base
                start, stop = max(self.committed, base) - base, min(end, buffer.end) - base
                if start < stop:
                    with memoryview(buffer.map) as view, view[start:stop] as data:
                        buffer.file.write(start, data)
                    self.committed = base + stop
                    whole = stop - stop % PAGE_BYTES
                    first = start - start % PAGE_BYTES
                    file_bytes.release_pages(buffer.address + first, whole - first)
                if buffer.end <= end and buffer is not self._buffers[-1]:
                    self.committed = max(self.committed, buffer.file.end)
                    self._buffers.remove(buffer)

    def close(self) -> None:
        """Forget what was not committed."""
        self._buffers.clear()


class Committer:
    """Commits each interval, and only then calls the arrival listener."""

    def __init__(self, commit: Callable[[], None], interval_ms: int, executor: Executor) -> None:
        self._commit = commit
        self._interval_s = interval_ms / 1000
        self._executor = executor
        self._arrivals: list[Arrival] = []

    def note(self, topic: str, queue_id: int, queue_offset: int, tags_codes: Sequence[int]) -> None:
        """Remember an arrival; called in place of the arrival listener."""
        self._arrivals.append((topic, queue_id, queue_offset, tags_codes))

    async def run(self, listener: Callable[..., None], on_failure: Callable[[OSError], None]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._interval_s)
            arrivals, self._arrivals = self._arrivals, []
            try:
                await loop.run_in_executor(self._executor, self._commit)
            except OSError as exc:
                on_failure(exc)
                return
            for arrival in arrivals:
                listener(*arrival)
