# Part of compiled.pyx.

ctypedef enum IndexWay:
    NO_INDEX
    INDEX_AT_ONCE  # straight into the mapped file
    INDEX_LATER  # into the list of what is pending, as the Python path does


@cython.final
cdef class KeyIndex:
    """The keys of what is stored during one call, on their way into the index. It owns nothing between two calls.

    Entries are made first, which can fail; they count from `place` on, when their messages are stored.
    """

    cdef object _index, _dispatcher, _open_file
    cdef int64_t _pending_max  # given by the Python path, which waits for as many
    cdef IndexWay way
    cdef Py_buffer _map
    cdef bint _has_map
    cdef IndexFile _file
    cdef Entry *_entries
    cdef int _count, _new  # entries that count, and those behind them that do not yet

    def __cinit__(self):
        self._entries = <Entry *> malloc(ENTRIES_MAX * sizeof(Entry))
        if not self._entries:
            raise MemoryError

    def __dealloc__(self):
        free(self._entries)

    def __init__(self, index, dispatcher, int64_t pending_max):
        self._index, self._dispatcher, self._pending_max = index, dispatcher, pending_max

    cdef int begin(self) noexcept:
        self.way = NO_INDEX
        self._has_map = False
        self._count = self._new = 0
        return 0

    cdef int begin_request(self, int64_t position) except -1:
        """Decide, at the first request of a call, how keys get into the index. position: of the log's end."""
        self._new = 0
        if self.way == NO_INDEX and self._index.enabled:
            self._open(position)
        return 0

    cdef int hash(self, uint32_t prefix, const uint8_t *properties, Marks *marks) except -2:
        """Make a message's entries; return how many, -1: a key is no UTF-8, or there is no room."""
        cdef int end = self._count + self._new, start = end
        if not hash_keys(prefix, properties, marks, self._entries, ENTRIES_MAX, &end):
            return -1
        self._new = end - self._count
        return end - start

    cdef bint has_made_room(self) except -1:
        """Write the entries that count, and forget the request's; False: there was nothing to write."""
        self._new = 0
        if not self._count:
            return False
        self._write()
        return True

    cdef int end_request(self) except -1:
        """Leave the keys to the Python path from here on where the request's do not fit into the file."""
        if self._file.count + self._count + self._new > self._file.count_end:
            self.close()
            self.way = INDEX_LATER
        return 0

    cdef int place(self, int number, int64_t position, int64_t timestamp) noexcept:
        """Have the next entries count: their message is stored there."""
        cdef Entry *entry = &self._entries[self._count]
        self._count += number
        self._new -= number
        while number:
            entry.physical_offset, entry.timestamp = position, timestamp
            entry += 1
            number -= 1
        return 0

    cdef int leave(
        self, uint32_t prefix, const uint8_t *properties, int32_t size, int64_t position, int64_t timestamp
    ) except -1:
        """Leave a message's keys to the Python path: the index file is full, new, or has no disk blocks."""
        self._index.pending.append((prefix, PyBytes_FromStringAndSize(<char *> properties, size), position, timestamp))
        return 0

    cdef int bound_pending(self) except -1:
        if len(self._index.pending) >= self._pending_max:
            self._dispatcher.put_pending()
        return 0

    cdef int _open(self, int64_t position) except -1:
        """Map the file if keys can go straight into it."""
        index = self._index
        self.way = INDEX_LATER
        if index.pending:
            self._dispatcher.put_pending()  # entries stand in the order of the log
        file = index.active
        if file is None or index.pending or not index.enabled:
            return 0
        if file.count <= 1 or file.begin_ms <= 0 or position < file.end_offset:
            return 0
        self._file.slots, self._file.entries_at = file.slots, file.entries_at
        self._file.begin_ms, self._file.begin_offset = file.begin_ms, file.begin_offset
        self._file.used_slots, self._file.count = file.used_slots, file.count
        self._file.count_end = min(file.allocated_entries, file.entries)
        PyObject_GetBuffer(file.map, &self._map, PyBUF_WRITABLE)
        self._has_map = True
        self._file.map = <uint8_t *> self._map.buf
        self._open_file = file
        self.way = INDEX_AT_ONCE
        return 0

    cdef int _write(self) except -1:
        cdef Entry *last
        if self._count:
            put_entries(&self._file, self._entries, self._count)
            last = &self._entries[self._count - 1]
            file = self._open_file
            # A syncing thread vouches for what `end_offset` says and passes over files that are not dirty: first the
            # entries are in the map, then the file is dirty, and only then it says that it has them.
            file.dirty = True
            file.count, file.used_slots = self._file.count, self._file.used_slots
            file.end_offset, file.end_ms = last.physical_offset, last.timestamp
            self._count = 0
        return 0

    cdef int close(self) except -1:
        if self._has_map:
            self._write()
            self._has_map = False
            PyBuffer_Release(&self._map)
            self._open_file = None
        return 0
