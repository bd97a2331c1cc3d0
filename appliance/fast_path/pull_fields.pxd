"""What a pull (11) asks for."""

from libc.stdint cimport int32_t, int64_t

from headers cimport Header
from texts cimport Text, is_text, to_padded_int32, to_padded_number

cdef enum:
    PULL_MESSAGE = 11
    REQUIRED_PULL_FIELDS = 0x3F

ctypedef struct PullFields:
    Text group
    Text topic
    Text subscription
    Text expression_type
    Text commit_offset
    Text sub_version
    int32_t queue_id
    int32_t count_max
    int32_t sys_flag
    int64_t queue_offset


cdef inline bint take_text(Text *value, Text *place) noexcept nogil:
    if place.at != NULL or value.has_escapes:  # doubled, or one for the Python path
        return False
    place[0] = value[0]
    return True


cdef inline bint take_pull_field(Text *name, Text *value, PullFields *fields, int *seen) noexcept nogil:
    """Note one field; False when it is doubled or not what Java's clients write there."""
    cdef int bit = 0
    if is_text(name, b"consumerGroup", 13):
        seen[0] |= 1
        return take_text(value, &fields.group)
    if is_text(name, b"topic", 5):
        seen[0] |= 2
        return take_text(value, &fields.topic)
    if is_text(name, b"subscription", 12):
        return take_text(value, &fields.subscription)
    if is_text(name, b"expressionType", 14):
        return take_text(value, &fields.expression_type)
    if is_text(name, b"commitOffset", 12):
        return take_text(value, &fields.commit_offset)
    if is_text(name, b"subVersion", 10):
        return take_text(value, &fields.sub_version)
    if is_text(name, b"queueId", 7):
        bit = 4
        if seen[0] & bit or not to_padded_int32(value, &fields.queue_id):
            return False
    elif is_text(name, b"maxMsgNums", 10):
        bit = 8
        if seen[0] & bit or not to_padded_int32(value, &fields.count_max):
            return False
    elif is_text(name, b"sysFlag", 7):
        bit = 16
        if seen[0] & bit or not to_padded_int32(value, &fields.sys_flag):
            return False
    elif is_text(name, b"queueOffset", 11):
        bit = 32
        if seen[0] & bit or not to_padded_number(value, &fields.queue_offset):
            return False
    seen[0] |= bit
    return True


cdef inline bint read_pull(Header *header, PullFields *fields) noexcept nogil:
    """Take the fields out of a header. False: one is missing, doubled or unusual."""
    cdef int index, seen = 0
    fields.group.at = fields.topic.at = fields.subscription.at = NULL
    fields.expression_type.at = fields.commit_offset.at = fields.sub_version.at = NULL
    for index in range(header.count):
        if not take_pull_field(&header.fields[index].name, &header.fields[index].value, fields, &seen):
            return False
    return seen == REQUIRED_PULL_FIELDS
