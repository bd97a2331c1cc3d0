"""A message's properties, one look: what queue and index need of them, and whether they ask for something unusual.

The text is `name 0x01 value 0x02 name 0x01 value`. The Python path searches it for marks such as `TAGS 0x01`; the walk
below stops at each 0x01 and compares what stands before it, which finds the same places.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr, memcmp, memmove

ctypedef struct Value:
    # Where a property's value stands among the properties; at < 0: the property is absent.
    int32_t at
    int32_t size

ctypedef struct Marks:
    Value tags
    Value unique_key
    Value keys


cdef inline bint ends_with(const uint8_t *start, const uint8_t *end, const char *name, int32_t size) noexcept nogil:
    return end - start >= size and memcmp(end - size, name, size) == 0


cdef inline bint asks_for_delay(const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Whether a property's name is one of those that delay: all of them have DEL in it."""
    while end - start >= 3:
        if start[0] == 68 and start[1] == 69 and start[2] == 76:
            return True
        start += 1
    return False


cdef inline bint note_value(
    const uint8_t *start, const uint8_t *pair, const uint8_t *at, const uint8_t *end, int32_t name_size, Value *value
) noexcept nogil:
    """Note where the value behind the 0x01 at `at` stands. False when the name is only the end of a longer one."""
    cdef const uint8_t *stop
    if at - pair != name_size:
        return False
    stop = <const uint8_t *>memchr(at + 1, 2, end - at - 1)
    value.at = <int32_t>(at + 1 - start)
    value.size = <int32_t>((stop if stop != NULL else end) - (at + 1))
    return True


cdef inline bint has_too_many(const uint8_t *at, int32_t size, int32_t keys_max) noexcept nogil:
    """Whether a KEYS value names more keys than one message may have."""
    cdef int32_t index, count = 1
    if size < keys_max:
        return False
    for index in range(size):
        count += at[index] == 32
    return count > keys_max


cdef inline bint take_wait_out(uint8_t *start, uint8_t *pair, uint8_t *at, int32_t *size) noexcept nogil:
    """Remove `WAIT 0x01 true 0x02` that stands behind another pair, where Java's clients put it. False: it is not so."""
    cdef uint8_t *end = start + size[0]
    if pair == start or at - pair != 4 or end - at < 6 or memcmp(at + 1, b"true\x02", 5) != 0:
        return False
    memmove(pair, at + 6, end - at - 6)
    size[0] -= <int32_t>(at + 6 - pair)
    return True


cdef inline bint find_marks(
    uint8_t *start, int32_t *size, int32_t keys_max, bint is_single, Marks *marks
) noexcept nogil:
    """Find the marks. False: something here is for the Python path.

    is_single: not of a batch. Such a message's WAIT is for the broker only and is taken out; `size` is less then.
    """
    cdef uint8_t *at = start
    cdef uint8_t *pair = start
    cdef uint8_t last
    cdef bint has_wait_out = not is_single
    marks.tags.at = marks.unique_key.at = marks.keys.at = -1
    while at < start + size[0]:
        if at[0] == 2:
            pair = at + 1
        elif at[0] == 1 and at > pair:
            last = at[-1]
            if asks_for_delay(pair, at):
                return False
            if last == 84:  # T
                if ends_with(pair, at, b"WAIT", 4) and not has_wait_out:
                    if not take_wait_out(start, pair, at, size):
                        return False
                    has_wait_out = True
                    at = pair
                    continue
            elif last == 83:  # S
                if ends_with(pair, at, b"TAGS", 4):
                    if not note_value(start, pair, at, start + size[0], 4, &marks.tags):
                        return False
                elif ends_with(pair, at, b"KEYS", 4):
                    if not note_value(start, pair, at, start + size[0], 4, &marks.keys):
                        return False
                    if has_too_many(at + 1, marks.keys.size, keys_max):
                        return False
            elif last == 89:  # Y
                if ends_with(pair, at, b"UNIQ_KEY", 8):
                    if not note_value(start, pair, at, start + size[0], 8, &marks.unique_key):
                        return False
                    if not marks.unique_key.size:
                        return False
            elif last == 71 and ends_with(pair, at, b"TRAN_MSG", 8):  # G
                return False
        at += 1
    return True
