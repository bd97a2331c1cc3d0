"""Keeping freed memory in the process, so that the loop does not have to get it from the kernel again and again.

The C library gives the end of the heap back when a few hundred KiB of it are free. A broker under load takes and
frees a MiB each second (units on their way to the consume queues), so each second some 250 pages came anew: emptied by
the kernel and mapped one by one, in one turn of the loop, for 2 to 6 ms on a virtual machine.

What an unusual minute has left is given back all the same (ReturnOfMemory): half a gigabyte of requests that somebody
sent and nobody finished is of no use here, and others may want it.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

KEPT_BYTES = 64 << 20  # free memory at the heap's end that is kept: as much as glibc would at most by itself
MAPPED_FROM_BYTES = 8 << 20  # larger blocks come from the kernel and go back to it, each by itself
LOOK_PERIOD_S = 5.0
RETURNED_FROM_BYTES = 96 << 20  # free, at two looks one after the other: it is not only between two bursts
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Have malloc keep what is freed, for the whole process. False where the C library knows no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)) and bool(mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))


class ReturnOfMemory:
    """Gives the kernel back what has been free for a while, when it is much. Does nothing where malloc can't tell.

    Looking and giving back are done on a thread: malloc keeps its lock meanwhile, some ten milliseconds for half a
    gigabyte, which whoever left that much had cost before.
    """

    def __init__(
        self, *, free_bytes: Callable[[], int] | None = None, trim: Callable[[], object] | None = None
    ) -> None:
        library = ctypes.CDLL(None)
        self._free_bytes = free_bytes or _free_bytes_of(library)
        self._trim = trim or _trim_of(library)

    async def run(self) -> None:
        if self._free_bytes is None or self._trim is None:
            return
        was_much = False
        while True:
            await asyncio.sleep(LOOK_PERIOD_S)
            free_bytes = await asyncio.to_thread(self._free_bytes)
            is_much = free_bytes > RETURNED_FROM_BYTES
            if is_much and was_much:
                await asyncio.to_thread(self._trim)
                logger.info("memory given back", extra={"event": "memory_given_back", "bytes": free_bytes})
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
    """What tells how much malloc holds and nobody uses; None before glibc 2.33, and elsewhere."""
    mallinfo2 = getattr(library, "mallinfo2", None)
    if mallinfo2 is None:
        return None
    mallinfo2.restype = _Mallinfo2
    return lambda: int(mallinfo2().fordblks)


def _trim_of(library: ctypes.CDLL) -> Callable[[], object] | None:
    malloc_trim = getattr(library, "malloc_trim", None)
    return None if malloc_trim is None else lambda: malloc_trim(ctypes.c_size_t(0))
