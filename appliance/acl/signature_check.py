"""Checking a signature: the hot part of access control, some 3 us for a send of 1 KiB.

Sorting a request's field names costs as much as the hash; but clients send few different sets of names, so each set's
order is kept. Comparison takes the same time whatever the difference, and an unknown account costs what a known one
does.
"""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from operator import itemgetter

from gantrymq.remoting.signature import SECURITY_TOKEN, SIGNATURE, SigningKey, signed_content

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"  # RocketMQ's server leaves it out, its clients sign it
# What some clients send and don't sign: Go's the token, tools of RocketMQ 5 the mark of a query by unique key.
_UNSIGNED_BY_SOME = (UNIQUE_KEY_QUERY, SECURITY_TOKEN)
_ORDERS_MAX = 1024

_Pick = Callable[[Mapping[str, str]], tuple[str, ...]]


class SignatureCheck:
    """Whether a request was signed with a key."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, ...], _Pick] = {}

    def is_genuine(self, key: SigningKey, fields: Mapping[str, str], body: bytes) -> bool:
        """Compare the Signature field with what the key makes of the others and the body."""
        return self.signed_part(key, fields, body) is not None

    def signed_part(self, key: SigningKey, fields: Mapping[str, str], body: bytes) -> bytes | None:
        """What was signed of the fields, their values in the order of their names; None when the signature is wrong."""
        names = tuple(fields)
        pick = self._orders.get(names) or self._order(names)
        try:
            given = fields.get(SIGNATURE, "").encode()
            content = "".join(pick(fields)).encode()
        except UnicodeEncodeError:  # lone surrogates: JSON can write them, UTF-8 can't
            return None
        if hmac.compare_digest(b2a_base64(key.digest(content, body), newline=False), given):
            return content
        for name in _UNSIGNED_BY_SOME:
            if name in fields:
                content = signed_content(fields, leave_out=(name,))
                if hmac.compare_digest(b2a_base64(key.digest(content, body), newline=False), given):
                    return content
        return None

    def _order(self, names: tuple[str, ...]) -> _Pick:
        signed = sorted(name for name in names if name != SIGNATURE)
        pick: _Pick
        if len(signed) > 1:
            pick = itemgetter(*signed)
        else:  # itemgetter of one name gives no tuple
            pick = lambda fields: tuple(fields[name] for name in signed)  # noqa: E731
        if len(self._orders) >= _ORDERS_MAX:
            self._orders.clear()
        self._orders[names] = pick
        return pick
