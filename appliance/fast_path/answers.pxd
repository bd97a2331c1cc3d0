"""Answers to sends, from the same prepared text as the Python path's (appliance/broker/delivery/answers.py)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from bytes_in_order cimport put16, put32, put_bytes, put_decimal, put_hex64
from headers cimport BINARY_HEADER

cdef enum:
    ANSWER_BYTES_MAX = 1024  # without what SendTexts and message ids take
    DIGITS_MAX = 20
    PULL_HEAD_BYTES_MAX = 1024

ctypedef struct Piece:
    const uint8_t *at
    int32_t size

ctypedef struct SendTexts:
    # JSON: what stands before message id, queue id, queue offset, opaque, and at the end.
    Piece before_id
    Piece before_queue_id
    Piece before_queue_offset
    Piece before_opaque
    Piece end
    # Binary: up to the opaque; from behind it to the ext fields' size; the fields that are always the same.
    Piece binary_start
    Piece binary_flag
    Piece binary_common
    Piece id_prefix  # the broker's address, in hexadecimal digits


cdef inline uint8_t *put_piece(uint8_t *at, Piece *piece) noexcept nogil:
    return put_bytes(at, piece.at, piece.size)


cdef inline uint8_t *put_ids(uint8_t *at, SendTexts *texts, const int64_t *offsets, int count) noexcept nogil:
    """Write message ids, joined by commas."""
    cdef int index
    for index in range(count):
        if index:
            at[0] = 44
            at += 1
        at = put_hex64(put_piece(at, &texts.id_prefix), offsets[index])
    return at


cdef inline uint8_t *put_named(uint8_t *at, const char *name, int32_t name_size, int64_t value) noexcept nogil:
    """Write a number as a binary header's field."""
    cdef uint8_t digits[DIGITS_MAX]
    cdef int32_t size = <int32_t>(put_decimal(digits, value) - digits)
    at = put_bytes(put16(at, <uint16_t>name_size), <const uint8_t *>name, name_size)
    return put_bytes(put32(at, <uint32_t>size), digits, size)


cdef inline uint8_t *put_json_answer(
    uint8_t *at, SendTexts *texts, int32_t opaque, const int64_t *offsets, int count, int32_t queue_id, int64_t queue_offset
) noexcept nogil:
    cdef uint8_t *start = at
    cdef uint32_t size
    at = put_ids(put_piece(at + 8, &texts.before_id), texts, offsets, count)
    at = put_decimal(put_piece(at, &texts.before_queue_id), queue_id)
    at = put_decimal(put_piece(at, &texts.before_queue_offset), queue_offset)
    at = put_decimal(put_piece(at, &texts.before_opaque), opaque)
    at = put_piece(at, &texts.end)
    size = <uint32_t>(at - start - 8)
    put32(put32(start, size + 4), size)
    return at


cdef inline uint8_t *put_binary_answer(
    uint8_t *at, SendTexts *texts, int32_t opaque, const int64_t *offsets, int count, int32_t queue_id, int64_t queue_offset
) noexcept nogil:
    cdef uint8_t *start = at
    cdef uint8_t *fields
    cdef uint8_t *ids
    cdef uint32_t size
    at = put_piece(put32(put_piece(at + 8, &texts.binary_start), <uint32_t>opaque), &texts.binary_flag)
    fields = at + 4
    at = put_piece(fields, &texts.binary_common)
    at = put_bytes(put16(at, 5), <const uint8_t *>b"msgId", 5)
    ids = at + 4
    at = put_ids(ids, texts, offsets, count)
    put32(ids - 4, <uint32_t>(at - ids))
    at = put_named(at, b"queueId", 7, queue_id)
    at = put_named(at, b"queueOffset", 11, queue_offset)
    put32(fields - 4, <uint32_t>(at - fields))
    size = <uint32_t>(at - start - 8)
    put32(put32(start, size + 4), size | 1 << 24)
    return at


cdef inline uint8_t *put_answer(
    uint8_t *at,
    SendTexts *texts,
    int encoding,
    int32_t opaque,
    const int64_t *offsets,
    int count,
    int32_t queue_id,
    int64_t queue_offset,
) noexcept nogil:
    """Write the frame that says where messages were stored; return what follows it."""
    if encoding == BINARY_HEADER:
        return put_binary_answer(at, texts, opaque, offsets, count, queue_id, queue_offset)
    return put_json_answer(at, texts, opaque, offsets, count, queue_id, queue_offset)


ctypedef struct PullTexts:
    # JSON: what stands before the queue's end, its minimum, the next offset and the opaque, and at the end.
    Piece before_max
    Piece before_min
    Piece before_next
    Piece before_opaque
    Piece end
    # Binary: up to the opaque, and from behind it to the ext fields' size.
    Piece binary_start
    Piece binary_flag


cdef inline uint8_t *put_pull_fields(
    uint8_t *at, PullTexts *texts, int encoding, int32_t opaque, int64_t maximum, int64_t minimum, int64_t following
) noexcept nogil:
    cdef uint8_t *fields
    if encoding != BINARY_HEADER:
        at = put_decimal(put_piece(at, &texts.before_max), maximum)
        at = put_decimal(put_piece(at, &texts.before_min), minimum)
        at = put_decimal(put_piece(at, &texts.before_next), following)
        at = put_decimal(put_piece(at, &texts.before_opaque), opaque)
        return put_piece(at, &texts.end)
    fields = put_piece(put32(put_piece(at, &texts.binary_start), <uint32_t>opaque), &texts.binary_flag) + 4
    at = put_named(fields, b"maxOffset", 9, maximum)
    at = put_named(at, b"minOffset", 9, minimum)
    at = put_named(at, b"nextBeginOffset", 15, following)
    at = put_named(at, b"suggestWhichBrokerId", 20, 0)
    put32(fields - 4, <uint32_t>(at - fields))
    return at


cdef inline uint8_t *put_pull_head(
    uint8_t *start,
    PullTexts *texts,
    int encoding,
    int32_t opaque,
    int64_t maximum,
    int64_t minimum,
    int64_t following,
    int64_t body_size,
) noexcept nogil:
    """Write the frame of found messages up to its body; return what follows it. At most PULL_HEAD_BYTES_MAX bytes."""
    cdef uint8_t *at = put_pull_fields(start + 8, texts, encoding, opaque, maximum, minimum, following)
    cdef uint32_t size = <uint32_t>(at - start - 8)
    put32(put32(start, <uint32_t>(size + 4 + body_size)), size | <uint32_t>encoding << 24)
    return at
