"""A frame's header, located in place: JSON or RocketMQ's binary one, into a table of fields.

A header is taken only when it is what the known clients write. Whatever is legal and unusual (white space, numbers in
ext fields, doubled names, escaped names, missing members) is left to the Python path.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t


from bytes_in_order cimport get16, get32
from texts cimport Text, escaped_unit, is_text, is_utf8, short_escape, to_number

cdef enum:
    FIELDS_MAX = 32
    JSON_HEADER = 0
    BINARY_HEADER = 1
    BINARY_HEAD_BYTES = 21
    LITERAL_BYTES_MAX = 19  # with more, a number may not fit into 64 bits

ctypedef struct Field:
    Text name
    Text value

ctypedef struct Header:
    int32_t code
    int32_t opaque
    int32_t flag
    int32_t version
    int encoding
    int count
    Field fields[FIELDS_MAX]


cdef inline bint scan_string(const uint8_t **place, const uint8_t *end, Text *text) noexcept nogil:
    """Read a JSON string that begins at the place; leave the place behind it. False: none, or one for Python."""
    cdef const uint8_t *at = place[0]
    cdef uint8_t seen = 0
    if at >= end or at[0] != 34:
        return False
    at += 1
    text.at = at
    text.has_escapes = False
    while at < end and at[0] != 34:
        if at[0] == 92:
            text.has_escapes = True
            if end - at < 7:  # the longest escape, and the quotation mark
                return False
            if at[1] == 117:
                if escaped_unit(at + 2) < 0:
                    return False
                at += 6
            elif short_escape(at[1]):
                at += 2
            else:
                return False
            continue
        if at[0] < 32:
            return False
        seen |= at[0]
        at += 1
    if at >= end:
        return False
    text.size = <int32_t>(at - text.at)
    place[0] = at + 1
    return seen < 0x80 or is_utf8(text.at, at)


cdef inline bint scan_number(const uint8_t **place, const uint8_t *end, int32_t *number) noexcept nogil:
    """Read an integer of 32 bits; a comma or brace has to follow."""
    cdef const uint8_t *at = place[0]
    cdef const uint8_t *start = at
    cdef int64_t value = 0
    while at < end and at[0] != 44 and at[0] != 125:
        at += 1
        if at - start > 11:
            return False
    if at >= end or not to_number(start, <int32_t>(at - start), &value) or value != <int32_t>value:
        return False
    number[0] = <int32_t>value
    place[0] = at
    return True


cdef inline bint scan_value(const uint8_t **place, const uint8_t *end, Text *value) noexcept nogil:
    """Read an ext field's value: a text, or, as some clients write it, a number, true or false, taken as their text."""
    cdef const uint8_t *at = place[0]
    cdef int64_t ignored = 0
    if at < end and at[0] == 34:
        return scan_string(place, end, value)
    value.at = at
    value.has_escapes = False
    while at < end and at[0] != 44 and at[0] != 125:
        at += 1
        if at - value.at > LITERAL_BYTES_MAX:
            return False
    value.size = <int32_t>(at - value.at)
    place[0] = at
    if is_text(value, b"true", 4) or is_text(value, b"false", 5):
        return True
    return value.size < LITERAL_BYTES_MAX and to_number(value.at, value.size, &ignored)


cdef inline bint scan_fields(const uint8_t **place, const uint8_t *end, Header *header) noexcept nogil:
    """Read an object of ext fields."""
    cdef const uint8_t *at = place[0]
    cdef Field *field
    header.count = 0
    if at >= end or at[0] != 123:
        return False
    at += 1
    while True:
        if header.count >= FIELDS_MAX:
            return False
        field = &header.fields[header.count]
        if not scan_string(&at, end, &field.name) or field.name.has_escapes or at >= end or at[0] != 58:
            return False
        at += 1
        if not scan_value(&at, end, &field.value) or at >= end:
            return False
        header.count += 1
        if at[0] == 125:
            break
        if at[0] != 44:
            return False
        at += 1
    place[0] = at + 1
    return True


cdef inline bint scan_member(const uint8_t **place, const uint8_t *end, Text *name, Header *header, int *seen) noexcept nogil:
    """Read the value of one member of the header and note in `seen` that it was there."""
    cdef int bit
    cdef int32_t *number = NULL
    cdef Text ignored
    if is_text(name, b"code", 4):
        bit, number = 1, &header.code
    elif is_text(name, b"opaque", 6):
        bit, number = 2, &header.opaque
    elif is_text(name, b"flag", 4):
        bit, number = 4, &header.flag
    elif is_text(name, b"version", 7):
        bit, number = 8, &header.version
    elif is_text(name, b"language", 8):
        bit = 16
    elif is_text(name, b"extFields", 9):
        bit = 32
    elif is_text(name, b"serializeTypeCurrentRPC", 23):
        bit = 64
    elif is_text(name, b"remark", 6):  # the Go client writes an empty one
        bit = 128
    else:
        return False
    if seen[0] & bit:
        return False
    seen[0] |= bit
    if number != NULL:
        return scan_number(place, end, number)
    if bit == 32:
        return scan_fields(place, end, header)
    return scan_string(place, end, &ignored)


cdef inline bint scan_json(const uint8_t *at, const uint8_t *end, Header *header) noexcept nogil:
    """Read a JSON header that fills the bytes up to `end`."""
    cdef int seen = 0
    cdef Text name
    header.encoding = JSON_HEADER
    if at >= end or at[0] != 123:
        return False
    at += 1
    while True:
        if not scan_string(&at, end, &name) or name.has_escapes or at >= end or at[0] != 58:
            return False
        at += 1
        if not scan_member(&at, end, &name, header, &seen) or at >= end:
            return False
        if at[0] == 125:
            break
        if at[0] != 44:
            return False
        at += 1
    return at + 1 == end and seen & 63 == 63


cdef inline bint scan_binary(const uint8_t *at, const uint8_t *end, Header *header) noexcept nogil:
    """Read RocketMQ's binary header: 21 bytes, remark, and pairs of i16 size, name, i32 size, value."""
    cdef int64_t left = end - at
    cdef uint32_t size
    cdef Field *field
    header.encoding = BINARY_HEADER
    header.count = 0
    if left < BINARY_HEAD_BYTES:
        return False
    header.code = <int16_t>get16(at)
    header.version = <int16_t>get16(at + 3)
    header.opaque = <int32_t>get32(at + 5)
    header.flag = <int32_t>get32(at + 9)
    if get32(at + 13) != 0 or get32(at + 17) != left - BINARY_HEAD_BYTES:  # a remark, or bytes behind the pairs
        return False
    at += BINARY_HEAD_BYTES
    while at < end:
        if header.count >= FIELDS_MAX or end - at < 6:
            return False
        field = &header.fields[header.count]
        size = get16(at)
        at += 2
        if size > 0x7FFF or end - at < <int64_t>size + 4:
            return False
        field.name.at, field.name.size, field.name.has_escapes = at, <int32_t>size, False
        at += size
        size = get32(at)
        at += 4
        if size > 0x7FFFFFFF or end - at < <int64_t>size:
            return False
        field.value.at, field.value.size, field.value.has_escapes = at, <int32_t>size, False
        at += size
        if not is_utf8(field.name.at, field.name.at + field.name.size):
            return False
        if not is_utf8(field.value.at, at):
            return False
        if field.value.size:  # Java can't tell an empty value from an absent one
            header.count += 1
    return True


