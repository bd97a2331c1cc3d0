# HTTP/2 by libnghttp2: the server's side of one connection, without I/O. appliance/proxy/nghttp2_connection.py uses it.

cdef extern from "dlfcn.h":
    void *dlopen(const char *, int) noexcept
    void *dlsym(void *, const char *) noexcept
    const char *dlerror() noexcept
    enum: RTLD_NOW

NGHTTP2_NAME = "libnghttp2.so.14"

cdef enum:
    DATA_FRAME = 0
    HEADERS_FRAME = 1
    GOAWAY_FRAME = 7
    END_STREAM = 1
    DATA_EOF = 1
    DATA_NO_END_STREAM = 2
    DEFERRED = -508
    CALLBACK_FAILED = -902
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_HEADER_LIST_SIZE = 6
    HEADER_OVERHEAD = 32  # what HTTP/2 counts for each header beside its bytes
    HEADERS_MAX = 8  # of an answer or its end

# What `Http2Session.receive` tells of: (kind, stream, …)
REQUEST_CAME, DATA_CAME, STREAM_ENDED, STREAM_CLOSED, FRAME_CAME = range(5)

cdef Nghttp2 http2
cdef bint has_http2 = False


cdef void *_symbol(void *library, str name) except NULL:
    cdef void *found = dlsym(library, ("nghttp2_" + name).encode())
    if found == NULL:
        raise OSError(f"{NGHTTP2_NAME} has no nghttp2_{name}")
    return found


def open_http2():
    """Open libnghttp2 for this process, once. OSError when it is not there."""
    global has_http2
    cdef void *library
    if has_http2:
        return
    library = dlopen(NGHTTP2_NAME.encode(), RTLD_NOW)
    if library == NULL:
        raise OSError((<bytes> dlerror()).decode(errors="replace"))
    (<void **> &http2.option_new)[0] = _symbol(library, "option_new")
    (<void **> &http2.option_del)[0] = _symbol(library, "option_del")
    (<void **> &http2.option_no_auto_window_update)[0] = _symbol(library, "option_set_no_auto_window_update")
    (<void **> &http2.option_no_closed_streams)[0] = _symbol(library, "option_set_no_closed_streams")
    (<void **> &http2.callbacks_new)[0] = _symbol(library, "session_callbacks_new")
    (<void **> &http2.callbacks_del)[0] = _symbol(library, "session_callbacks_del")
    (<void **> &http2.callbacks_on_begin_frame)[0] = _symbol(
        library, "session_callbacks_set_on_begin_frame_callback")
    (<void **> &http2.callbacks_on_header)[0] = _symbol(library, "session_callbacks_set_on_header_callback")
    (<void **> &http2.callbacks_on_data)[0] = _symbol(library, "session_callbacks_set_on_data_chunk_recv_callback")
    (<void **> &http2.callbacks_on_frame)[0] = _symbol(library, "session_callbacks_set_on_frame_recv_callback")
    (<void **> &http2.callbacks_on_close)[0] = _symbol(library, "session_callbacks_set_on_stream_close_callback")
    (<void **> &http2.server_new)[0] = _symbol(library, "session_server_new2")
    (<void **> &http2.session_del)[0] = _symbol(library, "session_del")
    (<void **> &http2.mem_recv)[0] = _symbol(library, "session_mem_recv")
    (<void **> &http2.mem_send)[0] = _symbol(library, "session_mem_send")
    (<void **> &http2.submit_settings)[0] = _symbol(library, "submit_settings")
    (<void **> &http2.set_local_window_size)[0] = _symbol(library, "session_set_local_window_size")
    (<void **> &http2.submit_response)[0] = _symbol(library, "submit_response")
    (<void **> &http2.submit_trailer)[0] = _symbol(library, "submit_trailer")
    (<void **> &http2.submit_rst_stream)[0] = _symbol(library, "submit_rst_stream")
    (<void **> &http2.resume_data)[0] = _symbol(library, "session_resume_data")
    (<void **> &http2.consume)[0] = _symbol(library, "session_consume")
    (<void **> &http2.consume_connection)[0] = _symbol(library, "session_consume_connection")
    (<void **> &http2.terminate)[0] = _symbol(library, "session_terminate_session")
    (<void **> &http2.strerror)[0] = _symbol(library, "strerror")
    has_http2 = True


class Http2Error(Exception):
    """The peer broke the protocol; the connection ends."""


class Http2Flood(Http2Error):
    """The peer sent more headers than are taken."""


cdef class Answer:
    """What is to be sent on one stream, and was not sent yet."""

    cdef bytearray data
    cdef Py_ssize_t sent
    cdef bint is_ended
    cdef object trailers

    def __cinit__(self):
        self.data = bytearray()


