"""The key index: hashes of a message's keys, and runs of entries in the mapped file (store/index/file.py)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from bytes_in_order cimport get32, put32, put64
from properties cimport Marks
from texts cimport java_hash

cdef enum:
    INDEX_HEADER_BYTES = 40
    ENTRY_BYTES = 20

ctypedef struct Entry:
    uint32_t key_hash
    int64_t physical_offset
    int64_t timestamp

ctypedef struct IndexFile:
    uint8_t *map
    int64_t slots
    int64_t entries_at
    int64_t begin_ms
    int64_t begin_offset
    int64_t used_slots
    int64_t count
    int64_t count_end  # entries from this number on have no disk blocks yet


cdef inline uint32_t index_hash(uint32_t hashed) noexcept nogil:
    """The absolute value of Java's hash; 0 for the one that has none."""
    return hashed if hashed < 0x80000000u else (0 - hashed) & 0x7FFFFFFF


cdef inline bint hash_keys(
    uint32_t prefix, const uint8_t *properties, Marks *marks, Entry *entries, int entries_max, int *count
) noexcept nogil:
    """Add an entry's hash for the unique key and for each other key. False: no UTF-8, or more than there is room for."""
    cdef uint32_t hashed
    cdef int32_t start, stop, end
    if marks.unique_key.at >= 0:
        hashed = prefix
        if count[0] >= entries_max:
            return False
        if not java_hash(properties + marks.unique_key.at, marks.unique_key.size, &hashed):
            return False
        entries[count[0]].key_hash = index_hash(hashed)
        count[0] += 1
    if marks.keys.at < 0:
        return True
    start = marks.keys.at
    end = start + marks.keys.size
    while start < end:
        stop = start
        while stop < end and properties[stop] != 32:
            stop += 1
        if stop > start:
            hashed = prefix
            if count[0] >= entries_max or not java_hash(properties + start, stop - start, &hashed):
                return False
            entries[count[0]].key_hash = index_hash(hashed)
            count[0] += 1
        start = stop + 1
    return True


cdef inline void put_entries(IndexFile *file, const Entry *entries, int count) noexcept nogil:
    """Link entries and count them. The caller has seen to it that there is room."""
    cdef int index
    cdef int64_t seconds, previous
    cdef uint8_t *slot
    cdef uint8_t *at
    cdef const Entry *entry
    for index in range(count):  # the misses of all slots overlap; below each would be waited for
        __builtin_prefetch(file.map + INDEX_HEADER_BYTES + 4 * (entries[index].key_hash % file.slots))
    for index in range(count):
        entry = &entries[index]
        slot = file.map + INDEX_HEADER_BYTES + 4 * (entry.key_hash % file.slots)
        previous = <int32_t>get32(slot)
        if previous <= 0 or previous >= file.count:
            previous = 0
            file.used_slots += 1
        seconds = (entry.timestamp - file.begin_ms) // 1000 if entry.timestamp > file.begin_ms else 0
        if seconds > 0x7FFFFFFF:
            seconds = 0x7FFFFFFF
        at = put64(put32(file.map + file.entries_at + ENTRY_BYTES * file.count, entry.key_hash), entry.physical_offset)
        put32(put32(at, <uint32_t>seconds), <uint32_t>previous)
        put32(slot, <uint32_t>file.count)
        file.count += 1
    at = put64(put64(file.map, file.begin_ms), entries[count - 1].timestamp)
    at = put64(put64(at, file.begin_offset), entries[count - 1].physical_offset)
    put32(put32(at, <uint32_t>file.used_slots), <uint32_t>file.count)


cdef extern from *:
    void __builtin_prefetch(const void *at) nogil
