# cython: language_level=3, binding=False
"""The compiled module, `gantry_compiled`: made by build.py, found by loader.py, used through the latter only.

`FastPath` serves the plain sends and pulls of a read event in one call. It owns nothing between two calls: position of
the log, tails of queues, counters and tables are the Python objects' own. A call reads what it needs of them, works on
memory, and leaves them as the Python path would have. docs/decisions/0013-a-compiled-twin.md says who owns what. It is
made of `LogEnd` (fast_log.pxi), `KeyIndex` (fast_keys.pxi), `SignedRequests` (fast_accounts.pxi) and `PullWalk`
(fast_pulls.pxi). `FastReader` (fast_reader.pxi) reads the sockets of which nothing waits, and serves what came of all
of them in one such call; `FastDispatch` (fast_dispatch.pxi) feeds queues and index from records that a slave copies or
a start reads. `Http2Session` (fast_http2.pxi) is a proxy's: HTTP/2 by libnghttp2, which it opens when it is first asked.

The files beside this one are cimported by their plain names: they are compiled from one flat folder.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec

import time
from functools import partial

from answers cimport (
    ANSWER_BYTES_MAX,
    PULL_HEAD_BYTES_MAX,
    Piece,
    PullTexts,
    SendTexts,
    put_answer,
    put_pull_head,
)
from batch_body cimport PROPERTIES_BYTES_MAX, cut_batch
from bytes_in_order cimport get32, get64, put32, put64
from crc32 cimport gantry_crc32_is_by_tables, gantry_crc32_update, gantry_crc32_update_by_tables
from headers cimport BINARY_HEADER, JSON_HEADER, Header, scan_binary, scan_json
from index_file cimport Entry, IndexFile, hash_keys, put_entries
from log_file cimport WRITTEN_BYTES_MIN, put_into_map, write_all, write_to_file, zero_ahead
from properties cimport Marks, find_marks
from records cimport (
    HEAD_BYTES,
    HOST_BYTES,
    RECORD_FIXED_BYTES,
    UNIT_BYTES,
    Common,
    Message,
    put_bytes,
    put_end,
    put_head,
    put_unit,
)
from nghttp2 cimport (
    Nghttp2,
    nghttp2_data_provider,
    nghttp2_data_source,
    nghttp2_frame_hd,
    nghttp2_nv,
    nghttp2_option,
    nghttp2_session,
    nghttp2_session_callbacks,
    nghttp2_settings_entry,
)
from pull_fields cimport PULL_MESSAGE, PullFields, read_pull
from send_fields cimport (
    SEND_BATCH_MESSAGE,
    SEND_MESSAGE,
    SEND_MESSAGE_V2,
    TOPIC_BYTES_MAX,
    SendFields,
    read_send,
)
from sockets cimport read_some, write_some, write_two
from sha1 cimport (
    BLOCK_BYTES,
    DIGEST_BYTES,
    SIGNATURE_BYTES,
    GantryHmacKey,
    gantry_hmac_sha1,
    gantry_hmac_sha1_by_words,
    gantry_hmac_sha1_key,
    gantry_is_same_text,
    gantry_sha1_is_by_words,
    gantry_sha1_text,
)
from signed cimport SignedFields, find_signed, has_hidden_stamp, put_signed
from stored_record cimport Stored, find_stored_marks, read_stored
from texts cimport Text, is_text, is_utf8, java_hash, resolve, to_padded_number
from units cimport CODES_MAX, FILLER_SIZE, Walk, copy_runs, walk_units

cdef extern from "Python.h":
    PyObject *item_of "PyTuple_GET_ITEM" (object place, Py_ssize_t index)  # without taking it: that would touch it

cdef extern from *:
    void prefetch "__builtin_prefetch" (const void *at) nogil

cdef extern from "string.h" nogil:
    void *memmem(const void *haystack, size_t haystack_size, const void *needle, size_t needle_size)

cdef enum:
    RESPONSE_FLAG = 1
    ONEWAY_FLAG = 2
    TRANSACTION_BITS = 0xC
    V6_BITS = 0x30
    MESSAGES_MAX = 1024  # in a batch; a larger one is Python's
    ENTRIES_MAX = 4096  # of the key index, of one call
    SCRATCH_BYTES = 512 * 1024  # properties of one request
    OUT_BYTES_FIRST = 64 * 1024
    RECORDS_BYTES = 256 * 1024  # of one call, before they are written to the file
    ID_BYTES = 17  # of a message id behind the broker's address, and a comma
    COMMIT_OFFSET = 1  # of a pull's sys flag
    HAS_SUBSCRIPTION = 4  # likewise
    PERM_READ = 4  # of broker and topics
    LOOKED_AT_MAX = 64  # queues of whose files units are kept for the next pull
    UNITS_AHEAD = 512  # read with one call and kept: a consumer that goes on needs the next 480 soon
    SIGNATURE_BYTES_MAX = 6 * SIGNATURE_BYTES  # each of them escaped
    SIGNED_BYTES_MAX = 64 * 1024  # of header fields; more is Python's

cdef int64_t NS_A_SECOND = 1000000000

cdef enum:
    # Why a request is left to the Python path: places in REASONS.
    BECAUSE_OF_CODE
    BECAUSE_OF_FIELDS
    BECAUSE_OF_REFUSAL
    BECAUSE_OF_KIND
    BECAUSE_OF_TOPIC
    BECAUSE_OF_PROPERTIES
    BECAUSE_OF_ROOM
    BECAUSE_OF_ACCOUNT
    BECAUSE_OF_SETTINGS
    BECAUSE_OF_OFFSET
    BECAUSE_OF_SUBSCRIPTION
    BECAUSE_OF_PLACE
    REASON_COUNT

REASONS = (
    "code",  # neither send nor pull
    "fields",  # an unusual header, a field that is missing; heartbeats have none
    "refusing",  # the broker takes no messages now
    "kind",  # of a transaction, too large
    "topic",  # not known yet, not to be written to, no such queue
    "properties",  # a delay, a retry, an unusual batch
    "room",  # a full file of the log, a key that is no text
    "account",  # of accounts: all that is refused, and some more
    "settings",  # pulls while no message may be read, or not by the plain rules
    "offset",  # a pull for what is not there: it waits, or is told where to go on
    "subscription",  # not allowed, not known, by an SQL condition
    "place",  # messages that may not be in memory, that lie in two files; none that are wanted
)

def crc32(data, uint32_t value=0):
    """zlib.crc32: `value` is the CRC of what comes before."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return gantry_crc32_update(value, <const uint8_t*> view.buf, <size_t> view.len)
    finally:
        PyBuffer_Release(&view)


