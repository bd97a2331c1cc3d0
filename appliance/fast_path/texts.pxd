"""Texts in place: UTF-8, JSON's escapes, numbers written as text, Java's string hash.

Nothing here decides what a request means. Each function says False for what it does not know, and then the whole
request goes to the Python path, which knows all of it.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy


ctypedef struct Text:
    # Bytes of a buffer that outlives the request.
    const uint8_t *at
    int32_t size
    bint has_escapes  # as in JSON, not resolved yet


cdef inline bint is_text(Text *text, const char *known, int32_t size) noexcept nogil:
    return text.size == size and memcmp(text.at, known, size) == 0


cdef inline bint to_number(const uint8_t *at, int32_t size, int64_t *number) noexcept nogil:
    """Read -9223372036854775807 to 9223372036854775807, as JSON writes integers: no sign but minus, no leading zero."""
    cdef bint is_negative = False
    cdef uint64_t value = 0
    cdef int32_t index = 0
    if size > 0 and at[0] == 45:
        is_negative = True
        index = 1
    if size - index < 1 or size - index > 18:
        return size - index == 19 and to_long_number(at + index, is_negative, number)
    if at[index] == 48 and (size - index > 1 or is_negative):
        return False
    while index < size:
        if at[index] < 48 or at[index] > 57:
            return False
        value = value * 10 + (at[index] - 48)
        index += 1
    number[0] = -<int64_t>value if is_negative else <int64_t>value
    return True


cdef inline bint to_long_number(const uint8_t *at, bint is_negative, int64_t *number) noexcept nogil:
    """Nineteen digits may be too many for 64 bits."""
    cdef uint64_t value = 0
    cdef int index
    if at[0] == 48:
        return False
    for index in range(19):
        if at[index] < 48 or at[index] > 57:
            return False
        value = value * 10 + (at[index] - 48)
    if value > 0x7FFFFFFFFFFFFFFFu:
        return False
    number[0] = -<int64_t>value if is_negative else <int64_t>value
    return True


cdef inline bint to_padded_number(Text *text, int64_t *number) noexcept nogil:
    """Read a number that may have leading zeros, as a pull may and a send may not; at most 18 digits."""
    cdef int32_t index = 1 if text.size and text.at[0] == 45 else 0
    cdef int64_t value = 0
    cdef bint is_negative = index == 1
    if text.has_escapes or not 0 < text.size - index <= 18:
        return False
    while index < text.size:
        if text.at[index] < 48 or text.at[index] > 57:
            return False
        value = value * 10 + (text.at[index] - 48)
        index += 1
    number[0] = -value if is_negative else value
    return True


cdef inline bint to_padded_int32(Text *text, int32_t *number) noexcept nogil:
    cdef int64_t value = 0
    if not to_padded_number(text, &value) or value != <int32_t>value:
        return False
    number[0] = <int32_t>value
    return True


cdef inline bint to_int32(Text *text, int32_t *number) noexcept nogil:
    cdef int64_t value = 0
    if text.has_escapes or not to_number(text.at, text.size, &value) or value != <int32_t>value:
        return False
    number[0] = <int32_t>value
    return True


cdef inline int utf8_size(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return how many bytes the character takes, 0 when they are no UTF-8 (as Python reads it: no surrogates)."""
    cdef uint8_t first = at[0], second
    if first < 0x80:
        return 1
    if first < 0xC2 or end - at < 2:
        return 0
    second = at[1]
    if second & 0xC0 != 0x80:
        return 0
    if first < 0xE0:
        return 2
    if end - at < 3 or at[2] & 0xC0 != 0x80:
        return 0
    if first < 0xF0:
        return 0 if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F) else 3
    if first > 0xF4 or end - at < 4 or at[3] & 0xC0 != 0x80:
        return 0
    return 0 if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F) else 4


