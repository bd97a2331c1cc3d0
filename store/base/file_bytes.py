"""The few things a file needs that Python lacks or does with the interpreter locked: allocate, zero, warm, write all.

Each may block on the disk, so a running store calls them from threads; ctypes releases the interpreter meanwhile.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

_FALLOC_KEEP_SIZE = 1
_FALLOC_PUNCH_HOLE = 2
_MADV_DONTNEED = 4
_ZEROS = bytes(1 << 20)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


@contextlib.contextmanager
def closed_after(fd: int) -> Iterator[int]:
    """The descriptor, which is closed when the block ends."""
    try:
        yield fd
    finally:
        os.close(fd)


def create_sized(path: Path, size_bytes: int) -> int:
    """Open a file for reading and writing, made sparse and of this size when it is new; return the descriptor."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if os.fstat(fd).st_size < size_bytes:
            os.ftruncate(fd, size_bytes)
    except OSError:
        os.close(fd)
        raise
    return fd


def allocate_range(fd: int, start: int, end: int) -> None:
    """Give the range disk blocks. OSError (ENOSPC) here is what would be a fatal SIGBUS at a write through a map."""
    if end > start:
        os.posix_fallocate(fd, start, end - start)


def zero_range(fd: int, start: int, end: int) -> None:
    """Make the range read as zeros, on disk too once the caller has synced."""
    if end <= start:
        return
    if _libc.fallocate(fd, _FALLOC_KEEP_SIZE | _FALLOC_PUNCH_HOLE, start, end - start) == 0:
        return
    error = ctypes.get_errno()
    if error not in (errno.EOPNOTSUPP, errno.ENOSYS):
        raise OSError(error, os.strerror(error))
    while start < end:
        start += os.pwrite(fd, _ZEROS[: end - start], start)


def write_all(fd: int, data: bytes | memoryview, position: int) -> None:
    """pwrite until everything is written."""
    written = os.pwrite(fd, data, position)
    while written < len(data):
        written += os.pwrite(fd, data[written:], position + written)


def sync_folder(folder: Path) -> None:
    """Make created, renamed and deleted names of a folder durable."""
    with (
        closed_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd,
        contextlib.suppress(OSError),  # some network file systems can't; their names are durable at once
    ):
        os.fsync(fd)


def sync_file_system(folder: Path) -> None:
    """Sync everything written to the folder's file system: for ten thousand files the shorter way."""
    with closed_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
        if _libc.syncfs(fd) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))


def map_address(mapping: mmap.mmap) -> int:
    """Return where a writable map lies. The caller keeps the map alive while it uses the address."""
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))


def is_in_memory(address: int, size_bytes: int) -> bool:
    """Whether all pages of a map's range are in the page cache, so that a look at them waits for no disk."""
    start = address - address % mmap.PAGESIZE
    pages = -(-(address + size_bytes - start) // mmap.PAGESIZE)
    told = ctypes.create_string_buffer(pages)
    if _libc.mincore(start, pages * mmap.PAGESIZE, told) != 0:
        return False
    return told.raw.count(1) == pages


def read_through(fd: int, start: int, end: int) -> None:
    """Send a range nowhere: what counts is that the page cache has its pages afterwards.

    One call, since a thread that comes back for the interpreter takes it from the loop each time. MADV_POPULATE_WRITE
    would map the pages too, but makes them dirty: flushed before they are used, they are written twice.
    """
    with closed_after(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)) as nowhere:
        while start < end:
            sent = os.sendfile(nowhere, fd, start, end - start)
            if not sent:
                return
            start += sent


def release_pages(address: int, size_bytes: int) -> None:
    """Take a shared map's pages out of this process; the page cache and the file keep them."""
    _libc.madvise(address, size_bytes, _MADV_DONTNEED)


def data_ranges(path: Path, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file that own disk blocks; on file systems that can't tell, everything is one range."""
    with closed_after(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as fd:
        end = min(end, os.fstat(fd).st_size)
        while start < end:
            try:
                begin = os.lseek(fd, start, os.SEEK_DATA)
            except OSError as exc:
                if exc.errno == errno.ENXIO:
                    return  # nothing but a hole
                yield start, end
                return
            if begin >= end:
                return
            start = min(os.lseek(fd, begin, os.SEEK_HOLE), end)
            yield begin, start


def has_data(path: Path, start: int, end: int) -> bool:
    """Say if any byte of the range is not zero."""
    for begin, stop in data_ranges(path, start, end):
        with path.open("rb") as file:
            while begin < stop:
                data = os.pread(file.fileno(), min(len(_ZEROS), stop - begin), begin)
                if not data:
                    break
                if data != _ZEROS[: len(data)]:
                    return True
                begin += len(data)
    return False
