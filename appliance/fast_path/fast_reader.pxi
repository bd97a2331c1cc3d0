# Part of compiled.pyx.

from posix.unistd cimport close as close_descriptor

cdef extern from "poller.h" nogil:
    cdef enum:
        EPOLL_CLOEXEC
        EPOLL_CTL_ADD
        EPOLL_CTL_DEL
        EPOLLIN
        EPOLLRDHUP
    ctypedef union epoll_data_t:
        int fd
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int poller, int operation, int descriptor, epoll_event *event)
    int epoll_wait(int poller, epoll_event *events, int count_max, int timeout_ms)

cdef enum:
    EVENTS_MAX = 1024  # of one turn of the loop; the others come in the next one
    RECEIVE_BYTES = 256 * 1024
    LEFT_BYTES_MAX = 1024 * 1024  # copied for the Python path, before that gets them
    GUESSES_MAX = 8  # times that the only connection with requests is read without asking which one is readable

cdef double SHORT_SECONDS = 0.0001  # of one that may be guessed: others wait for no more than some of these

ctypedef struct Answered:
    int descriptor
    int sends, pulls
    size_t out_end  # of its answers
    int64_t received  # bytes
    double seconds


cdef class FastReader:
    """Reads all plain connections of which nothing waits, and has a `FastPath` serve what came, in one call for all.

    It has an epoll descriptor of its own, with their sockets in it. The event loop sees that one descriptor, and calls
    `drain`. Then neither a Python object nor a callback of the loop is needed for each socket that is ready. Which one
    is read, and how far, is decided as in `ServerConnection` and `Lanes`. All else is the connection's, and goes to it:
    bytes that were not served, the end of the stream, errors, what a socket does not take.

    lanes: the server's. limits: the module that has their constants.
    """

    cdef FastPath _fast
    cdef object _lanes, _sends, _pulls, _limits
    cdef int _poller
    cdef list _watched  # connections by descriptor
    cdef bytearray _idle  # likewise: whether it is known that nothing of the connection waits
    cdef epoll_event *_events
    cdef uint8_t *_received
    cdef int _guess, _guesses  # the descriptor that alone was readable last time, -1: there were others
    # of one call
    cdef Answered *_answered
    cdef int _answered_count
    cdef list _answerers, _usages, _late, _left
    cdef int64_t _late_until  # the log's end that the last of `_late` waits for
    cdef Py_ssize_t _left_bytes
    cdef object _now
    cdef bint _is_full
    cdef double _queued_seconds, _at_once, _read_ahead, _turn_seconds
    cdef int64_t _turn_requests, _long_ns
    cdef bint _has_room, _is_shared
    cdef int64_t _since

    def __cinit__(self):
        self._poller = self._guess = -1
        self._events = <epoll_event *> malloc(EVENTS_MAX * sizeof(epoll_event))
        self._answered = <Answered *> malloc(EVENTS_MAX * sizeof(Answered))
        self._received = <uint8_t *> malloc(RECEIVE_BYTES)
        if not (self._events and self._answered and self._received):
            raise MemoryError

    def __dealloc__(self):
        if self._poller >= 0:
            close_descriptor(self._poller)
        free(self._events)
        free(self._answered)
        free(self._received)

    def __init__(self, FastPath fast_path not None, lanes, sends, pulls, limits):
        self._fast, self._lanes, self._sends, self._pulls, self._limits = fast_path, lanes, sends, pulls, limits
        self._long_ns = <int64_t> (limits.LONG_SECONDS * NS_A_SECOND)
        self._watched, self._idle = [], bytearray()
        self._answerers, self._usages, self._late, self._left = [], [], [], []
        self._poller = epoll_create1(EPOLL_CLOEXEC)
        if self._poller < 0:
            raise OSError("there is no epoll descriptor")

    def fileno(self):
        """What becomes readable when one of the sockets does."""
        return self._poller

    def close(self):
        """Watch nothing any more."""
        if self._poller >= 0:
            close_descriptor(self._poller)
            self._poller = -1
            self._watched = []

    def watch(self, connection, int descriptor):
        """Read this connection from now on; False: it can't be watched."""
        cdef epoll_event event
        if self._poller < 0 or descriptor < 0:
            return False
        if descriptor >= len(self._watched):
            more = descriptor + 1 - len(self._watched)
            self._watched.extend([None] * more)
            self._idle.extend(bytes(more))
        memset(&event, 0, sizeof(epoll_event))
        event.events, event.data.fd = EPOLLIN | EPOLLRDHUP, descriptor
        if epoll_ctl(self._poller, EPOLL_CTL_ADD, descriptor, &event) != 0:
            return False
        self._watched[descriptor], self._idle[descriptor] = connection, 0
        return True

    def unwatch(self, int descriptor):
        """Leave this connection to its transport. Its descriptor must still be open."""
        cdef epoll_event event
        if 0 <= descriptor < len(self._watched) and self._watched[descriptor] is not None:
            self._watched[descriptor] = None
            memset(&event, 0, sizeof(epoll_event))
            epoll_ctl(self._poller, EPOLL_CTL_DEL, descriptor, &event)

    # -- one turn of the loop -------------------------------------------------------------------------------------

    def drain(self):
        """Read every socket that is readable once, serve what came, and write the answers."""
        if self._poller < 0:
            return
        self._begin()
        try:
            if not self._read_guessed():
                self._read_ready()
        finally:
            self._finish()

    cdef bint _read_guessed(self) except -1:
        """Read the one connection that was readable alone before. False: nothing has come there, or it is time to ask."""
        if self._guess < 0:
            return False
        self._guesses += 1
        if self._guesses <= GUESSES_MAX and self._read(self._guess, EPOLLIN):
            if not self._was_short():
                self._guess = -1
            return True
        self._guess = -1
        return False

    cdef bint _was_short(self) noexcept:
        """Whether one connection was served, and not for long."""
        return self._answered_count == 1 and self._answered[0].seconds < SHORT_SECONDS

    cdef int _read_ready(self) except -1:
        """Ask which connections are readable, and read them."""
        cdef int count = epoll_wait(self._poller, self._events, EVENTS_MAX, 0), index
        for index in range(count):
            self._read(self._events[index].data.fd, self._events[index].events)
        if count == 1 and self._was_short():
            self._guess, self._guesses = self._answered[0].descriptor, 0
        return 0

    cdef int _begin(self) except -1:
        """Begin to collect; what the lanes allow is looked up once."""
        limits, lanes = self._limits, self._lanes
        self._fast._begin()
        self._answered_count = 0
        self._left_bytes = 0
        self._now = time.monotonic()
        self._is_full = is_full(self._sends) or is_full(self._pulls)
        self._queued_seconds, self._at_once = lanes.queued_seconds, lanes.at_once_seconds
        self._read_ahead = limits.READ_AHEAD_SECONDS
        self._has_room = lanes.queued_bytes <= limits.BACKLOG_BYTES_WANTED
        self._turn_seconds = min(self._read_ahead - self._queued_seconds, limits.TURN_SECONDS)
        self._turn_requests = limits.TURN_REQUESTS_MAX
        self._is_shared = lanes.parked_count != 0
        self._since = monotonic_ns()
        return 0

    cdef bint _read(self, int descriptor, uint32_t events) except -1:
        """Read one socket, and serve what came; False: nothing did."""
        cdef Py_ssize_t size
        cdef int64_t count_max
        connection = self._watched[descriptor] if descriptor < len(self._watched) else None
        if connection is None:  # closed or paused meanwhile
            return False
        size = read_some(descriptor, self._received, RECEIVE_BYTES) if events == EPOLLIN else 0
        if size < 0:
            return False
        if size == 0:  # the end, or an error; what is in the socket before it is not read yet
            connection.read_by_transport()
            return True
        if not self._idle[descriptor] and connection.is_nothing_waiting():
            self._idle[descriptor] = 1
        usage = connection.usage
        count_max = self._wanted(usage) if self._idle[descriptor] else 0
        if count_max == 0:
            self._leave(connection, descriptor, self._received, size, None)
            return True
        connection.last_seen = self._now
        try:
            self._serve(connection, usage, descriptor, size, <int> count_max)
        except Exception as exc:
            connection.reading_failed(exc)
        return True

    cdef int64_t _wanted(self, usage) except -1:
        """As Lanes.wanted_at_once."""
        cdef int64_t count
        if self._is_full:
            return 0
        if not (self._queued_seconds + self._at_once < self._read_ahead and self._has_room):
            self._lanes.at_once_seconds = self._at_once
            return self._lanes.wanted_at_once(usage, self._sends, self._pulls)
        if self._is_shared or not usage.is_known:
            return self._lanes.requests_wanted(usage)
        count = <int64_t> (self._turn_seconds / <double> usage.request_seconds)
        return min(max(count, 1), self._turn_requests)

    cdef int _serve(self, connection, usage, int descriptor, Py_ssize_t size, int count_max) except -1:
        cdef FastPath fast = self._fast
        cdef const uint8_t *at
        cdef const uint8_t *end = self._received + size
        cdef Answered *answered = &self._answered[self._answered_count]
        cdef size_t out_start = fast._out_size
        cdef int64_t now
        fast._direct = descriptor if not connection.may_hold_unsent or not connection.holds_unsent() else -1
        try:
            at = fast._serve_frames(self._received, end, count_max, connection)
        except Exception:
            fast._out_size = out_start  # no other connection gets its answers
            fast._waiting = []
            raise
        finally:
            fast._direct = -1
        if fast._waiting:
            self._put_off(connection, descriptor, out_start)
        now = monotonic_ns()
        if fast.count:
            answered.descriptor, answered.sends, answered.pulls = descriptor, fast.count - fast.pull_count, fast.pull_count
            answered.out_end, answered.received = fast._out_size, size
            answered.seconds = self._own_seconds(now - self._since)
            self._at_once += answered.seconds
            self._answerers.append(connection)
            self._usages.append(usage)
            self._answered_count += 1
            connection.frame_count += fast.count
        self._since = now
        if at < end:
            self._leave(connection, descriptor, at, end - at, fast.count >= count_max)
        return 0

    cdef int _put_off(self, connection, int descriptor, size_t out_start) except -1:
        """Keep answers that wait for the disk or slaves."""
        cdef FastPath fast = self._fast
        answer = PyBytes_FromStringAndSize(<char *> fast._out + out_start, fast._out_size - out_start)
        waiting, fast._waiting = fast._waiting, []
        fast._out_size = out_start
        self._late.append((connection, descriptor, answer, waiting))
        self._late_until = fast._end.position
        return 0

    cdef double _own_seconds(self, int64_t ns) except -1:
        """As in ServerConnection: of a long step only what this thread worked."""
        cdef double seconds = ns / 1e9, now
        if ns < self._long_ns:
            return seconds
        now = time.monotonic()
        return self._lanes.own_seconds(now - seconds, now)

    cdef int _leave(self, connection, int descriptor, const uint8_t *at, Py_ssize_t size, is_turn_over) except -1:
        """Leave bytes to the connection. is_turn_over: None where the fast path was not asked."""
        self._idle[descriptor] = 0
        self._left.append((connection, PyBytes_FromStringAndSize(<const char *> at, size), is_turn_over))
        self._left_bytes += size
        if self._left_bytes > LEFT_BYTES_MAX:
            self._finish()
            self._begin()
        return 0

    # -- when all have been read ----------------------------------------------------------------------------------

    cdef int _finish(self) except -1:
        """Bring what was served into the store, write the answers, count, and leave the rest to the connections."""
        cdef FastPath fast = self._fast
        answerers, self._answerers = self._answerers, []
        late, self._late = self._late, []
        left, self._left = self._left, []
        try:
            fast._close()
            if late:  # one wait for all: they are in the log side by side
                fast._put_waits.when_stored(self._late_until, partial(self._answer_late, late))
            self._write_answers(answerers)
        except Exception as exc:  # what was served may not be there: better no answer than a wrong one
            for connection in answerers:
                connection.reading_failed(exc)
        finally:
            self._count()
        if fast._tell_arrivals():
            fast._hold.answer_woken()
        for connection, data, is_turn_over in left:
            try:
                if is_turn_over is None:
                    connection.data_received(data)
                else:
                    connection.take_rest(data, is_turn_over)
            except Exception as exc:
                connection.reading_failed(exc)
        return 0

    def _answer_late(self, list late, code):
        """Write answers that waited. code: SUCCESS, or what was waited for in vain."""
        for connection, descriptor, answer, waiting in late:
            try:
                if code != 0 or not self._write_at_once(connection, descriptor, answer):
                    self._fast._late_answers(connection, answer, waiting)(code)
            except Exception as exc:  # it ends no other's answers
                connection.reading_failed(exc)

    cdef bint _write_at_once(self, connection, int descriptor, bytes answer) except -1:
        """Write to the socket, without a round of the lanes; False: what was written before is not in it yet."""
        cdef size_t size = PyBytes_GET_SIZE(answer), sent
        if descriptor >= len(self._watched) or self._watched[descriptor] is not connection:
            return False
        if connection.may_hold_unsent and connection.holds_unsent():
            return False
        sent = write_some(descriptor, <const uint8_t *> PyBytes_AS_STRING(answer), size)
        if sent < size:
            connection.write_rest([answer[sent:]])
        return True

    cdef int _write_answers(self, list answerers) except -1:
        cdef FastPath fast = self._fast
        cdef Answered *answered
        cdef size_t start = 0, sent
        cdef int index
        for index in range(self._answered_count):
            answered = &self._answered[index]
            if answered.out_end > start:
                connection = answerers[index]
                sent = 0
                if self._watched[answered.descriptor] is connection and not (
                    connection.may_hold_unsent and connection.holds_unsent()
                ):
                    sent = write_some(answered.descriptor, fast._out + start, answered.out_end - start)
                start += sent
                if start < answered.out_end:
                    rest = PyBytes_FromStringAndSize(<char *> fast._out + start, answered.out_end - start)
                    connection.write_rest([rest])
                start = answered.out_end
        return 0

    cdef int _count(self) except -1:
        """As Lanes.served_at_once, for all; what they cost together is shared by the bytes that came."""
        cdef double together, seconds, total = 0.0
        cdef int64_t received = 0
        cdef int index, sends = 0, pulls = 0, most_sends = 0, most_pulls = 0
        cdef Answered *answered
        lanes = self._lanes
        usages, self._usages = self._usages, []
        if not self._answered_count:
            lanes.at_once_seconds = self._at_once
            return 0
        together = self._own_seconds(monotonic_ns() - self._since)
        for index in range(self._answered_count):
            received += self._answered[index].received
        for index in range(self._answered_count):
            answered = &self._answered[index]
            seconds = answered.seconds + together * answered.received / received
            total += seconds
            sends += answered.sends
            pulls += answered.pulls
            most_sends = max(most_sends, answered.sends)
            most_pulls = max(most_pulls, answered.pulls)
            charge(usages[index], seconds, answered.sends + answered.pulls)
        self._answered_count = 0
        self._sends.served += sends
        self._pulls.served += pulls
        if most_sends > self._sends.size_peak:
            self._sends.size_peak = most_sends
        if most_pulls > self._pulls.size_peak:
            self._pulls.size_peak = most_pulls
        lanes.served += total
        lanes.at_once_seconds = self._at_once + together
        if lanes.at_once_seconds >= self._limits.ROUND_AFTER_SECONDS:  # only a round renews the budget
            lanes.wake()
        return 0


cdef bint is_full(lane) except -1:
    """As Lane.is_full."""
    return len(lane.queue) + <Py_ssize_t> lane.running >= <Py_ssize_t> lane.capacity


cdef int charge(usage, double seconds, int count) except -1:
    """As ConnectionUsage.charge and note."""
    cdef double each = seconds / count, known = usage.request_seconds
    address = usage.address
    usage.spent += seconds
    usage._left -= seconds
    address.spent += seconds
    address._left -= seconds
    if not usage.is_known:
        usage.note(seconds, count)
        return 0
    if each < 0.000001:  # as in note
        each = 0.000001
    usage.request_seconds = each if each > known else (known + each) / 2
    return 0