def crc32_by_tables(data, uint32_t value=0):
    """The same as on a processor without instructions for it."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return gantry_crc32_update_by_tables(value, <const uint8_t*> view.buf, <size_t> view.len)
    finally:
        PyBuffer_Release(&view)


def slow_ways():
    """What is computed without this processor's instructions for it: for tests."""
    ways = {"CRC-32": gantry_crc32_is_by_tables(), "SHA-1": gantry_sha1_is_by_words()}
    return [name for name, is_slow in ways.items() if is_slow]


def hmac_sha1(blocks, bytes content not None, bytes body not None, *, by_words=False):
    """The signature of both under the key of which `SigningKey` has these blocks; by_words: on any processor."""
    cdef GantryHmacKey key
    cdef uint8_t digest[DIGEST_BYTES]
    cdef uint8_t text[SIGNATURE_BYTES]
    work_in(&key, blocks)
    (gantry_hmac_sha1_by_words if by_words else gantry_hmac_sha1)(
        &key,
        <const uint8_t *> PyBytes_AS_STRING(content),
        PyBytes_GET_SIZE(content),
        <const uint8_t *> PyBytes_AS_STRING(body),
        PyBytes_GET_SIZE(body),
        digest,
    )
    gantry_sha1_text(digest, text)
    return PyBytes_FromStringAndSize(<char *> text, SIGNATURE_BYTES)


cdef int work_in(GantryHmacKey *key, blocks) except -1:
    """Take a key of which `SigningKey` has these blocks."""
    cdef bytes inner = blocks[0], outer = blocks[1]
    if inner is None or outer is None or len(inner) != BLOCK_BYTES or len(outer) != BLOCK_BYTES:
        raise ValueError("a key has two blocks of 64 bytes")
    gantry_hmac_sha1_key(key, <uint8_t *> PyBytes_AS_STRING(inner), <uint8_t *> PyBytes_AS_STRING(outer))
    return 0


cdef inline int64_t monotonic_ns() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * NS_A_SECOND + now.tv_nsec


cdef inline Piece piece_of(bytes text):
    cdef Piece piece
    piece.at = <const uint8_t *> PyBytes_AS_STRING(text)
    piece.size = <int32_t> PyBytes_GET_SIZE(text)
    return piece


cdef inline text_of(Text *text):
    """A str of a text without escapes; None where it is absent."""
    return PyUnicode_DecodeUTF8(<char *> text.at, text.size, NULL) if text.at != NULL else None


include "fast_log.pxi"
include "fast_keys.pxi"
include "fast_accounts.pxi"
include "fast_pulls.pxi"


