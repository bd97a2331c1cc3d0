"""Getting records into the log's file: through its map, or with a write to the file.

A page that is new in the map costs a fault and the zeroing of bytes that are overwritten at once. So the pages ahead are
made by writing zeros: the kernel then takes them in large pieces where the file system can (ext4 since Linux 6.16, XFS),
and one fault maps such a piece whole. What follows is a copy in memory: the cheapest way for any number of records.
Where each page is a fault of its own, as in tmpfs, a write to the file costs less from 4 KiB on. Which of the two it is
shows in the number of faults while a file's first MiB is written.

Both ways see the same page cache, so either may follow the other, and readers need not know.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from records cimport gantry_compiler_barrier

cdef extern from "<unistd.h>" nogil:
    ssize_t gantry_pwrite "pwrite"(int fd, const void *data, size_t size, int64_t at)

cdef enum:
    WRITTEN_BYTES_MIN = 4 * 1024  # below it the way through the map costs less even with a fault for each page
    ZEROED_BYTES = 256 * 1024  # at a time: larger pieces cost hardly less, and the loop stands still for 0.05 ms
    WATCHED_BYTES = 1024 * 1024  # of a file: while they are written, faults are counted
    FILE_PAGE_BYTES = 4 * 1024
    FIRST_BYTES = 8  # size and magic; until they are there, a reader takes the place for the log's end

cdef extern from *:
    """
    #include <stdint.h>
    #include <sys/resource.h>
    #include <sys/uio.h>

    #ifndef RUSAGE_THREAD
    #define RUSAGE_THREAD RUSAGE_SELF
    #endif

    static const unsigned char gantry_zeros[64 * 1024];

    /* In vain: then faults make the pages. */
    static void gantry_write_zeros(int fd, int64_t start, int64_t end) {
        while (start < end) {
            struct iovec pieces[4];
            int count = 0;
            for (int64_t at = start; count < 4 && at < end; at += (int64_t)sizeof gantry_zeros) {
                pieces[count].iov_base = (void *)(uintptr_t)gantry_zeros;
                pieces[count++].iov_len = end - at < (int64_t)sizeof gantry_zeros ? (size_t)(end - at) : sizeof gantry_zeros;
            }
            ssize_t done = pwritev(fd, pieces, count, start);
            if (done <= 0)
                return;
            start += done;
        }
    }

    static int64_t gantry_thread_faults(void) {
        struct rusage used;
        return getrusage(RUSAGE_THREAD, &used) == 0 ? (int64_t)used.ru_minflt : 0;
    }
    """
    void gantry_write_zeros(int fd, int64_t start, int64_t end) nogil
    int64_t gantry_thread_faults() nogil

ctypedef struct LogPages:
    int64_t base  # where in the log the file begins of which the rest speaks
    int64_t zeroed_to  # below it the file's pages are there; it may be too low at any time
    int64_t watched, faults  # bytes that were copied into the map, and how many faults that took
    bint are_single  # each page is a fault of its own


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


cdef inline void put_records(
    LogPages *pages, int fd, uint8_t *target, const uint8_t *records, int64_t size, int64_t at, int64_t limit, bint is_waited_for
) noexcept nogil:
    """Bring records to `at` of a file, which is mapped at `target`; a descriptor of -1: there is only the map.

    is_waited_for: answers wait for the disk, which zeros would give more to write.
    """
    cdef int64_t before
    if fd < 0:
        put_into_map(target, records, size)
        return
    if size >= WRITTEN_BYTES_MIN and (pages.are_single or is_waited_for) and write_to_file(fd, records, size, at):
        return
    if at + size > pages.zeroed_to:
        zero_ahead(pages, fd, at, at + size, limit)
    if pages.watched >= WATCHED_BYTES:
        put_into_map(target, records, size)
        return
    before = gantry_thread_faults()
    put_into_map(target, records, size)
    pages.faults += gantry_thread_faults() - before
    pages.watched += size
    pages.are_single = pages.watched >= WATCHED_BYTES and pages.faults * 2 * FILE_PAGE_BYTES > pages.watched


cdef inline void zero_ahead(LogPages *pages, int fd, int64_t at, int64_t end, int64_t limit) noexcept nogil:
    """Fill pages with zeros: new ones from `at` on, to `end` and some behind it, none that reaches the limit.

    Only the writer may do so, and only behind all that is written: these are the zeros of a file that is new.
    """
    cdef int64_t start = max(pages.zeroed_to, (at + FILE_PAGE_BYTES - 1) // FILE_PAGE_BYTES * FILE_PAGE_BYTES)
    cdef int64_t stop = (end + ZEROED_BYTES) // ZEROED_BYTES * ZEROED_BYTES  # large pieces begin at multiples of their size
    stop = min(stop, limit // FILE_PAGE_BYTES * FILE_PAGE_BYTES)
    gantry_write_zeros(fd, start, stop)
    pages.zeroed_to = max(pages.zeroed_to, stop)
