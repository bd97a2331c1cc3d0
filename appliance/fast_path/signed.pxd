"""What a signature covers: the values of all ext fields but the signature itself, in the order of the fields' names.

The rules stand in gantrymq/remoting/signature.py. Who may do what is decided in appliance/acl/access.py.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, memcpy

from headers cimport FIELDS_MAX, Field, Header
from pull_fields cimport PULL_MESSAGE
from send_fields cimport SEND_MESSAGE
from texts cimport Text, is_text, resolve

ctypedef struct SignedFields:
    # NULL: there is no such field.
    Text *access_key
    Text *signature
    Text *stamp
    Text *values[FIELDS_MAX]  # what is signed, in order
    int count
    int64_t size_max  # of all values; less when escapes are resolved


cdef inline int32_t compare(Text *one, Text *other) noexcept nogil:
    """Less than 0, 0, more than 0. The order of UTF-8's bytes is that of the characters."""
    cdef int32_t size = one.size if one.size < other.size else other.size
    cdef int32_t order = memcmp(one.at, other.at, size)
    return order if order else one.size - other.size


cdef inline void note_meaning(Text *name, Text *value, SignedFields *signed) noexcept nogil:
    if name.size == 9 and is_text(name, b"AccessKey", 9):
        signed.access_key = value
    elif name.size == 9 and is_text(name, b"Signature", 9):
        signed.signature = value
    elif name.size == 12 and is_text(name, b"RequestStamp", 12):
        signed.stamp = value


cdef inline bint find_signed(Header *header, SignedFields *signed) noexcept nogil:
    """Sort the fields. False: a name is doubled, an account is not named, or a second topic is."""
    cdef Field *ordered[FIELDS_MAX]
    cdef Field *field
    cdef int index, place
    cdef int32_t order
    signed.access_key = signed.signature = signed.stamp = NULL
    signed.count = 0
    signed.size_max = 0
    for index in range(header.count):
        field = &header.fields[index]
        if header.code != SEND_MESSAGE and header.code != PULL_MESSAGE and is_text(&field.name, b"topic", 5):
            return False  # their topic has a short name
        note_meaning(&field.name, &field.value, signed)
        place = index
        while place > 0:
            order = compare(&ordered[place - 1].name, &field.name)
            if order == 0:
                return False
            if order < 0:
                break
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = field
    for index in range(header.count):
        if &ordered[index].value != signed.signature:
            signed.values[signed.count] = &ordered[index].value
            signed.size_max += ordered[index].value.size
            signed.count += 1
    return signed.access_key != NULL and signed.access_key.size > 0 and not signed.access_key.has_escapes


cdef inline int64_t put_signed(SignedFields *signed, uint8_t *target) noexcept nogil:
    """Write the values, up to `size_max` bytes; return how many it were, -1 for a surrogate."""
    cdef uint8_t *at = target
    cdef int32_t size
    cdef int index
    cdef Text *value
    for index in range(signed.count):
        value = signed.values[index]
        if value.has_escapes:
            size = resolve(value, at)
            if size < 0:
                return -1
            at += size
        else:
            memcpy(at, value.at, value.size)
            at += value.size
    return at - target


cdef inline const uint8_t *behind_digits(const uint8_t *at, const uint8_t *end) noexcept nogil:
    while at < end and 48 <= at[0] <= 57:
        at += 1
    return at


cdef inline bint has_hidden_stamp(const uint8_t *text, int64_t size, int64_t place) noexcept nogil:
    """Whether a stamp stands at this place of what is signed (HIDDEN_STAMP of appliance/acl/access.py)."""
    cdef const uint8_t *end = text + size
    cdef const uint8_t *at
    cdef int index
    if size - place < 34:  # 13 digits, a dot, 16 hexadecimal ones, a dot, a digit, a dot, a digit
        return False
    at = text + place
    if behind_digits(at, at + 13) != at + 13 or at[13] != 46 or at[30] != 46:
        return False
    for index in range(14, 30):
        if not (48 <= at[index] <= 57 or 97 <= at[index] <= 102):
            return False
    at += 31
    text = behind_digits(at, end)
    return text > at and end - text >= 2 and text[0] == 46 and 48 <= text[1] <= 57
