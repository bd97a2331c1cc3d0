"""Getting records into the log's file: a few bytes through its map, more with a write to the file.

A page that is new in the map costs the fault and the zeroing of bytes that are overwritten at once. The kernel neither
faults nor zeroes where a write fills whole pages; but a write costs what three records of 1 KB do. Both see the same
page cache, so either may follow the other, and readers need not know.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from records cimport gantry_compiler_barrier

cdef extern from "<unistd.h>" nogil:
    ssize_t gantry_pwrite "pwrite"(int fd, const void *data, size_t size, int64_t at)

cdef enum:
    WRITTEN_BYTES_MIN = 4 * 1024  # below it the way through the map costs less
    ZEROED_BYTES = 64 * 1024  # ahead of what goes through the map: pages that are there, so a fault only maps them
    FILE_PAGE_BYTES = 4 * 1024
    FIRST_BYTES = 8  # size and magic; until they are there, a reader takes the place for the log's end

cdef extern from *:
    """
    static const unsigned char gantry_zeros[64 * 1024];
    """
    const uint8_t gantry_zeros[]


cdef inline bint write_all(int fd, const uint8_t *data, int64_t size, int64_t at) noexcept nogil:
    """Write to the file; False when it did not take everything."""
    cdef ssize_t done
    while size > 0:
        done = gantry_pwrite(fd, data, size, at)
        if done <= 0:
            return False
        data += done
        size -= done
        at += done
    return True


cdef inline void put_into_map(uint8_t *target, const uint8_t *records, int64_t size) noexcept nogil:
    """Copy records into the map, the first eight bytes last."""
    memcpy(target + FIRST_BYTES, records + FIRST_BYTES, size - FIRST_BYTES)
    gantry_compiler_barrier()
    memcpy(target, records, FIRST_BYTES)


cdef inline bint write_to_file(int fd, const uint8_t *records, int64_t size, int64_t at) noexcept nogil:
    """Write records to the file, the first eight bytes last; False: not all of it is there."""
    return write_all(fd, records + FIRST_BYTES, size - FIRST_BYTES, at + FIRST_BYTES) and write_all(
        fd, records, FIRST_BYTES, at
    )


cdef inline int64_t zero_ahead(int fd, int64_t at, int64_t limit) noexcept nogil:
    """Fill the pages behind `at`, none from `limit` on, with zeros. Return where they end.

    Only the writer may do so, and only behind all that is written: these are the zeros of a file that is new.
    """
    cdef int64_t start = (at + FILE_PAGE_BYTES - 1) // FILE_PAGE_BYTES * FILE_PAGE_BYTES
    cdef int64_t end = min(start + ZEROED_BYTES, limit // FILE_PAGE_BYTES * FILE_PAGE_BYTES)
    if fd >= 0 and start < end:
        write_all(fd, gantry_zeros, end - start, start)  # in vain: then the fault makes the page
    return start + ZEROED_BYTES
