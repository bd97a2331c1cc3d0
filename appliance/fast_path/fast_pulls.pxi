# Part of compiled.pyx.


@cython.final
cdef class PullWalk:
    """Whether a pull is allowed, what it wants, and which records it gets: those that are there, in memory.

    pulls: see appliance/broker/fast_pulls.py; walk: of the pull that was looked at last.
    """

    cdef Walk walk
    cdef object _config, _log, _limits, _pulls, _parse_tags, _filter_of
    cdef dict _groups, _topics, _consumers, _popping
    cdef int64_t _filter_units, _units_per_look
    cdef list _looked_at  # queues that keep units
    cdef int _looked_at_next

    def __init__(self, parts, pulls, bounds):
        self._config, self._log, self._limits = parts.config, parts.store.parts.log, parts.store.limits
        self._pulls, self._parse_tags, self._filter_of = pulls, pulls.parse_tags, pulls.filter_of
        self._groups, self._topics, self._consumers = pulls.groups, pulls.topics, pulls.consumers
        self._popping = pulls.popping
        self._filter_units, self._units_per_look = bounds.filter_units_min, bounds.units_per_look
        self._looked_at = [None] * LOOKED_AT_MAX

    cdef file_of(self, int64_t position):
        """As MappedFileQueue.find."""
        cdef list files = self._log.queue.files
        cdef int64_t each = self._log.queue.file_bytes_each
        if not files or position < files[0].base:
            return None
        position = (position - <int64_t> files[0].base) // each
        return files[position] if position < len(files) else None

    cdef bint _is_allowed(self, PullFields *asked, group, topic) except -1:
        """Whether broker, group and topic may be read; False also for what may be created first, and for no queue."""
        group_config, config = self._groups.get(group), self._topics.get(topic)
        return (
            group_config is not None
            and config is not None
            and self._config.permission & PERM_READ
            and group_config.consume_enable
            and config.perm & PERM_READ
            and 0 <= asked.queue_id < config.read_queue_nums
            and not (self._popping and (topic, group) in self._popping)
        )

    cdef _wanted(self, PullFields *asked, group, topic, connection):
        """The filter of a pull that `_is_allowed`, None for all messages. Raises what the Python path raises."""
        if not self._config.filter_support_retry:
            if not asked.sys_flag & HAS_SUBSCRIPTION:
                subscription = self._subscription(asked, group, topic)
                if subscription is not None:
                    if subscription.sub_string == "*" or subscription.class_filter_mode:
                        return None
                    return self._filter_of(subscription)
            elif (
                asked.expression_type.at == NULL
                or not asked.expression_type.size
                or is_text(&asked.expression_type, b"TAG", 3)
            ):
                if asked.subscription.at == NULL or is_text(&asked.subscription, b"*", 1):
                    return None
                return self._parse_tags(text_of(&asked.subscription))
        return self._pulls.wanted(
            connection,
            group,
            topic,
            asked.queue_id,
            asked.queue_offset,
            asked.count_max,
            asked.sys_flag,
            text_of(&asked.subscription) or "",
            text_of(&asked.expression_type),
            text_of(&asked.sub_version),
        )

    cdef _subscription(self, PullFields *asked, group, topic):
        """What the group's consumers said they want of the topic, by tag; None: unusual, the Python path decides."""
        cdef int64_t version
        consumers = self._consumers.get(group)
        if consumers is None or (consumers.is_broadcasting and not self._groups.get(group).consume_broadcast_enable):
            return None
        subscription = consumers.subscriptions.get(topic)
        if (
            subscription is None
            or asked.sub_version.at == NULL
            or not to_padded_number(&asked.sub_version, &version)
            or subscription.sub_version < version
            or subscription.expression_type not in ("", "TAG")
        ):
            return None
        return subscription

    cdef bint open(self, PullFields *asked, group, topic, connection) except -1:
        """Look up whether the pull is allowed and what it wants; False: not, or it looks into messages."""
        cdef Walk *walk = &self.walk
        limits, log = self._limits, self._log
        if not self._is_allowed(asked, group, topic):
            return False
        try:
            wanted = self._wanted(asked, group, topic, connection)
        except Exception:  # a refusal: the Python path comes to the same one, and says it to the client
            return False
        walk.code_count = -1
        if wanted is not None:
            codes = wanted.tags_codes
            if codes is None or wanted.records_max or len(codes) > CODES_MAX:
                return False
            walk.code_count = 0
            for code in codes:
                walk.codes[walk.code_count] = code
                walk.code_count += 1
        if log.shown_below < log.position:  # the queue's end may not be shown yet, either
            return False
        walk.end_allowed = log.readable_end
        walk.first_allowed = walk.end_allowed - limits.hot_bytes
        walk.count_max = min(max(asked.count_max, 1), limits.memory_count_max)
        walk.bytes_max = limits.memory_bytes_max
        walk.run_count = walk.count = walk.size = walk.passed = 0
        walk.is_full = False
        return True

    cdef bint along(self, queue, int64_t offset, int64_t high) except -1:
        """Walk along the units from the offset on. False: for the Python path, or nothing is wanted."""
        cdef int64_t units_left = max(self._filter_units, self.walk.count_max), count, tail_index = queue.tail_index
        cdef int64_t start
        cdef const uint8_t *units
        # Without a filter the Python path takes what one look into the queue's files brings.
        cdef bint is_one_look = self.walk.code_count < 0 and min(high - offset, self.walk.count_max) <= self._units_per_look
        while units_left > 0 and offset < high and not self.walk.is_full:
            if offset >= tail_index:
                data = queue.tail
                count = min(units_left, high - offset)
                if (offset - tail_index + count) * UNIT_BYTES > PyByteArray_GET_SIZE(data):
                    return False
                units = <const uint8_t *> PyByteArray_AS_STRING(data) + (offset - tail_index) * UNIT_BYTES
            else:
                data = self._look(queue, offset, min(high - offset, self.walk.count_max) if is_one_look else 1, &start)
                if data is None:
                    return False
                count = min(PyBytes_GET_SIZE(data) // UNIT_BYTES - start, units_left)
                units = <const uint8_t *> PyBytes_AS_STRING(data) + start * UNIT_BYTES
            if not walk_units(&self.walk, units, count):
                return False
            if is_one_look and offset < tail_index:
                break
            offset += count
            units_left -= count
        return self.walk.count > 0

    cdef bytes _look(self, queue, int64_t offset, int64_t count, int64_t *start):
        """Units of the queue's files, that of `offset` at `start`; None: there are none. count: as many are enough.

        A consumer goes on where it was, so those behind are kept for its next pull, of some queues.
        """
        cdef bytes data
        cdef int64_t first
        looked_at = queue.looked_at
        if looked_at is not None:
            first, data = <tuple> looked_at
            if first <= offset and offset + count <= first + PyBytes_GET_SIZE(data) // UNIT_BYTES:
                start[0] = offset - first
                return data
        read = queue.read(offset, UNITS_AHEAD)
        if not isinstance(read, bytes) or len(read) < UNIT_BYTES:
            return None
        if looked_at is None:
            last = self._looked_at[self._looked_at_next]
            if last is not None:
                last.looked_at = None
            self._looked_at[self._looked_at_next] = queue
            self._looked_at_next = (self._looked_at_next + 1) % LOOKED_AT_MAX
        queue.looked_at = (offset, read)
        start[0] = 0
        return read
