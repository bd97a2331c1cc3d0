"""A record that lies in the log, as a copy and a start read it (store/log/scan.py): what queues and index need of it."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memchr

from bytes_in_order cimport get16, get32, get64
from crc32 cimport gantry_crc32_update
from properties cimport Marks, ends_with, note_value
from records cimport HEAD_BYTES, MESSAGE_MAGIC

cdef enum:
    STORED_BYTES_MIN = 91  # as record.RECORD_BYTES_MIN
    UNUSUAL_BITS = 0x30 | 0x4  # of the system flag: hosts of IPv6; a message that has no place in a queue
    TOPIC_BYTES_MAX = 127
    STORED_PROPERTIES_MAX = 0x7FFF

ctypedef struct Stored:
    int32_t size
    int32_t queue_id
    int64_t queue_offset
    int64_t timestamp
    const uint8_t *topic
    int32_t topic_size
    const uint8_t *properties
    int32_t properties_size
    int64_t code  # of its tag
    Marks marks


cdef inline bint has_crc(const uint8_t *at, Stored *stored, int32_t body_bytes) noexcept nogil:
    """Whether the body has the record's CRC, and topic and properties no zero that a lost sector may have left."""
    cdef uint32_t found = gantry_crc32_update(0, at + HEAD_BYTES, body_bytes) & 0x7FFFFFFF
    return (
        found == get32(at + 8)
        and memchr(stored.topic, 0, stored.topic_size) == NULL
        and memchr(stored.properties, 0, stored.properties_size) == NULL
    )


cdef inline bint read_stored(
    const uint8_t *at, int64_t room, int64_t physical_offset, bint check_crc, Stored *stored
) noexcept nogil:
    """Read the record at `at`, of `room` bytes at most. False: it is not plain, not whole or not valid; Python looks."""
    cdef int64_t body_bytes, left
    if room < STORED_BYTES_MIN:
        return False
    stored.size = <int32_t>get32(at)
    if get32(at + 4) != <uint32_t>MESSAGE_MAGIC or stored.size < STORED_BYTES_MIN or stored.size > room:
        return False
    if <int64_t>get64(at + 28) != physical_offset or get32(at + 36) & UNUSUAL_BITS:
        return False
    body_bytes = <int32_t>get32(at + 84)
    left = stored.size - HEAD_BYTES - 1  # of the topic, the size of the properties, and these
    if body_bytes < 0 or body_bytes + 3 > left:
        return False
    left -= body_bytes
    stored.topic = at + HEAD_BYTES + body_bytes + 1
    stored.topic_size = stored.topic[-1]
    left -= stored.topic_size + 2
    if not 0 < stored.topic_size <= TOPIC_BYTES_MAX or not 0 <= left <= STORED_PROPERTIES_MAX:
        return False
    stored.properties = stored.topic + stored.topic_size + 2
    stored.properties_size = get16(stored.properties - 2)
    if stored.properties_size != left:
        return False
    stored.queue_id = <int32_t>get32(at + 12)
    stored.queue_offset = <int64_t>get64(at + 20)
    stored.timestamp = <int64_t>get64(at + 56)
    return not check_crc or has_crc(at, stored, <int32_t>body_bytes)


cdef inline bint find_stored_marks(const uint8_t *start, int32_t size, Marks *marks) noexcept nogil:
    """Find what is hashed. False: a name is the end of a longer one, or a unique key is empty; Python looks.

    Other than those of a send (properties.pxd) they are as they are: nothing is asked of them any more.
    """
    cdef const uint8_t *at = start
    cdef const uint8_t *pair = start
    cdef const uint8_t *end = start + size
    marks.tags.at = marks.unique_key.at = marks.keys.at = -1
    while at < end:
        if at[0] == 2:
            pair = at + 1
        elif at[0] == 1 and at > pair:
            if at[-1] == 83:  # S
                if ends_with(pair, at, b"TAGS", 4):
                    if not note_value(start, pair, at, end, 4, &marks.tags):
                        return False
                elif ends_with(pair, at, b"KEYS", 4):
                    if not note_value(start, pair, at, end, 4, &marks.keys):
                        return False
            elif at[-1] == 89 and ends_with(pair, at, b"UNIQ_KEY", 8):  # Y
                if not note_value(start, pair, at, end, 8, &marks.unique_key) or not marks.unique_key.size:
                    return False
        at += 1
    return True
