# The part of libnghttp2's interface that is used here. The library is opened when a proxy starts, by the name of its
# ABI (libnghttp2.so.14): neither its headers nor the library need be there to compile or to load this module.
# tests/appliance/proxy/test_nghttp2_layout.py compares what is declared here with the header, where that is there.

from libc.stdint cimport int32_t, uint8_t, uint32_t

ctypedef void nghttp2_session
ctypedef void nghttp2_option
ctypedef void nghttp2_session_callbacks

cdef struct nghttp2_nv:
    uint8_t *name
    uint8_t *value
    size_t namelen
    size_t valuelen
    uint8_t flags

cdef struct nghttp2_frame_hd:
    size_t length
    int32_t stream_id
    uint8_t type
    uint8_t flags
    uint8_t reserved

cdef union nghttp2_data_source:
    int fd
    void *ptr

ctypedef ssize_t (*read_callback)(
    nghttp2_session *, int32_t, uint8_t *, size_t, uint32_t *, nghttp2_data_source *, void *
) noexcept

cdef struct nghttp2_data_provider:
    nghttp2_data_source source
    read_callback read_callback

cdef struct nghttp2_settings_entry:
    int32_t settings_id
    uint32_t value

ctypedef int (*on_header)(
    nghttp2_session *, const nghttp2_frame_hd *, const uint8_t *, size_t, const uint8_t *, size_t, uint8_t, void *
) noexcept
ctypedef int (*on_frame)(nghttp2_session *, const nghttp2_frame_hd *, void *) noexcept
ctypedef int (*on_data)(nghttp2_session *, uint8_t, int32_t, const uint8_t *, size_t, void *) noexcept
ctypedef int (*on_close)(nghttp2_session *, int32_t, uint32_t, void *) noexcept

cdef struct Nghttp2:
    int (*option_new)(nghttp2_option **) noexcept
    void (*option_del)(nghttp2_option *) noexcept
    void (*option_no_auto_window_update)(nghttp2_option *, int) noexcept
    void (*option_no_closed_streams)(nghttp2_option *, int) noexcept
    int (*callbacks_new)(nghttp2_session_callbacks **) noexcept
    void (*callbacks_del)(nghttp2_session_callbacks *) noexcept
    void (*callbacks_on_begin_frame)(nghttp2_session_callbacks *, on_frame) noexcept
    void (*callbacks_on_header)(nghttp2_session_callbacks *, on_header) noexcept
    void (*callbacks_on_data)(nghttp2_session_callbacks *, on_data) noexcept
    void (*callbacks_on_frame)(nghttp2_session_callbacks *, on_frame) noexcept
    void (*callbacks_on_close)(nghttp2_session_callbacks *, on_close) noexcept
    int (*server_new)(
        nghttp2_session **, const nghttp2_session_callbacks *, void *, const nghttp2_option *
    ) noexcept
    void (*session_del)(nghttp2_session *) noexcept
    ssize_t (*mem_recv)(nghttp2_session *, const uint8_t *, size_t) noexcept
    ssize_t (*mem_send)(nghttp2_session *, const uint8_t **) noexcept
    int (*submit_settings)(nghttp2_session *, uint8_t, const nghttp2_settings_entry *, size_t) noexcept
    int (*set_local_window_size)(nghttp2_session *, uint8_t, int32_t, int32_t) noexcept
    int (*submit_response)(
        nghttp2_session *, int32_t, const nghttp2_nv *, size_t, const nghttp2_data_provider *
    ) noexcept
    int (*submit_trailer)(nghttp2_session *, int32_t, const nghttp2_nv *, size_t) noexcept
    int (*submit_rst_stream)(nghttp2_session *, uint8_t, int32_t, uint32_t) noexcept
    int (*resume_data)(nghttp2_session *, int32_t) noexcept
    int (*consume)(nghttp2_session *, int32_t, size_t) noexcept
    int (*consume_connection)(nghttp2_session *, size_t) noexcept
    int (*terminate)(nghttp2_session *, uint32_t) noexcept
    const char *(*strerror)(int) noexcept