cdef class Http2Session:
    """The server's side of a connection. What comes is not acknowledged until `consume`: flow control is the caller's.

    Raises Http2Error, Http2Flood when the connection can't go on.
    """

    cdef nghttp2_session *session
    cdef list events
    cdef dict headers  # stream -> the request's, until they are whole
    cdef dict answers  # stream -> Answer
    cdef Py_ssize_t header_bytes
    cdef Py_ssize_t header_bytes_max
    cdef object failure

    def __cinit__(self, int streams_max, int window_bytes, Py_ssize_t header_bytes_max):
        cdef nghttp2_session_callbacks *callbacks = NULL
        cdef nghttp2_option *option = NULL
        cdef nghttp2_settings_entry entries[3]
        open_http2()
        self.events, self.headers, self.answers = [], {}, {}
        self.header_bytes_max = header_bytes_max
        if http2.callbacks_new(&callbacks) or http2.option_new(&option):
            raise MemoryError
        http2.callbacks_on_begin_frame(callbacks, _begin_frame)
        http2.callbacks_on_header(callbacks, _header)
        http2.callbacks_on_data(callbacks, _data)
        http2.callbacks_on_frame(callbacks, _frame)
        http2.callbacks_on_close(callbacks, _close)
        http2.option_no_auto_window_update(option, 1)
        http2.option_no_closed_streams(option, 1)
        code = http2.server_new(&self.session, callbacks, <void *> self, option)
        http2.callbacks_del(callbacks)
        http2.option_del(option)
        self._check(code)
        entries[0].settings_id, entries[0].value = MAX_CONCURRENT_STREAMS, streams_max
        entries[1].settings_id, entries[1].value = INITIAL_WINDOW_SIZE, window_bytes
        entries[2].settings_id, entries[2].value = MAX_HEADER_LIST_SIZE, <uint32_t> header_bytes_max
        self._check(http2.submit_settings(self.session, 0, entries, 3))
        self._check(http2.set_local_window_size(self.session, 0, 0, window_bytes))

    def __dealloc__(self):
        if self.session != NULL:
            http2.session_del(self.session)

    cdef int _check(self, ssize_t code) except -1:
        if code < 0:
            if code == -901:
                raise MemoryError
            raise Http2Error((<bytes> http2.strerror(<int> code)).decode())
        return 0

    def receive(self, bytes data):
        """What these bytes mean, in order: (kind, stream, …).

        REQUEST_CAME: headers as a list of pairs; DATA_CAME: bytes; STREAM_ENDED: the client sends no more;
        STREAM_CLOSED: a code, 0 when both sides had ended it; FRAME_CAME, of a frame with no request and no data: its
        type.
        """
        cdef list events
        cdef ssize_t taken = http2.mem_recv(
            self.session, <const uint8_t *> PyBytes_AS_STRING(data), <size_t> PyBytes_GET_SIZE(data))
        events, self.events = self.events, []
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        self._check(taken)
        return events

    def to_send(self):
        """The bytes that can be sent now, b"" when there are none."""
        cdef const uint8_t *chunk = NULL
        cdef ssize_t size = http2.mem_send(self.session, &chunk)
        cdef bytearray whole
        if size == 0:
            return b""
        self._check(size)
        whole = bytearray()
        while size > 0:
            whole += chunk[:size]
            size = http2.mem_send(self.session, &chunk)
        self._check(size)
        return whole

    def closed(self):
        """Streams that ended since, without bytes of the peer: (kind, stream, code)."""
        cdef list events
        events, self.events = self.events, []
        return events

    def respond(self, int stream, headers):
        """Begin an answer."""
        cdef nghttp2_data_provider provider
        cdef nghttp2_nv pairs[HEADERS_MAX]
        cdef Answer answer = Answer()
        provider.source.ptr = <void *> answer
        provider.read_callback = _read
        self.answers[stream] = answer
        self._check(http2.submit_response(self.session, stream, pairs, _put(pairs, headers), &provider))

    def respond_only(self, int stream, headers):
        """An answer that is its end, too."""
        cdef nghttp2_nv pairs[HEADERS_MAX]
        self._check(http2.submit_response(self.session, stream, pairs, _put(pairs, headers), NULL))

    def send(self, int stream, bytes data):
        """Add to an answer that has begun."""
        cdef Answer answer = self.answers.get(stream)
        if answer is not None:
            answer.data += data
            http2.resume_data(self.session, stream)

    def end(self, int stream, trailers):
        """End an answer with these headers."""
        cdef Answer answer = self.answers.get(stream)
        if answer is not None:
            answer.trailers, answer.is_ended = trailers, True
            http2.resume_data(self.session, stream)

    def unsent(self, int stream):
        """Bytes of the answer that the peer's window does not allow yet."""
        cdef Answer answer = self.answers.get(stream)
        return 0 if answer is None else PyByteArray_GET_SIZE(answer.data) - answer.sent

    def reset(self, int stream, int code):
        self._check(http2.submit_rst_stream(self.session, 0, stream, <uint32_t> code))

    def consume(self, int stream, Py_ssize_t size):
        """Let the peer send so much more."""
        self._check(http2.consume(self.session, stream, <size_t> size))

    def consume_of_closed(self, Py_ssize_t size):
        """The same for bytes of a stream that is closed."""
        self._check(http2.consume_connection(self.session, <size_t> size))

    def terminate(self, int code):
        """Tell the peer that the connection ends."""
        self._check(http2.terminate(self.session, <uint32_t> code))


