"""What a send asks for: the fields of 310 and 320 (one letter each) or of 10 (the same under long names)."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from headers cimport Header
from texts cimport Text, is_text, to_int32, to_number

cdef enum:
    SEND_MESSAGE = 10
    SEND_MESSAGE_V2 = 310
    SEND_BATCH_MESSAGE = 320
    TOPIC_BYTES_MAX = 127

ctypedef struct SendFields:
    Text topic
    Text properties
    int32_t queue_id
    int32_t sys_flag
    int32_t flag
    int32_t reconsume_times
    int64_t born_timestamp
    bint is_batch


cdef inline uint8_t letter_of(Text *name) noexcept nogil:
    """The one letter of a long name, 0 for a name that means nothing to a send."""
    cdef int32_t size = name.size
    if size == 5:
        return 98 if is_text(name, b"topic", 5) else 109 if is_text(name, b"batch", 5) else 0
    if size == 4:
        return 104 if is_text(name, b"flag", 4) else 0
    if size == 7:
        return 101 if is_text(name, b"queueId", 7) else 102 if is_text(name, b"sysFlag", 7) else 0
    if size == 10:
        return 105 if is_text(name, b"properties", 10) else 0
    if size == 13:
        return 103 if is_text(name, b"bornTimestamp", 13) else 0
    if size == 14:
        return 106 if is_text(name, b"reconsumeTimes", 14) else 0
    if size == 17:
        return 108 if is_text(name, b"maxReconsumeTimes", 17) else 0
    if size == 21:
        return 100 if is_text(name, b"defaultTopicQueueNums", 21) else 0
    return 0


cdef inline bint take_field(uint8_t letter, Text *value, SendFields *fields) noexcept nogil:
    """Note the value of one field; False when it is not what Java's clients write there."""
    cdef int32_t ignored = 0
    if letter == 98:  # b: topic
        fields.topic = value[0]
        return not value.has_escapes and 0 < value.size <= TOPIC_BYTES_MAX
    if letter == 101:  # e
        return to_int32(value, &fields.queue_id)
    if letter == 102:  # f
        return to_int32(value, &fields.sys_flag)
    if letter == 103:  # g
        return not value.has_escapes and to_number(value.at, value.size, &fields.born_timestamp)
    if letter == 104:  # h
        return to_int32(value, &fields.flag)
    if letter == 105:  # i: properties
        fields.properties = value[0]
        return True
    if letter == 106:  # j
        return to_int32(value, &fields.reconsume_times)
    if letter == 109:  # m: batch
        fields.is_batch = is_text(value, b"true", 4)
        return not value.has_escapes
    if letter == 100 or letter == 108:  # d, l: numbers that only unknown and retry topics need
        return to_int32(value, &ignored)
    return True


cdef inline bint read_send(Header *header, SendFields *fields) noexcept nogil:
    """Take the fields out of a header. False: one is missing, doubled or unusual."""
    cdef int index
    cdef int32_t seen = 0, bit
    cdef uint8_t letter
    cdef Text *name
    cdef bint is_long = header.code == SEND_MESSAGE
    fields.reconsume_times = 0
    fields.is_batch = False
    fields.properties.at = NULL
    fields.properties.size = 0
    fields.properties.has_escapes = False
    for index in range(header.count):
        name = &header.fields[index].name
        letter = 0
        if name.size == 1:
            letter = name.at[0]
            if is_long:
                if letter == 98 or letter == 101:  # then Python reads all of it as 310's
                    return False
                continue
        elif is_long:
            letter = letter_of(name)
        if letter < 98 or letter > 109:
            continue
        bit = 1 << (letter - 98)
        if seen & bit:
            return False
        seen |= bit
        if not take_field(letter, &header.fields[index].value, fields):
            return False
    return seen & 0x79 == 0x79  # b, e, f, g, h
