# Part of compiled.pyx.


@cython.final
cdef class SignedRequests:
    """Whether the account that signed a request may send it. access: see appliance/acl/access.py; None: nobody is asked.

    peer: whose requests these are, from `begin` to `close`; None where they need no account.
    """

    cdef object peer, _access
    cdef uint8_t *_text  # what a signature is of, without the body
    # from `begin` on: the account that was named last
    cdef const uint8_t *_name_at
    cdef int32_t _name_size
    cdef object _account  # None: there is none of that name
    cdef GantryHmacKey _key
    cdef bint _is_white, _needs_stamp, _is_noted, _was_allowed
    cdef object _allowed_topic, _allowed_group  # what it may use, if one was looked up
    cdef int64_t _unstamped

    def __cinit__(self):
        self._text = <uint8_t *> malloc(SIGNED_BYTES_MAX)
        if not self._text:
            raise MemoryError

    def __dealloc__(self):
        free(self._text)

    def __init__(self, access):
        self._access = access

    cdef int begin(self, connection) except -1:
        self.peer = connection if self._access is not None and self._access.needs_account(connection) else None
        return 0

    cdef int close(self) except -1:
        if self._unstamped:
            self._access.unstamped += self._unstamped
            self._unstamped = 0
        self._name_at = NULL
        self.peer = self._account = self._allowed_topic = self._allowed_group = None
        return 0

    cdef bint is_permitted(self, Header *header, const uint8_t *body, const uint8_t *end, topic, group) except -1:
        """With a group: whether the account may pull for that. False: the Python path decides, and says why not."""
        cdef SignedFields signed
        cdef int64_t size
        if not find_signed(header, &signed) or signed.size_max > SIGNED_BYTES_MAX:
            return False
        size = put_signed(&signed, self._text)
        if size < 0 or (signed.stamp != NULL and signed.stamp.has_escapes):
            return False
        if group is None and memmem(self._text, size, b"INNER_MULTI_DISPATCH", 20) != NULL:
            return False
        self._find_account(signed.access_key)
        if not self._is_white and not (
            self._is_genuine(signed.signature, size, body, end)  # before all else: its time is the same for no account
            and self._account is not None
            and self._may_use(topic, group)
            and self._takes_stamp(&signed, size, header.code)
        ):
            return False
        if not self._is_noted:
            self.peer.access.account = self._account
            self._is_noted = True
        return True

    cdef int _find_account(self, Text *name) except -1:
        """Look the account up, unless it is the last request's. For an unknown one there is a key, too."""
        if self._name_at != NULL and self._name_size == name.size and memcmp(self._name_at, name.at, name.size) == 0:
            return 0
        self._name_at = NULL
        self._account, key, self._is_white, self._needs_stamp = self._access.account_named(self.peer, text_of(name))
        work_in(&self._key, key.blocks)
        self._is_noted = self._was_allowed = False
        self._name_at, self._name_size = name.at, name.size
        return 0

    cdef bint _is_genuine(self, Text *signature, int64_t size, const uint8_t *body, const uint8_t *end) noexcept:
        """Whether it is the key's signature of the text that was put together, and of the body."""
        cdef uint8_t resolved[SIGNATURE_BYTES_MAX]
        cdef uint8_t digest[DIGEST_BYTES]
        cdef uint8_t expected[SIGNATURE_BYTES]
        cdef const uint8_t *given = NULL
        cdef int32_t given_size = 0
        if signature != NULL:
            given, given_size = signature.at, signature.size
            if signature.has_escapes:
                given_size = resolve(signature, resolved) if given_size <= SIGNATURE_BYTES_MAX else -1
                given = resolved
        gantry_hmac_sha1(&self._key, self._text, size, body, end - body, digest)
        gantry_sha1_text(digest, expected)
        return given_size == SIGNATURE_BYTES and gantry_is_same_text(expected, given, SIGNATURE_BYTES)

    cdef bint _may_use(self, topic, group) except -1:
        """Whether the account may send to the topic; with a group: whether it may pull for that."""
        if self._was_allowed and self._allowed_topic == topic and self._allowed_group == group:
            return True
        self._was_allowed = self._access.may_use(self._account, topic, group)
        self._allowed_topic, self._allowed_group = topic, group
        return self._was_allowed

    cdef bint _takes_stamp(self, SignedFields *signed, int64_t size, int32_t code) except -1:
        """Whether the request is not one that was sent before. That uses its stamp up, so it is asked last."""
        if signed.stamp != NULL:
            return self._access.takes_stamp(self.peer, self._account, text_of(signed.stamp), code)
        if self._needs_stamp or has_hidden_stamp(self._text, size, signed.access_key.size):
            return False
        self._unstamped += 1
        return True