cdef class FastPath:
    """Serves plain sends and pulls. parts: see appliance/broker/fast_path.py; used as the Python path uses them.

    count: how many requests the last call of `serve` served; pull_count: how many of them were pulls.
    """

    cdef readonly int count, pull_count
    cdef int _direct  # the socket that answers may be written to at once, -1: through the connection
    cdef int64_t _taken, _pulls_taken
    cdef int64_t _declined[REASON_COUNT]
    cdef int _reason  # why the request would be declined now
    # borrowed for good
    cdef object _config, _store, _put_waits, _state, _stats, _queues
    cdef object _hold, _answers, _known_listener, _late_answers
    cdef dict _targets
    cdef bytes _store_host, _cluster_property
    cdef int64_t _record_bytes_max, _message_bytes_max, _frame_bytes_max, _header_bytes_max
    # memory of its own, with nothing in it between two calls
    cdef uint8_t *_scratch
    cdef uint8_t *_out
    cdef size_t _out_size, _out_max
    cdef Message *_messages
    cdef int64_t *_offsets
    # what the Python path decides by, too: given by it, and written down nowhere here
    cdef int64_t _copied_bytes_max, _slow_ns, _read_again
    # the text of answers, as long as SendAnswers says the same
    cdef object _said
    cdef tuple _said_texts
    cdef SendTexts _texts
    cdef size_t _texts_size
    # of one call: the topic that was looked up last
    cdef const uint8_t *_topic_at
    cdef int32_t _topic_size, _queue_id_end
    cdef object _target, _slot
    cdef tuple _first
    cdef uint8_t _encoded_topic[TOPIC_BYTES_MAX + 1]  # as in the record: length byte, name
    cdef uint32_t _prefix_hash
    cdef int64_t _target_count, _target_times, _target_bytes
    # of one call: the rest
    cdef int64_t _put_times, _put_bytes
    cdef object _listener
    cdef bint _tells_arrivals, _answers_wait, _is_open
    cdef bint _is_host_long  # of the connection: its records are Python's
    cdef int32_t _keys_max
    cdef list _arrivals, _waiting
    # pulls; None: the Python path serves them
    cdef object _pulls, _broker_get, _tools_group
    cdef dict _topic_slots, _gets
    cdef PullTexts _pull_texts
    cdef tuple _pull_said
    cdef PullWalk _pull_walk
    cdef bytes _born_host
    cdef LogEnd _end
    cdef SignedRequests _signed
    cdef KeyIndex _keys

    def __cinit__(self):
        cdef int index
        self._direct = -1
        for index in range(REASON_COUNT):
            self._declined[index] = 0
        self._scratch = <uint8_t *> malloc(SCRATCH_BYTES)
        self._out = <uint8_t *> malloc(OUT_BYTES_FIRST)
        self._out_max = OUT_BYTES_FIRST
        self._messages = <Message *> malloc(MESSAGES_MAX * sizeof(Message))
        self._offsets = <int64_t *> malloc(MESSAGES_MAX * sizeof(int64_t))
        if not (
            self._scratch
            and self._out
            and self._messages
            and self._offsets
        ):
            raise MemoryError

    def __dealloc__(self):
        free(self._scratch)
        free(self._out)
        free(self._messages)
        free(self._offsets)

    def __init__(self, parts, bounds, *, pulls, late_answers, frame_bytes_max, header_bytes_max):
        store_parts = parts.store.parts
        self._copied_bytes_max = bounds.copied_bytes_max
        self._slow_ns = <int64_t> (bounds.slow_s * NS_A_SECOND)
        self._read_again = bounds.read_again
        self._config = parts.config
        self._put_waits = parts.put_waits
        self._store = parts.store
        self._state = store_parts.state
        self._stats = store_parts.stats
        self._queues = store_parts.queues
        self._hold = parts.hold
        self._answers = parts.send_answers
        self._late_answers = late_answers
        self._end = LogEnd(store_parts, self._slow_ns)
        self._signed = SignedRequests(parts.access)
        self._keys = KeyIndex(store_parts.index, store_parts.dispatcher, bounds.pending_max)
        self._targets = parts.send_targets.plain
        self._store_host = parts.store_host
        self._cluster_property = parts.cluster_property
        self._known_listener = parts.store.arrival_listener
        self._record_bytes_max = store_parts.log.record_bytes_max
        self._message_bytes_max = parts.store_config.message_bytes_max
        self._frame_bytes_max = frame_bytes_max
        self._header_bytes_max = header_bytes_max
        self._arrivals = []
        self._waiting = []
        self._pulls = pulls
        if pulls is not None:
            self._topic_slots = store_parts.queues.slots
            self._gets, self._broker_get, self._tools_group = pulls.gets, pulls.broker_get, pulls.tools_group
            self._pull_walk = PullWalk(parts, pulls, bounds)
            self._take_pull_texts(pulls.texts)

    def figures(self):
        """How many sends and pulls were served, and how often a request was left to the Python path, by REASONS."""
        cdef int index
        declined = {name: self._declined[index] for index, name in enumerate(REASONS) if self._declined[index]}
        return self._taken - self._pulls_taken, self._pulls_taken, declined

    # -- one call -------------------------------------------------------------------------------------------------

    def serve(self, bytes buffer not None, Py_ssize_t start, int count_max, connection):
        """Serve the plain requests that begin at `start`, one after the other, at most `count_max`.

        Return where the first byte is that was not served: an incomplete frame, a request for the Python path, the
        end. Their answers are written to the connection, or wait for the disk.
        """
        cdef const uint8_t *data = <const uint8_t *> PyBytes_AS_STRING(buffer)
        cdef const uint8_t *end = data + PyBytes_GET_SIZE(buffer)
        cdef const uint8_t *at = data + start
        self.count = self.pull_count = 0
        if start < 0 or end - at < 8:
            return start
        self._begin()
        try:
            at = self._serve_frames(at, end, count_max, connection)
        finally:
            self._close()
            self._write_answers(connection)
            self._tell_arrivals()
        return at - data

    cdef int _begin(self) noexcept:
        """Begin a call; what it needs is looked up when the first request needs it."""
        self._is_open = False
        self._out_size = 0
        return 0

    cdef const uint8_t *_serve_frames(
        self, const uint8_t *at, const uint8_t *end, int count_max, connection
    ) except NULL:
        """Serve what comes first of one connection; return where the first byte is that was not served."""
        cdef int64_t size
        self.count = self.pull_count = 0
        self._signed.begin(connection)
        self._born_host = connection.born_host
        self._is_host_long = PyBytes_GET_SIZE(self._born_host) != HOST_BYTES
        try:
            while self.count < count_max and end - at >= 8:
                size = <int32_t> get32(at)
                if size < 4 or size + 4 > self._frame_bytes_max or size + 4 > end - at:
                    break
                if not self._serve_frame(at + 4, at + 4 + size, connection):
                    self._declined[self._reason] += 1
                    break
                self.count += 1
                at += 4 + size
        finally:
            self._taken += self.count
            self._pulls_taken += self.pull_count
            if self._signed.peer is not None:
                self._signed.close()
        return at

    cdef bint _serve_frame(self, const uint8_t *at, const uint8_t *end, connection) except -1:
        """Serve one request; False: it is for the Python path, and nothing has changed."""
        cdef Header header
        cdef SendFields fields
        cdef PullFields asked
        cdef uint32_t word = get32(at)
        cdef const uint8_t *body = at + 4 + (word & 0xFFFFFF)
        self._reason = BECAUSE_OF_FIELDS
        if body > end or (word & 0xFFFFFF) > self._header_bytes_max:
            return False
        if word >> 24 == JSON_HEADER:
            if not scan_json(at + 4, body, &header):
                return False
        elif word >> 24 != BINARY_HEADER or not scan_binary(at + 4, body, &header):
            return False
        if header.flag & RESPONSE_FLAG:
            return False
        if header.code == SEND_MESSAGE_V2 or header.code == SEND_BATCH_MESSAGE or header.code == SEND_MESSAGE:
            if not self._is_open:
                self._open()
            if self._end.is_refusing or self._is_host_long:
                self._reason = BECAUSE_OF_REFUSAL
                return False
            return read_send(&header, &fields) and self._send(&header, &fields, body, end)
        if header.code == PULL_MESSAGE and self._pulls is not None and not header.flag & ONEWAY_FLAG:
            return read_pull(&header, &asked) and self._pull(&header, &asked, body, end, connection)
        self._reason = BECAUSE_OF_CODE
        return False

    cdef int _open(self) except -1:
        """Read the state that the sends of a call work on."""
        config = self._config
        self._end.is_refusing = (
            self._state.refusal is not None
            or config.start_accept_send_timestamp
            or PyBytes_GET_SIZE(self._store_host) != HOST_BYTES
        )
        self._answers_wait = self._put_waits.is_needed
        self._keys_max = config.message_keys_max
        self._listener = self._store.arrival_listener
        self._tells_arrivals = self._listener is not None and (
            self._listener is not self._known_listener or self._hold.held or self._hold.topics
        )
        self._put_times = self._put_bytes = 0
        self._topic_at = NULL
        self._target = None
        self._keys.begin()
        if self._said is not self._answers.said:
            self._take_texts()
        self._end.load()
        self._is_open = True
        return 0

    cdef int _close(self) except -1:
        """Leave all state as the Python path would. Answers are written, and the listener is told, afterwards."""
        if not self._is_open:
            return 0
        self._is_open = False
        self._end.store()
        self._end.release()
        self._keys.close()
        self._close_target()
        if self._put_times:
            self._stats.put_times += self._put_times
            self._stats.put_bytes += self._put_bytes
        return 0

    cdef int _write_answers(self, connection) except -1:
        """Have the answers of one connection written, now or when disk and slaves have its messages."""
        if self._out_size:
            answer = PyBytes_FromStringAndSize(<char *> self._out, self._out_size)
            self._out_size = 0
            if self._waiting:
                waiting, self._waiting = self._waiting, []
                self._put_waits.when_stored(self._end.position, self._late_answers(connection, answer, waiting))
            else:
                connection.write(answer)
        return 0

    cdef int _tell_arrivals(self) except -1:
        """Tell who waits for messages; 1: somewhere a pull waited."""
        cdef int has_told = 0
        if not self._arrivals:
            return 0
        arrivals, self._arrivals = self._arrivals, []
        held, topics = self._hold.held, self._hold.topics
        for queue, first_offset, codes in arrivals:
            if self._listener is not self._known_listener or queue.topic in topics or (
                (queue.topic, queue.queue_id) in held
            ):
                self._listener(queue.topic, queue.queue_id, first_offset, codes)
                has_told = 1
        return has_told

    cdef int _take_texts(self) except -1:
        """Take the prepared text of answers: it changes with the region and the trace setting."""
        said = self._answers.said
        texts = self._answers.texts()
        self._texts.before_id, self._texts.before_queue_id = piece_of(texts[0]), piece_of(texts[1])
        self._texts.before_queue_offset, self._texts.before_opaque = piece_of(texts[2]), piece_of(texts[3])
        self._texts.end, self._texts.binary_start = piece_of(texts[4]), piece_of(texts[5])
        self._texts.binary_flag, self._texts.binary_common = piece_of(texts[6]), piece_of(texts[7])
        self._texts.id_prefix = piece_of(texts[8])
        self._texts_size = sum(map(len, texts))
        self._said_texts, self._said = texts, said
        return 0

    # -- the topic ------------------------------------------------------------------------------------------------

    cdef bint _find_target(self, const uint8_t *at, int32_t size) except -1:
        """Look the topic up, unless it is the last request's. False: it is not one that is plainly sent to."""
        cdef PyObject *found
        if self._topic_at != NULL and self._topic_size == size and memcmp(self._topic_at, at, size) == 0:
            return True
        self._close_target()
        topic = PyUnicode_DecodeUTF8(<char *> at, size, NULL)
        found = PyDict_GetItemWithError(self._targets, topic)
        if found == NULL:
            return False
        target = <object> found
        slot = target.slot
        if slot is None or slot.is_gone:
            slot = self._queues.slot(target.topic)
            if slot is None:
                return False
        if slot.is_schedule:
            return False
        self._target, self._slot = target, slot
        self._first = slot.first
        self._note_name(at, size)
        self._queue_id_end = target.queue_id_end
        self._topic_at, self._topic_size = &self._encoded_topic[1], size  # its bytes stay, those of a request don't
        return True

    cdef int _note_name(self, const uint8_t *at, int32_t size) noexcept:
        """What a `TopicSlot` has of the topic's name. Made anew: with many topics that is faster than to look at it."""
        self._encoded_topic[0] = <uint8_t> size
        memcpy(&self._encoded_topic[1], at, size)
        self._prefix_hash = 0
        java_hash(at, size, &self._prefix_hash)
        self._prefix_hash = self._prefix_hash * 31 + 35  # "#"
        return 0

    cdef int _announce(self, int32_t queue_id) noexcept:
        """Have the processor bring the queue's numbers along: with many queues they are far away."""
        cdef const uint8_t *at
        if queue_id < PyTuple_GET_SIZE(self._first):
            at = <const uint8_t *> item_of(self._first, queue_id)
            prefetch(at)
            prefetch(at + 64)
            prefetch(at + 128)
        return 0

    cdef int _close_target(self) except -1:
        """Count what was put into the topic that was looked up last."""
        if self._target is not None and self._target_times:
            self._target.count += self._target_count
            self._target.times += self._target_times
            self._target.size += self._target_bytes
        self._target_count = self._target_times = self._target_bytes = 0
        self._topic_at = NULL
        self._target = self._slot = None
        return 0

    cdef _queue(self, int32_t queue_id):
        if queue_id < PyTuple_GET_SIZE(self._first):
            return self._first[queue_id]
        queue = self._queues.of(self._slot, queue_id)
        self._first = self._slot.first  # it may have grown
        return queue

    # -- sends ----------------------------------------------------------------------------------------------------

    cdef bint _send(self, Header *header, SendFields *fields, const uint8_t *body, const uint8_t *end) except -1:
        """One send or batch; False: it is for the Python path, and nothing has changed."""
        cdef Common common
        cdef int32_t size
        cdef int count
        cdef int64_t queue_offset
        self._reason = BECAUSE_OF_KIND
        if fields.sys_flag & TRANSACTION_BITS or end - body > self._message_bytes_max:
            return False
        self._reason = BECAUSE_OF_TOPIC
        if not self._find_target(fields.topic.at, fields.topic.size):
            return False
        if not 0 <= fields.queue_id < self._queue_id_end:
            return False
        self._announce(fields.queue_id)
        self._reason = BECAUSE_OF_PROPERTIES
        size = self._properties(fields)
        if size < 0:
            return False
        common.queue_id, common.sys_flag = fields.queue_id, fields.sys_flag & ~V6_BITS
        common.born_timestamp, common.reconsume_times = fields.born_timestamp, fields.reconsume_times
        common.born_host = <const uint8_t *> PyBytes_AS_STRING(self._born_host)
        common.store_host = <const uint8_t *> PyBytes_AS_STRING(self._store_host)
        common.topic, common.topic_size = self._encoded_topic, self._topic_size + 1
        if fields.is_batch:
            count = self._cut_batch(body, end, size)
        else:
            count = self._single(body, end, size, fields.flag)
        if not count:
            return False
        self._reason = BECAUSE_OF_ROOM
        if not self._put(header, &common, count, body, end, &queue_offset):
            return False
        if not header.flag & ONEWAY_FLAG:
            self._answer(header, count, common.queue_id, queue_offset)
        return True

    cdef int32_t _properties(self, SendFields *fields) except -2:
        """Write the request's properties into the scratch memory, with the broker's own pair; their size, -1: Python.

        Of a single message the marks are found, too. A batch's own may ask for no delay at all.
        """
        cdef int32_t size = fields.properties.size
        cdef int32_t cluster_size = <int32_t> PyBytes_GET_SIZE(self._cluster_property)
        if size + cluster_size + 1 > SCRATCH_BYTES:
            return -1
        if fields.properties.has_escapes:
            size = resolve(&fields.properties, self._scratch)
            if size < 0:
                return -1
        elif size:
            memcpy(self._scratch, fields.properties.at, size)
        if fields.is_batch:
            if memmem(self._scratch, size, b"DEL", 3) != NULL:
                return -1
        elif not find_marks(self._scratch, &size, self._keys_max, True, &self._messages[0].marks):
            return -1
        if size and self._scratch[size - 1] != 2:
            self._scratch[size] = 2
            size += 1
        memcpy(self._scratch + size, PyBytes_AS_STRING(self._cluster_property), cluster_size)
        size += cluster_size
        return size if size <= PROPERTIES_BYTES_MAX else -1

    cdef int _single(self, const uint8_t *body, const uint8_t *end, int32_t properties_size, int32_t flag) except -1:
        cdef Message *message = &self._messages[0]
        message.body, message.body_size = body, <int32_t> (end - body)
        message.properties, message.properties_size = self._scratch, properties_size
        message.flag = flag
        return 1

    cdef int _cut_batch(self, const uint8_t *body, const uint8_t *end, int32_t common_size) except -1:
        return cut_batch(
            body,
            end,
            self._scratch,
            common_size,
            self._keys_max,
            self._scratch + common_size,
            self._scratch + SCRATCH_BYTES,
            self._messages,
            MESSAGES_MAX,
        )

    cdef bint _put(
        self, Header *header, Common *common, int count, const uint8_t *body, const uint8_t *end, int64_t *queue_offset
    ) except -1:
        """Store the messages side by side, all or none; False: none, and nothing has changed.

        First all that can fail, then the copy, then the numbers that make it count, as in store/appender.py. The account
        is asked about last, because a stamp that was found good is used up, but no file of the log ends for a stranger.
        """
        cdef int64_t started = monotonic_ns(), size = 0
        cdef Message *message
        cdef int index
        for index in range(count):
            message = &self._messages[index]
            message.size = RECORD_FIXED_BYTES + message.body_size + common.topic_size + message.properties_size
            size += message.size
            if not self._find_code(message):
                return False
        if size > self._record_bytes_max or not self._hash_keys(count):
            return False
        if not self._end.has_map or self._end.position + size > self._end.limit:
            if self._signed.peer is not None or not self._end.make_room(size):
                return False
        if self._signed.peer is not None:
            self._reason = BECAUSE_OF_ACCOUNT
            if not self._signed.is_permitted(header, body, end, self._target.topic, None):
                return False
            started = monotonic_ns()  # a put was not slow because its body was long to hash
        queue = self._queue(common.queue_id)
        queue_offset[0] = queue.next_index
        self._write(queue, common, count, size, queue_offset[0])
        self._count_put(queue, count, size, queue_offset[0])
        self._end.note_slow(monotonic_ns() - started)
        return True

    cdef int _write(self, queue, Common *common, int count, int64_t size, int64_t queue_offset) except -1:
        """Records into the log, units into the queue. Nothing here refuses."""
        cdef Py_ssize_t tail_size
        cdef uint8_t *unit
        cdef Message *message
        cdef int index
        if self._end.position + size > self._end.prepare_at:
            self._end.request_prepare()
        tail = queue.tail
        tail_size = PyByteArray_GET_SIZE(tail)
        PyByteArray_Resize(tail, tail_size + UNIT_BYTES * count)
        unit = <uint8_t *> PyByteArray_AS_STRING(tail) + tail_size
        common.store_timestamp = self._end.timestamp = self._end.now_ms()
        for index in range(count):
            message = &self._messages[index]
            message.position = self._offsets[index] = self._end.position
            self._end.add(message, common, queue_offset + index)
            put_unit(unit + UNIT_BYTES * index, message)
            self._end.position += message.size
        queue.next_index = queue_offset + count
        if not queue.dirty:
            queue.dirty = True
            self._queues.dirty.append(queue)
        return 0

    cdef bint _find_code(self, Message *message) except -1:
        """The hash of the tag, as the consume queue has it; False: the tag is no UTF-8."""
        cdef uint32_t hashed = 0
        if message.marks.tags.at >= 0:
            if not java_hash(message.properties + message.marks.tags.at, message.marks.tags.size, &hashed):
                return False
        message.code = <int32_t> hashed
        return True

    cdef int _count_put(self, queue, int count, int64_t size, int64_t queue_offset) except -1:
        """Hand the keys on, count, and remember whom to tell."""
        cdef int index
        if self._keys.way == INDEX_AT_ONCE:
            for index in range(count):
                self._keys.place(self._messages[index].entries, self._messages[index].position, self._end.timestamp)
        elif self._keys.way == INDEX_LATER:
            self._leave_keys(count)
        self._put_times += count
        self._put_bytes += size
        self._target_count += count
        self._target_times += 1
        self._target_bytes += size
        if self._tells_arrivals:
            codes = [self._messages[index].code for index in range(count)]
            if self._arrivals and self._arrivals[-1][0] is queue:
                self._arrivals[-1][2].extend(codes)
            else:
                self._arrivals.append((queue, queue_offset, codes))
        return 0

    # -- answers --------------------------------------------------------------------------------------------------

    cdef int _answer(self, Header *header, int count, int32_t queue_id, int64_t queue_offset) except -1:
        """Add the answer to the others of this call. One that waits for disk or slave: also what it takes to say that it was in vain."""
        cdef size_t needed = self._out_size + self._texts_size + ANSWER_BYTES_MAX
        cdef uint8_t *stop
        cdef int index
        needed += count * (<size_t> self._texts.id_prefix.size + ID_BYTES)
        if needed > self._out_max:
            self._grow_out(2 * needed)
        stop = put_answer(
            self._out + self._out_size,
            &self._texts,
            header.encoding,
            header.opaque,
            self._offsets,
            count,
            queue_id,
            queue_offset,
        )
        self._out_size = stop - self._out
        if self._answers_wait:
            offsets = tuple([self._offsets[index] for index in range(count)])
            self._waiting.append((header.code, header.opaque, header.encoding, queue_id, queue_offset, offsets))
        return 0

    cdef int _grow_out(self, size_t size) except -1:
        cdef uint8_t *grown = <uint8_t *> realloc(self._out, size)
        if grown == NULL:
            raise MemoryError
        self._out, self._out_max = grown, size
        return 0

    # -- the key index --------------------------------------------------------------------------------------------

    cdef bint _hash_keys(self, int count) except -1:
        """Make the entries of the messages, without their places; False: a key is no UTF-8, or there are too many."""
        cdef int index
        cdef Message *message
        self._keys.begin_request(self._end.position)
        if self._keys.way != INDEX_AT_ONCE:
            return True
        for index in range(count):
            message = &self._messages[index]
            message.entries = self._keys.hash(self._prefix_hash, message.properties, &message.marks)
            if message.entries < 0:
                return self._keys.has_made_room() and self._hash_keys(count)
        self._keys.end_request()
        return True

    cdef int _leave_keys(self, int count) except -1:
        cdef int index
        cdef Message *message
        for index in range(count):
            message = &self._messages[index]
            self._keys.leave(
                self._prefix_hash, message.properties, message.properties_size, message.position, self._end.timestamp
            )
        return self._keys.bound_pending()

    # -- pulls ----------------------------------------------------------------------------------------------------

    cdef int _take_pull_texts(self, tuple texts) except -1:
        self._pull_texts.before_max, self._pull_texts.before_min = piece_of(texts[0]), piece_of(texts[1])
        self._pull_texts.before_next, self._pull_texts.before_opaque = piece_of(texts[2]), piece_of(texts[3])
        self._pull_texts.end, self._pull_texts.binary_start = piece_of(texts[4]), piece_of(texts[5])
        self._pull_texts.binary_flag = piece_of(texts[6])
        self._pull_said = texts
        return 0

    cdef bint _pull(
        self, Header *header, PullFields *asked, const uint8_t *body, const uint8_t *end, connection
    ) except -1:
        """One pull for messages that are there, in memory, in one file. False: for the Python path, nothing changed."""
        cdef int64_t started = monotonic_ns(), commit_offset = -1, low, high
        cdef Walk *walk
        self._reason = BECAUSE_OF_SETTINGS
        if not self._state.is_readable or self._config.slave_read_enable or self._config.disable_slow_consumers:
            return False
        if asked.sys_flag & self._read_again:
            return False
        if asked.sys_flag & COMMIT_OFFSET and not (
            asked.commit_offset.at != NULL
            and to_padded_number(&asked.commit_offset, &commit_offset)
            and commit_offset >= -1
        ):
            return False
        self._reason = BECAUSE_OF_OFFSET
        topic = text_of(&asked.topic)
        slot = self._topic_slots.get(topic)
        queue = (<dict> slot.queues).get(asked.queue_id) if slot is not None else None
        if queue is None:
            return False
        low, high = queue.min_index, queue.next_index
        if not low <= asked.queue_offset < high or asked.queue_offset < queue.doubted_below:
            return False
        group = text_of(&asked.group)
        self._reason = BECAUSE_OF_SUBSCRIPTION
        if self._is_open:
            self._end.store()  # what this call has put counts
        if not self._pull_walk.open(asked, group, topic, connection):
            return False
        self._reason = BECAUSE_OF_PLACE
        if not self._pull_walk.along(queue, asked.queue_offset, high):
            return False
        walk = &self._pull_walk.walk
        file = self._pull_walk.file_of(walk.runs[0].start)
        if file is None or walk.runs[walk.run_count - 1].end > file.end:
            return False
        if self._signed.peer is not None:
            self._reason = BECAUSE_OF_ACCOUNT
            if not self._signed.is_permitted(header, body, end, topic, group):
                return False
        if asked.sys_flag & COMMIT_OFFSET:
            self._pulls.commit(group, topic, asked.queue_id, commit_offset)
        self._hand_out(header, connection, file, asked.queue_offset + walk.passed, low, high)
        if group != self._tools_group:  # tools look, and don't consume
            self._count_get(group, topic)
        started = monotonic_ns() - started
        if started >= self._slow_ns:
            self._stats.slow_get(started // 1000000)
        self.pull_count += 1
        return True

    cdef int _count_get(self, group, topic) except -1:
        """Count what was handed out, as BrokerStatsManager.inc_group_get does."""
        cdef object count = self._pull_walk.walk.count
        self._stats.get_found_times += 1
        self._stats.get_transferred += count
        pair = self._gets.get((topic, group))
        if pair is None:
            self._pulls.count_first(group, topic, count, self._pull_walk.walk.size)
            return 0
        self._broker_get.value += count
        nums, sizes = <tuple> pair
        nums.value += count
        nums.times += 1
        sizes.value += self._pull_walk.walk.size
        sizes.times += 1
        return 0

    cdef int _hand_out(
        self, Header *header, connection, file, int64_t following, int64_t low, int64_t high
    ) except -1:
        """Write the answer. Neighbours that are many bytes go to the socket as they lie in the file."""
        cdef uint8_t head[PULL_HEAD_BYTES_MAX]
        cdef Py_buffer view
        cdef int64_t base = file.base, start = self._pull_walk.walk.runs[0].start - base, size = self._pull_walk.walk.size
        cdef Py_ssize_t head_size = put_pull_head(
            head, &self._pull_texts, header.encoding, header.opaque, high, low, following, size
        ) - head
        cdef uint8_t *target
        if self._pull_walk.walk.run_count == 1 and size >= self._copied_bytes_max:
            if self._direct >= 0:
                return self._write_run(connection, head, head_size, file, start, size)
            connection.write_parts([PyBytes_FromStringAndSize(<char *> head, head_size), file.view[start : start + size]])
            return 0
        if self._direct >= 0:
            if self._out_size + head_size + size > self._out_max:
                self._grow_out(2 * (self._out_size + head_size + size))
            memcpy(self._out + self._out_size, head, head_size)
            PyObject_GetBuffer(file.view, &view, PyBUF_SIMPLE)
            copy_runs(self._out + self._out_size + head_size, &self._pull_walk.walk, <const uint8_t *> view.buf, base)
            PyBuffer_Release(&view)
            self._out_size += head_size + size
            return 0
        answer = PyBytes_FromStringAndSize(NULL, head_size + size)
        target = <uint8_t *> PyBytes_AS_STRING(answer)
        memcpy(target, head, head_size)
        PyObject_GetBuffer(file.view, &view, PyBUF_SIMPLE)
        copy_runs(target + head_size, &self._pull_walk.walk, <const uint8_t *> view.buf, base)
        PyBuffer_Release(&view)
        connection.write(answer)
        return 0

    cdef int _write_run(
        self, connection, const uint8_t *head, size_t head_size, file, Py_ssize_t start, size_t size
    ) except -1:
        """Write an answer straight from the mapped file; what the socket does not take goes to the connection."""
        cdef Py_buffer view
        cdef size_t sent
        PyObject_GetBuffer(file.view, &view, PyBUF_SIMPLE)
        sent = write_two(self._direct, head, head_size, <const uint8_t *> view.buf + start, size)
        PyBuffer_Release(&view)
        if sent == head_size + size:
            return 0
        self._direct = -1  # what follows must wait behind this
        if sent < head_size:
            rest = PyBytes_FromStringAndSize(<const char *> head + sent, head_size - sent)
            connection.write_rest([rest, file.view[start : start + size]])
        else:
            start += sent - head_size
            connection.write_rest([file.view[start : start + size - (sent - head_size)]])
        return 0


include "fast_reader.pxi"
include "fast_dispatch.pxi"
include "fast_http2.pxi"
