"""Numbers as the wire and the files have them: big-endian, at any address."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #define gantry_swap16(value) __builtin_bswap16(value)
    #define gantry_swap32(value) __builtin_bswap32(value)
    #define gantry_swap64(value) __builtin_bswap64(value)
    #if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "the fast path is written for little-endian machines; the Python path serves all"
    #endif
    """
    uint16_t gantry_swap16(uint16_t value) nogil
    uint32_t gantry_swap32(uint32_t value) nogil
    uint64_t gantry_swap64(uint64_t value) nogil


cdef inline uint16_t get16(const uint8_t *at) noexcept nogil:
    cdef uint16_t raw
    memcpy(&raw, at, 2)
    return gantry_swap16(raw)


cdef inline uint32_t get32(const uint8_t *at) noexcept nogil:
    cdef uint32_t raw
    memcpy(&raw, at, 4)
    return gantry_swap32(raw)


cdef inline uint64_t get64(const uint8_t *at) noexcept nogil:
    cdef uint64_t raw
    memcpy(&raw, at, 8)
    return gantry_swap64(raw)


cdef inline uint8_t *put16(uint8_t *at, uint16_t value) noexcept nogil:
    """Write a number; return what follows it."""
    cdef uint16_t raw = gantry_swap16(value)
    memcpy(at, &raw, 2)
    return at + 2


cdef inline uint8_t *put32(uint8_t *at, uint32_t value) noexcept nogil:
    cdef uint32_t raw = gantry_swap32(value)
    memcpy(at, &raw, 4)
    return at + 4


cdef inline uint8_t *put64(uint8_t *at, uint64_t value) noexcept nogil:
    cdef uint64_t raw = gantry_swap64(value)
    memcpy(at, &raw, 8)
    return at + 8


cdef inline uint8_t *put_bytes(uint8_t *at, const uint8_t *what, size_t size) noexcept nogil:
    memcpy(at, what, size)
    return at + size


cdef inline uint8_t *put_decimal(uint8_t *at, int64_t value) noexcept nogil:
    """Write a number as text; at most 20 bytes."""
    cdef uint8_t digits[20]
    cdef int count = 0
    cdef uint64_t left = <uint64_t>value
    if value < 0:
        at[0] = 45  # -
        at += 1
        left = 0 - left
    while True:
        digits[count] = <uint8_t>(48 + left % 10)
        count += 1
        left //= 10
        if not left:
            break
    while count:
        count -= 1
        at[0] = digits[count]
        at += 1
    return at


cdef inline uint8_t *put_hex64(uint8_t *at, uint64_t value) noexcept nogil:
    """Write sixteen hexadecimal digits, capitals as in message ids."""
    cdef int shift = 60
    cdef uint8_t digit
    while shift >= 0:
        digit = <uint8_t>((value >> shift) & 15)
        at[0] = 48 + digit if digit < 10 else 55 + digit
        at += 1
        shift -= 4
    return at
