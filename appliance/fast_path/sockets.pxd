"""Reading and writing sockets that never wait."""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint8_t

cdef extern from "poller.h" nogil:
    cdef enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL
    cdef struct msghdr:
        iovec *msg_iov
        size_t msg_iovlen
    Py_ssize_t recv(int descriptor, void *at, size_t size, int flags)
    Py_ssize_t send(int descriptor, const void *at, size_t size, int flags)
    Py_ssize_t sendmsg(int descriptor, const msghdr *message, int flags)

cdef extern from "sys/uio.h" nogil:
    cdef struct iovec:
        void *iov_base
        size_t iov_len

cdef extern from "string.h" nogil:
    void *memset(void *at, int value, size_t size)


cdef inline Py_ssize_t read_some(int descriptor, uint8_t *at, size_t size) noexcept nogil:
    """How many bytes there were; 0: the end, or an error. -1: none now."""
    cdef Py_ssize_t got = recv(descriptor, at, size, MSG_DONTWAIT)
    if got >= 0:
        return got
    return -1 if errno == EAGAIN or errno == EINTR else 0


cdef inline size_t write_some(int descriptor, const uint8_t *at, size_t size) noexcept nogil:
    """How many bytes the socket took; 0 also after an error, which shows again to who tries the rest."""
    cdef Py_ssize_t sent = send(descriptor, at, size, MSG_DONTWAIT | MSG_NOSIGNAL)
    return sent if sent > 0 else 0


cdef inline size_t write_two(
    int descriptor, const uint8_t *first, size_t first_size, const uint8_t *second, size_t second_size
) noexcept nogil:
    """The same for two pieces of memory, one behind the other."""
    cdef iovec parts[2]
    cdef msghdr message
    cdef Py_ssize_t sent
    parts[0].iov_base, parts[0].iov_len = <void *> first, first_size
    parts[1].iov_base, parts[1].iov_len = <void *> second, second_size
    memset(&message, 0, sizeof(msghdr))
    message.msg_iov, message.msg_iovlen = parts, 2
    sent = sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
    return sent if sent > 0 else 0
