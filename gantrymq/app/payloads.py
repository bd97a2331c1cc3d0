"""Bodies of messages to payloads, and back.

bytes, str            the body itself, str as UTF-8
pydantic, msgspec     as JSON, by their own rules, where the class is one of theirs
anything else         as JSON; what comes is checked against the annotation (shapes); without one it is taken as it is
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson

from gantrymq.app.shapes import ShapeError, is_msgspec_struct, pydantic_validator, reader_of
from gantrymq.errors import PayloadError

Decoder = Callable[[bytes], Any]


@functools.cache
def decoder_of(kind: Any) -> Decoder:
    """What makes a payload of this type out of a body. PayloadError when the body is none; ConfigError, here, for a
    type that no payload can have."""
    if kind is bytes:
        return bytes
    if kind is str:
        return _decode_text
    if isinstance(kind, type) and is_msgspec_struct(kind):
        decoder: Callable[[bytes], Any] = sys.modules["msgspec"].json.Decoder(kind).decode
        return functools.partial(_decode_with, decoder, kind)
    if isinstance(kind, type) and pydantic_validator(kind) is not None:
        return functools.partial(_decode_with, vars(kind)["__pydantic_validator__"].validate_json, kind)
    read = reader_of(kind)
    return functools.partial(_decode_with, lambda body: read(orjson.loads(body)), kind)


def _decode_text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as exc:
        raise PayloadError(f"the body is not UTF-8 text: {exc.reason}") from exc


def _decode_with(decode: Decoder, kind: Any, body: bytes) -> Any:
    try:
        return decode(body)
    except orjson.JSONDecodeError as exc:
        raise PayloadError(f"the body is not JSON: {exc}") from exc
    except (ShapeError, ValueError) as exc:  # pydantic's and msgspec's errors are ValueErrors
        raise PayloadError(f"the body is no {getattr(kind, '__name__', kind)}: {exc}") from exc


def encode(payload: Any) -> bytes:
    """The body of a payload. PayloadError when it can't be written."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode()
    try:
        return orjson.dumps(payload, default=_plain)
    except TypeError as exc:  # orjson.JSONEncodeError is one
        raise PayloadError(f"{type(payload).__name__} can't be written as JSON: {exc}") from exc


def _plain(value: Any) -> Any:
    """What orjson does not know: models, structs, decimals and sets, wherever they stand."""
    if pydantic_validator(type(value)) is not None and hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_msgspec_struct(type(value)):
        return orjson.Fragment(sys.modules["msgspec"].json.encode(value))
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"no type of JSON: {type(value).__name__}")
