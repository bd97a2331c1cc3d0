"""Decodes request bodies, with a size limit far above what real clients send.

All clients share one loop, so decoding one body must not take a second. Sends and registrations have limits of their
own.
"""

from __future__ import annotations

from typing import Any, TypeVar

from gantrymq.errors import BodyError
from gantrymq.remoting import fastjson
from gantrymq.remoting.json_body import Body

BODY_BYTES_MAX = 2 * 1024 * 1024  # a heartbeat with a thousand topics takes a tenth
DIALECT_BYTES_MAX = 256 * 1024  # fastjson's dialect needs a decoder in Python, which is twenty times slower

_Body = TypeVar("_Body", bound=Body)


def read_body(kind: type[_Body], data: bytes) -> _Body:
    """The body as an object of class `kind`. Raises BodyError."""
    return kind.from_dict(read_document(data))


def read_document(data: bytes) -> Any:
    """The body as plain lists and dictionaries. Raises BodyError."""
    if len(data) > BODY_BYTES_MAX:
        raise BodyError(f"a body of {len(data)} bytes: at most {BODY_BYTES_MAX} are read")
    return fastjson.loads(data, dialect_bytes_max=DIALECT_BYTES_MAX)


def read_list(body: bytes, key: str) -> list[Any]:
    """Return the list that is the document's field `key`. Raises BodyError."""
    document = read_document(body)
    entries = document.get(key) if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BodyError(f"expected {key}")
    return entries
