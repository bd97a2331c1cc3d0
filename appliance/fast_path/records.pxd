"""The record of a message, written straight into the mapped log. The format: gantrymq/message/record.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from bytes_in_order cimport put16, put32, put64, put_bytes
from crc32 cimport gantry_crc32
from properties cimport Marks

cdef extern from *:
    """
    #define gantry_compiler_barrier() __asm__ __volatile__("" ::: "memory")
    """
    void gantry_compiler_barrier() nogil

cdef enum:
    HEAD_BYTES = 88  # up to and including the body's size; both hosts are IPv4
    RECORD_FIXED_BYTES = 90  # with the two bytes of the properties' size
    UNIT_BYTES = 20
    MESSAGE_MAGIC = 0xDAA320A7
    HOST_BYTES = 8

ctypedef struct Message:
    const uint8_t *body
    int32_t body_size
    int32_t flag
    uint8_t *properties
    int32_t properties_size
    int32_t size  # of the record
    int64_t position  # in the log
    int64_t code  # of its tag
    int32_t entries  # of the key index
    Marks marks

ctypedef struct Common:
    # What all messages of one request have in common.
    int32_t queue_id
    int32_t sys_flag
    int64_t born_timestamp
    int64_t store_timestamp
    int32_t reconsume_times
    const uint8_t *born_host
    const uint8_t *store_host
    const uint8_t *topic  # as in the record: size byte, name
    int32_t topic_size


cdef inline uint8_t *put_head(uint8_t *target, Message *message, Common *common, int64_t queue_offset) noexcept nogil:
    """Write what stands before the body; return what follows."""
    cdef uint8_t *at = put32(put32(target, <uint32_t>message.size), <uint32_t>MESSAGE_MAGIC)
    at = put32(at, gantry_crc32(message.body, message.body_size) & 0x7FFFFFFF)
    at = put32(at, <uint32_t>common.queue_id)
    at = put32(at, <uint32_t>message.flag)
    at = put64(at, <int64_t>queue_offset)
    at = put64(at, message.position)
    at = put32(at, <uint32_t>common.sys_flag)
    at = put64(at, common.born_timestamp)
    at = put_bytes(at, common.born_host, HOST_BYTES)
    at = put64(at, common.store_timestamp)
    at = put_bytes(at, common.store_host, HOST_BYTES)
    at = put32(at, <uint32_t>common.reconsume_times)
    at = put64(at, 0)  # prepared transaction offset
    return put32(at, <uint32_t>message.body_size)


cdef inline uint8_t *put_end(uint8_t *at, Message *message, Common *common) noexcept nogil:
    """Write what stands behind the body; return what follows."""
    at = put_bytes(at, common.topic, common.topic_size)
    at = put16(at, <uint32_t>message.properties_size)
    return put_bytes(at, message.properties, message.properties_size)


cdef inline void put_unit(uint8_t *target, Message *message) noexcept nogil:
    """Write one unit of the consume queue."""
    put64(put32(put64(target, message.position), <uint32_t>message.size), message.code)