cdef size_t _put(nghttp2_nv *pairs, headers) except? 0:
    """Headers as the library takes them; it copies. Pairs of bytes, HEADERS_MAX at most."""
    cdef size_t count = 0
    cdef bytes name, value
    if len(headers) > HEADERS_MAX:
        raise ValueError(f"{len(headers)} headers: {HEADERS_MAX} at most")
    for name, value in headers:
        pairs[count].name = <uint8_t *> PyBytes_AS_STRING(name)
        pairs[count].namelen = <size_t> PyBytes_GET_SIZE(name)
        pairs[count].value = <uint8_t *> PyBytes_AS_STRING(value)
        pairs[count].valuelen = <size_t> PyBytes_GET_SIZE(value)
        pairs[count].flags = 0
        count += 1
    return count


cdef ssize_t _read(
    nghttp2_session *session, int32_t stream, uint8_t *to, size_t room, uint32_t *flags,
    nghttp2_data_source *source, void *owner,
) noexcept:
    cdef Answer answer = <Answer> source.ptr
    cdef nghttp2_nv pairs[HEADERS_MAX]
    cdef Py_ssize_t left = PyByteArray_GET_SIZE(answer.data) - answer.sent
    cdef Py_ssize_t size = min(left, <Py_ssize_t> room)
    if not size and not answer.is_ended:
        return DEFERRED
    try:
        memcpy(to, PyByteArray_AS_STRING(answer.data) + answer.sent, size)
        answer.sent += size
        if size == left:
            answer.data, answer.sent = bytearray(), 0
            if answer.is_ended:
                flags[0] |= DATA_EOF
                if answer.trailers:
                    flags[0] |= DATA_NO_END_STREAM
                    http2.submit_trailer(session, stream, pairs, _put(pairs, answer.trailers))
    except BaseException as exc:
        (<Http2Session> owner).failure = exc
        return CALLBACK_FAILED
    return size


cdef int _begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *owner) noexcept:
    cdef Http2Session own = <Http2Session> owner
    try:
        if head.type == HEADERS_FRAME:
            own.headers[head.stream_id] = []
            own.header_bytes = 0
        elif head.type != DATA_FRAME or not (head.length or head.flags & END_STREAM):
            own.events.append((FRAME_CAME, head.stream_id, head.type))
    except BaseException as exc:
        own.failure = exc
        return CALLBACK_FAILED
    return 0


cdef int _header(
    nghttp2_session *session, const nghttp2_frame_hd *head, const uint8_t *name, size_t name_size,
    const uint8_t *value, size_t value_size, uint8_t flags, void *owner,
) noexcept:
    cdef Http2Session own = <Http2Session> owner
    cdef object found
    try:
        own.header_bytes += name_size + value_size + HEADER_OVERHEAD
        if own.header_bytes > own.header_bytes_max:
            raise Http2Flood(f"more than {own.header_bytes_max} bytes of headers")
        found = own.headers.get(head.stream_id)
        if found is not None:
            (<list> found).append((name[:name_size].decode("latin-1"), value[:value_size].decode("latin-1")))
    except BaseException as exc:
        own.failure = exc
        return CALLBACK_FAILED
    return 0


cdef int _data(
    nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t size, void *owner
) noexcept:
    cdef Http2Session own = <Http2Session> owner
    try:
        own.events.append((DATA_CAME, stream, data[:size]))
    except BaseException as exc:
        own.failure = exc
        return CALLBACK_FAILED
    return 0


cdef int _frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *owner) noexcept:
    """A whole frame has come, and was valid."""
    cdef Http2Session own = <Http2Session> owner
    try:
        if head.type == HEADERS_FRAME:
            headers = own.headers.pop(head.stream_id, None)
            if headers and headers[0][0].startswith(":"):  # else trailers, which no call served here has
                own.events.append((REQUEST_CAME, head.stream_id, headers))
        if head.type <= HEADERS_FRAME and head.flags & END_STREAM:
            own.events.append((STREAM_ENDED, head.stream_id))
    except BaseException as exc:
        own.failure = exc
        return CALLBACK_FAILED
    return 0


cdef int _close(nghttp2_session *session, int32_t stream, uint32_t code, void *owner) noexcept:
    cdef Http2Session own = <Http2Session> owner
    try:
        own.headers.pop(stream, None)
        own.answers.pop(stream, None)
        own.events.append((STREAM_CLOSED, stream, code))
    except BaseException as exc:
        own.failure = exc
        return CALLBACK_FAILED
    return 0