cdef inline bint is_utf8(const uint8_t *at, const uint8_t *end) noexcept nogil:
    cdef int size
    cdef uint64_t eight
    while at < end:
        if end - at >= 8:
            memcpy(&eight, at, 8)
            if not eight & 0x8080808080808080u:
                at += 8
                continue
        size = utf8_size(at, end)
        if not size:
            return False
        at += size
    return True


cdef inline int hex_digit(uint8_t byte) noexcept nogil:
    if 48 <= byte <= 57:
        return byte - 48
    byte |= 32
    return byte - 87 if 97 <= byte <= 102 else -1


cdef inline int32_t escaped_unit(const uint8_t *at) noexcept nogil:
    """Read the four hexadecimal digits of a \\uXXXX; -1 when they are none."""
    cdef int32_t unit = 0
    cdef int index, digit
    for index in range(4):
        digit = hex_digit(at[index])
        if digit < 0:
            return -1
        unit = unit << 4 | digit
    return unit


cdef inline uint8_t short_escape(uint8_t byte) noexcept nogil:
    """Return what stands for the letter behind a backslash; 0 for a letter that stands for nothing."""
    if byte == 34 or byte == 47 or byte == 92:  # " / \
        return byte
    if byte == 98:  # b
        return 8
    if byte == 102:  # f
        return 12
    if byte == 110:  # n
        return 10
    if byte == 114:  # r
        return 13
    return 9 if byte == 116 else 0  # t


cdef inline int32_t resolve(Text *text, uint8_t *target) noexcept nogil:
    """Write the text without JSON's escapes; return its size, -1 for a surrogate or what is no escape.

    What is written is never longer. The text was scanned before: behind a backslash stand enough bytes.
    """
    cdef const uint8_t *at = text.at
    cdef const uint8_t *end = at + text.size
    cdef uint8_t *start = target
    cdef int32_t unit
    while at < end:
        if at[0] != 92:
            target[0] = at[0]
            target += 1
            at += 1
            continue
        if at[1] != 117:  # u
            target[0] = short_escape(at[1])
            target += 1
            at += 2
            continue
        unit = escaped_unit(at + 2)
        at += 6
        if unit < 0x80:
            target[0] = <uint8_t>unit
            target += 1
        elif unit < 0x800:
            target[0] = <uint8_t>(0xC0 | unit >> 6)
            target[1] = <uint8_t>(0x80 | unit & 63)
            target += 2
        elif 0xD800 <= unit < 0xE000:
            return -1
        else:
            target[0] = <uint8_t>(0xE0 | unit >> 12)
            target[1] = <uint8_t>(0x80 | unit >> 6 & 63)
            target[2] = <uint8_t>(0x80 | unit & 63)
            target += 3
    return <int32_t>(target - start)


cdef inline bint java_hash(const uint8_t *at, int32_t size, uint32_t *hashed) noexcept nogil:
    """Go on with java.lang.String's hash over the UTF-16 units of the text. False when it is no UTF-8."""
    cdef const uint8_t *end = at + size
    cdef uint32_t value = hashed[0], point
    cdef int width
    while at < end:
        if at[0] < 0x80:
            value = value * 31 + at[0]
            at += 1
            continue
        width = utf8_size(at, end)
        if width == 2:
            value = value * 31 + (<uint32_t>(at[0] & 31) << 6 | at[1] & 63)
        elif width == 3:
            value = value * 31 + (<uint32_t>(at[0] & 15) << 12 | <uint32_t>(at[1] & 63) << 6 | at[2] & 63)
        elif width == 4:
            point = <uint32_t>(at[0] & 7) << 18 | <uint32_t>(at[1] & 63) << 12 | <uint32_t>(at[2] & 63) << 6 | at[3] & 63
            point -= 0x10000
            value = (value * 31 + (0xD800 | point >> 10)) * 31 + (0xDC00 | point & 0x3FF)
        else:
            return False
        at += width
    hashed[0] = value
    return True
