# Part of compiled.pyx.


@cython.final
cdef class LogEnd:
    """The commit log's end, where the records of one call go: collected, and brought into the file together.

    Between `load` and `store` the numbers here count, and those of the Python object are behind. is_refusing: whether
    the broker takes no messages now.
    """

    cdef object _log, _state, _stats, _clock
    cdef int64_t _slow_ns  # given by the Python path
    cdef int64_t position, limit, prepare_at, timestamp, _base
    cdef int64_t _zeroed_to  # below it the log's pages are there; kept, since it may be too low at any time
    cdef Py_buffer _map
    cdef bint has_map, is_refusing
    cdef uint8_t *_records  # of this call, up to `position`; not in the file yet
    cdef int64_t _records_size

    def __cinit__(self):
        self._records = <uint8_t *> malloc(RECORDS_BYTES)
        if not self._records:
            raise MemoryError

    def __dealloc__(self):
        free(self._records)

    def __init__(self, store_parts, int64_t slow_ns):
        self._log, self._state, self._stats = store_parts.log, store_parts.state, store_parts.stats
        self._clock = None if store_parts.clock is time.time else store_parts.clock
        self._slow_ns = slow_ns

    cdef int load(self) except -1:
        log = self._log
        self.position = log.position
        self._base = log.base
        self.limit = log.limit
        self.prepare_at = min(log.prepare_at, 0x7FFFFFFFFFFFFFFF)
        self.timestamp = log.store_timestamp
        mapping = log.map
        if mapping is not None:
            PyObject_GetBuffer(mapping, &self._map, PyBUF_WRITABLE)
            self.has_map = True
        return 0

    cdef int store(self) except -1:
        self._write_records()
        self._log.position = self.position
        self._log.store_timestamp = self.timestamp
        return 0

    cdef int release(self) except -1:
        if self.has_map:
            self.has_map = False
            PyBuffer_Release(&self._map)
        return 0

    cdef bint make_room(self, int64_t size) except -1:
        """Have the log make room as the Python path does; False: there is no space."""
        cdef bint has_room
        self.store()
        self.release()
        try:
            has_room = self._log.make_room(size)
        finally:
            self.load()
        return has_room and self.has_map and self.position + size <= self.limit

    cdef int request_prepare(self) except -1:
        self.store()
        self._log.request_prepare()
        self.limit = self._log.limit
        self.prepare_at = min(self._log.prepare_at, 0x7FFFFFFFFFFFFFFF)
        return 0

    cdef int64_t now_ms(self) except -1:
        cdef timespec now
        if self._clock is not None:
            return int(self._clock() * 1000)
        clock_gettime(CLOCK_REALTIME, &now)
        return now.tv_sec * 1000 + now.tv_nsec // 1000000

    cdef int add(self, Message *message, Common *common, int64_t queue_offset) except -1:
        """Put a record behind the others of this call."""
        cdef uint8_t *at
        if self._records_size + message.size > RECORDS_BYTES:
            self._write_records()
            if message.size > RECORDS_BYTES:
                return self._write_large(message, common, queue_offset)
        at = put_head(self._records + self._records_size, message, common, queue_offset)
        put_end(put_bytes(at, message.body, message.body_size), message, common)
        self._records_size += message.size
        return 0

    cdef int _write_records(self) except -1:
        """Bring the records of this call, which end at `position`, into the log."""
        cdef int64_t started, size = self._records_size, at = self.position - size - self._base
        cdef int fd
        if not size:
            return 0
        self._records_size = 0
        started = monotonic_ns()
        if size < WRITTEN_BYTES_MIN:
            if self.position > self._zeroed_to:
                self._zeroed_to = self._base + zero_ahead(self._log.descriptor, at, self.limit - self._base)
            put_into_map(<uint8_t *> self._map.buf + at, self._records, size)
        else:
            fd = self._log.descriptor
            if fd < 0 or not write_to_file(fd, self._records, size, at):
                put_into_map(<uint8_t *> self._map.buf + at, self._records, size)
        self.note_slow(monotonic_ns() - started)
        return 0

    cdef int _write_large(self, Message *message, Common *common, int64_t queue_offset) except -1:
        """Write one record whose body is too large to be copied first."""
        cdef int64_t started = monotonic_ns(), at = self.position - self._base, end_size
        cdef uint8_t *end = put_head(self._records, message, common, queue_offset)
        cdef uint8_t *target
        cdef int fd = self._log.descriptor
        end_size = put_end(end, message, common) - end
        if (
            fd < 0
            or not write_all(fd, end, end_size, at + HEAD_BYTES + message.body_size)
            or not write_all(fd, message.body, message.body_size, at + HEAD_BYTES)
            or not write_to_file(fd, self._records, HEAD_BYTES, at)
        ):
            target = <uint8_t *> self._map.buf + at
            put_bytes(put_bytes(target + HEAD_BYTES, message.body, message.body_size), end, end_size)
            put_into_map(target, self._records, HEAD_BYTES)
        self.note_slow(monotonic_ns() - started)
        return 0

    cdef int note_slow(self, int64_t elapsed_ns) except -1:
        if elapsed_ns >= self._slow_ns:
            self._stats.slow_put(elapsed_ns // 1000000)
            self._state.note_append(elapsed_ns / 1e9)
            self.is_refusing = self._state.refusal is not None
        return 0
