"""The body of a batch, cut into its messages (store/batch.py)."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from bytes_in_order cimport get16, get32
from properties cimport find_marks
from records cimport Message
from texts cimport is_utf8

cdef enum:
    BATCH_HEAD_BYTES = 20  # size, magic, CRC, flag, size of the body
    PROPERTIES_BYTES_MAX = 32767


cdef inline uint8_t *put_joined(
    uint8_t *target, const uint8_t *own, int32_t own_size, const uint8_t *common, int32_t common_size
) noexcept nogil:
    """Write a message's own properties and the common ones behind them; return what follows."""
    memcpy(target, own, own_size)
    target += own_size
    if own_size and own[own_size - 1] != 2:
        target[0] = 2
        target += 1
    memcpy(target, common, common_size)
    return target + common_size


cdef inline int cut_batch(
    const uint8_t *at,
    const uint8_t *end,
    const uint8_t *common,
    int32_t common_size,
    int32_t keys_max,
    uint8_t *scratch,
    const uint8_t *scratch_end,
    Message *messages,
    int count_max,
) noexcept nogil:
    """Find the messages and make their properties in `scratch`. Return how many there are; 0: Python shall look."""
    cdef int count = 0
    cdef int64_t body_size, own_size
    cdef Message *message
    cdef uint8_t *stop
    while at < end:
        if count >= count_max or end - at < BATCH_HEAD_BYTES + 2:
            return 0
        message = &messages[count]
        message.flag = <int32_t>get32(at + 12)
        body_size = <int32_t>get32(at + 16)
        at += BATCH_HEAD_BYTES
        if body_size < 0 or body_size + 2 > end - at:
            return 0
        message.body, message.body_size = at, <int32_t>body_size
        at += body_size
        own_size = get16(at)
        at += 2
        if own_size > PROPERTIES_BYTES_MAX or own_size > end - at or not is_utf8(at, at + own_size):
            return 0
        if scratch_end - scratch < own_size + 1 + common_size:
            return 0
        stop = put_joined(scratch, at, <int32_t>own_size, common, common_size)
        message.properties, message.properties_size = scratch, <int32_t>(stop - scratch)
        if message.properties_size > PROPERTIES_BYTES_MAX:
            return 0
        if not find_marks(scratch, &message.properties_size, keys_max, False, &message.marks):
            return 0
        scratch = stop
        at += own_size
        count += 1
    return count
