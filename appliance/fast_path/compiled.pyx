# cython: language_level=3
"""The compiled module, `gantry_compiled`: made by build.py, found by loader.py, used through the latter only.

The files beside this one are cimported by their plain names: they are compiled from one flat folder.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t

from crc32 cimport gantry_crc32_update, gantry_crc32_update_by_tables


def crc32(data, uint32_t value=0):
    """zlib.crc32: `value` is the CRC of what comes before."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return gantry_crc32_update(value, <const uint8_t*> view.buf, <size_t> view.len)
    finally:
        PyBuffer_Release(&view)


def crc32_by_tables(data, uint32_t value=0):
    """The same as on a processor without instructions for it."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return gantry_crc32_update_by_tables(value, <const uint8_t*> view.buf, <size_t> view.len)
    finally:
        PyBuffer_Release(&view)
