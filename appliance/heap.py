"""Keeping freed memory in the process, so that the loop does not have to get it from the kernel again and again.

The C library gives the end of the heap back when a few hundred KiB of it are free. A broker under load takes and
frees a MiB each second (units on their way to the consume queues), so each second some 250 pages came anew: emptied by
the kernel and mapped one by one, in one turn of the loop, for 2 to 6 ms on a virtual machine.
"""

from __future__ import annotations

import ctypes

KEPT_BYTES = 64 << 20  # free memory at the heap's end that is kept: as much as glibc would at most by itself
MAPPED_FROM_BYTES = 8 << 20  # larger blocks come from the kernel and go back to it, each by itself
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Have malloc keep what is freed, for the whole process. False where the C library knows no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)) and bool(mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))
