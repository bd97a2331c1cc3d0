# Part of compiled.pyx.


cdef class FastDispatch:
    """Feeds queues and key index from plain records that lie in the log: of a copy, and of a start.

    parts: see store/parts.py. What it does with a record is what Dispatcher.redispatch does; the first that is not
    plain ends a call, and that one is Python's. It owns nothing between two calls. count: what the last call fed.
    """

    cdef readonly int64_t count
    # borrowed for good
    cdef object _log, _queues
    cdef KeyIndex _keys
    cdef dict _slots
    # of one call: the topic of the record before
    cdef const uint8_t *_topic_at
    cdef int32_t _topic_size
    cdef object _slot
    cdef tuple _first
    cdef uint32_t _prefix_hash

    def __init__(self, parts, int64_t pending_max):
        self._keys = KeyIndex(parts.index, parts.dispatcher, pending_max)
        self._log = parts.log
        self._queues = parts.queues
        self._slots = parts.queues.slots

    def feed(
        self, view, int64_t base, Py_ssize_t position, Py_ssize_t last, bint check_crc, dict arrived
    ):
        """Feed from the records of `view` that start at `position` … `last`; return where the first other one starts.

        base: physical offset of the view's first byte. arrived: gets for each queue its first new offset and the codes.
        """
        cdef Py_buffer data
        cdef const uint8_t *at
        cdef Stored stored
        cdef int64_t timestamp = -1
        self.count = 0
        self._topic_at = NULL
        self._keys.begin()
        PyObject_GetBuffer(view, &data, PyBUF_SIMPLE)
        try:
            at = <const uint8_t *> data.buf
            while 0 <= position <= last and position < data.len:
                if not read_stored(at + position, data.len - position, base + position, check_crc, &stored):
                    break
                if not self._feed_one(&stored, base + position, arrived):
                    break
                timestamp = stored.timestamp
                position += stored.size
                self.count += 1
        finally:
            if self.count:
                self._log.store_timestamp = timestamp
            self._keys.close()
            self._slot = self._first = None
            PyBuffer_Release(&data)
        return position

    cdef bint _feed_one(self, Stored *stored, int64_t physical_offset, dict arrived) except -1:
        """Feed from one record; False: it is for the Python path, and nothing has changed."""
        cdef uint32_t hashed = 0
        cdef int new_entries
        if not self._find_slot(stored) or not find_stored_marks(
            stored.properties, stored.properties_size, &stored.marks
        ):
            return False
        queue = self._queue(stored.queue_id)
        if queue is None or queue.next_index != stored.queue_offset or self._end_of(queue) > physical_offset:
            return False
        if stored.marks.tags.at >= 0 and not java_hash(
            stored.properties + stored.marks.tags.at, stored.marks.tags.size, &hashed
        ):
            return False
        stored.code = <int32_t> hashed
        new_entries = self._hash_keys(stored, physical_offset)
        if new_entries < 0:
            return False
        self._put_unit(queue, stored, physical_offset, arrived)
        self._put_keys(stored, physical_offset, new_entries)
        return True

    cdef bint _find_slot(self, Stored *stored) except -1:
        """Look the topic up, unless it is that of the record before. False: it is new, or its units are no tags."""
        cdef PyObject *found
        if (
            self._topic_at != NULL
            and self._topic_size == stored.topic_size
            and memcmp(self._topic_at, stored.topic, stored.topic_size) == 0
        ):
            return True
        self._topic_at = NULL
        if not is_utf8(stored.topic, stored.topic + stored.topic_size):
            return False
        topic = PyUnicode_DecodeUTF8(<char *> stored.topic, stored.topic_size, NULL)
        found = PyDict_GetItemWithError(self._slots, topic)
        if found == NULL:
            return False
        slot = <object> found
        if slot.is_schedule:
            return False
        self._slot, self._first, self._prefix_hash = slot, slot.first, slot.prefix_hash
        self._topic_at, self._topic_size = stored.topic, stored.topic_size
        return True

    cdef _queue(self, int32_t queue_id):
        """The topic's queue, None when it is new."""
        if 0 <= queue_id < PyTuple_GET_SIZE(self._first):
            return self._first[queue_id]
        return (<dict> self._slot.queues).get(queue_id)

    cdef int64_t _end_of(self, queue) except? -1:
        """As ConsumeQueue.max_physical_offset."""
        cdef bytearray tail = queue.tail
        cdef const uint8_t *unit
        if PyByteArray_GET_SIZE(tail) >= UNIT_BYTES:
            unit = <const uint8_t *> PyByteArray_AS_STRING(tail) + PyByteArray_GET_SIZE(tail) - UNIT_BYTES
            if <int32_t> get32(unit + 8) != FILLER_SIZE:
                return <int64_t> get64(unit) + <int32_t> get32(unit + 8)
        return queue.max_physical_offset

    cdef int _put_unit(self, queue, Stored *stored, int64_t physical_offset, dict arrived) except -1:
        cdef bytearray tail = queue.tail
        cdef Py_ssize_t tail_size = PyByteArray_GET_SIZE(tail)
        cdef uint8_t *unit
        PyByteArray_Resize(tail, tail_size + UNIT_BYTES)
        unit = <uint8_t *> PyByteArray_AS_STRING(tail) + tail_size
        put64(put32(put64(unit, physical_offset), <uint32_t> stored.size), stored.code)
        queue.next_index = stored.queue_offset + 1
        if not queue.dirty:
            queue.dirty = True
            self._queues.dirty.append(queue)
        if arrived is not None:
            told = arrived.get(queue)
            if told is None:
                arrived[queue] = (stored.queue_offset, [stored.code])
            else:
                (<list> (<tuple> told)[1]).append(stored.code)
        return 0

    # -- the key index --------------------------------------------------------------------------------------------

    cdef int _hash_keys(self, Stored *stored, int64_t physical_offset) except -2:
        """Make the record's entries, which do not count yet; return how many, -1: a key is no UTF-8, or too many."""
        cdef int made
        self._keys.begin_request(physical_offset)
        if self._keys.way != INDEX_AT_ONCE:
            return 0
        made = self._keys.hash(self._prefix_hash, stored.properties, &stored.marks)
        if made < 0:
            return self._hash_keys(stored, physical_offset) if self._keys.has_made_room() else -1
        self._keys.end_request()
        return made

    cdef int _put_keys(self, Stored *stored, int64_t physical_offset, int new_entries) except -1:
        if self._keys.way == INDEX_AT_ONCE:
            self._keys.place(new_entries, physical_offset, stored.timestamp)
        elif self._keys.way == INDEX_LATER:
            self._keys.leave(
                self._prefix_hash, stored.properties, stored.properties_size, physical_offset, stored.timestamp
            )
            self._keys.bound_pending()
        return 0
