"""The units of a consume queue, as a pull walks along them (store/unit_scan.py has the rules of all cases)."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from bytes_in_order cimport get32, get64
from records cimport UNIT_BYTES

cdef enum:
    FILLER_SIZE = 0x7FFFFFFF
    CODES_MAX = 32  # tags of a subscription; with more the Python path looks
    RUNS_MAX = 512

ctypedef struct Run:
    # Records side by side.
    int64_t start
    int64_t end

ctypedef struct Walk:
    # What is wanted.
    int64_t codes[CODES_MAX]
    int code_count  # -1: every message
    int32_t count_max
    int64_t bytes_max
    int64_t first_allowed  # older records may not be in memory
    int64_t end_allowed  # those behind it may not be shown
    # What was found.
    Run runs[RUNS_MAX]
    int run_count
    int32_t count
    int64_t size
    int64_t passed  # units decided about
    bint is_full


cdef inline bint is_wanted(Walk *walk, int64_t code) noexcept nogil:
    cdef int index
    if walk.code_count < 0:
        return True
    for index in range(walk.code_count):
        if walk.codes[index] == code:
            return True
    return False


cdef inline bint walk_units(Walk *walk, const uint8_t *units, int64_t count) noexcept nogil:
    """Decide about units until the answer is full. False: one of them is for the Python path."""
    cdef int64_t index, position, size, code
    cdef int64_t ext_address_max = -(<int64_t>1 << 31) - 1  # so low a third field is a place in the extension
    for index in range(count):
        position = <int64_t>get64(units + UNIT_BYTES * index)
        size = <int32_t>get32(units + UNIT_BYTES * index + 8)
        code = <int64_t>get64(units + UNIT_BYTES * index + 12)
        if size == FILLER_SIZE or size <= 0 or position < walk.first_allowed or code <= ext_address_max:
            return False
        if walk.count >= walk.count_max or (walk.count and walk.size + size > walk.bytes_max):
            walk.is_full = True
            return True
        if position >= walk.end_allowed or position + size > walk.end_allowed:
            return False
        walk.passed += 1
        if not is_wanted(walk, code):
            continue
        if walk.run_count and walk.runs[walk.run_count - 1].end == position:
            walk.runs[walk.run_count - 1].end = position + size
        elif walk.run_count < RUNS_MAX:
            walk.runs[walk.run_count].start, walk.runs[walk.run_count].end = position, position + size
            walk.run_count += 1
        else:
            return False
        walk.count += 1
        walk.size += size
    return True


cdef inline void copy_runs(uint8_t *target, Walk *walk, const uint8_t *file, int64_t base) noexcept nogil:
    cdef int index
    cdef int64_t size
    for index in range(walk.run_count):
        size = walk.runs[index].end - walk.runs[index].start
        memcpy(target, file + (walk.runs[index].start - base), size)
        target += size
