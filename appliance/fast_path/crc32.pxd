"""The functions of crc32.h that others use."""

from libc.stdint cimport uint8_t, uint32_t


cdef extern from "crc32.h" nogil:
    uint32_t gantry_crc32(const uint8_t* data, size_t count)
    uint32_t gantry_crc32_update(uint32_t value, const uint8_t* data, size_t count)
    uint32_t gantry_crc32_update_by_tables(uint32_t value, const uint8_t* data, size_t count)
    bint gantry_crc32_is_by_tables()
