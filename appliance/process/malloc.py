"""Settings of the C library's allocator: freed memory stays in the process instead of going back and forth.

By default the C library returns the end of the heap to the kernel when a few hundred KiB of it are free. A broker under
load allocates and frees a MiB each second (units on their way to the consume queues), so each second some 250 pages
were mapped again, zeroed by the kernel one by one, in one turn of the loop: 2 to 6 ms on a virtual machine.

MemoryTrimmer still returns what is left after a peak: half a gigabyte of unfinished requests would stay allocated
forever, and other processes may need that memory.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

KEPT_BYTES = 64 << 20  # free memory at the heap's end that is kept: the most that glibc's own adaptation would keep
MAPPED_FROM_BYTES = 8 << 20  # larger blocks are mapped and unmapped one by one
LOOK_PERIOD_S = 5.0
RETURNED_FROM_BYTES = 96 << 20  # free at two looks in a row; one look could fall between two bursts
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Make malloc keep freed memory, in the whole process. Returns False where the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)) and bool(mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))


class MemoryTrimmer:
    """Returns memory to the kernel when much of it has been free for a while. Needs malloc's statistics (glibc 2.33).

    kept_bytes: of what the program has freed, as much is still resident, as of the last look; 0 where malloc does not
    tell. malloc counts what was returned to the kernel as free, too, until it is used again.

    Both calls run on a thread, for they take about ten milliseconds for half a gigabyte. malloc holds its lock
    meanwhile, so allocations of other threads wait; that happens once after a peak.
    """

    def __init__(
        self, *, free_bytes: Callable[[], int] | None = None, trim: Callable[[], object] | None = None
    ) -> None:
        library = ctypes.CDLL(None)
        self._free_bytes = free_bytes or _free_bytes_of(library)
        self._trim = trim or _trim_of(library)
        self.kept_bytes = 0
        self._returned_bytes = 0

    async def run(self) -> None:
        if self._free_bytes is None or self._trim is None:
            return
        was_much = False
        while True:
            await asyncio.sleep(LOOK_PERIOD_S)
            free_bytes = await asyncio.to_thread(self._free_bytes)
            self._returned_bytes = min(self._returned_bytes, free_bytes)
            self.kept_bytes = free_bytes - self._returned_bytes
            is_much = free_bytes > RETURNED_FROM_BYTES
            if is_much and was_much:
                await asyncio.to_thread(self._trim)
                self.kept_bytes, self._returned_bytes = 0, free_bytes
                logger.info("memory released", extra={"event": "memory_given_back", "bytes": free_bytes})
            was_much = is_much and not was_much


class _Mallinfo2(ctypes.Structure):
    """struct mallinfo2 of glibc's malloc.h."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def _free_bytes_of(library: ctypes.CDLL) -> Callable[[], int] | None:
    """Return a function that reports malloc's free bytes; None before glibc 2.33 and with other C libraries."""
    mallinfo2 = getattr(library, "mallinfo2", None)
    if mallinfo2 is None:
        return None
    mallinfo2.restype = _Mallinfo2
    return lambda: int(mallinfo2().fordblks)


def _trim_of(library: ctypes.CDLL) -> Callable[[], object] | None:
    malloc_trim = getattr(library, "malloc_trim", None)
    return None if malloc_trim is None else lambda: malloc_trim(ctypes.c_size_t(0))
