"""The functions of sha1.h that others use."""

from libc.stdint cimport uint8_t

cdef enum:
    BLOCK_BYTES = 64
    DIGEST_BYTES = 20
    SIGNATURE_BYTES = 28  # a digest in Base64

cdef extern from "sha1.h" nogil:
    ctypedef struct GantryHmacKey:
        pass
    void gantry_hmac_sha1_key(GantryHmacKey *key, const uint8_t *inner, const uint8_t *outer)
    void gantry_hmac_sha1(
        const GantryHmacKey *key,
        const uint8_t *first,
        size_t first_size,
        const uint8_t *second,
        size_t second_size,
        uint8_t *digest,
    )
    void gantry_hmac_sha1_by_words(
        const GantryHmacKey *key,
        const uint8_t *first,
        size_t first_size,
        const uint8_t *second,
        size_t second_size,
        uint8_t *digest,
    )
    bint gantry_sha1_is_by_words()
    void gantry_sha1_text(const uint8_t *digest, uint8_t *text)
    int gantry_is_same_text(const uint8_t *one, const uint8_t *other, size_t count)
