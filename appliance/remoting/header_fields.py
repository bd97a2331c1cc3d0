"""Typed access to a request's ext fields: Java's number ranges; errors name the field.

A missing or malformed field is the client's mistake and answered with INVALID_PARAMETER, which clients don't retry.
RocketMQ 4.9 answers SYSTEM_ERROR, so its producers send the same bad request to other brokers.
"""

from __future__ import annotations

from collections.abc import Mapping

from appliance.errors import BrokerError
from gantrymq.remoting.codes import ResponseCode

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
QUOTED_CHARS_MAX = 80  # of what the peer wrote
DIGITS_MAX = 20  # of a 64-bit number and its sign

Fields = Mapping[str, str]


class FieldError(BrokerError):
    """An ext field is missing, or not what it must be."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.INVALID_PARAMETER, remark)


def text_field(fields: Fields, name: str) -> str:
    """A required field. Raises FieldError."""
    value = fields.get(name)
    if value is None:
        raise FieldError(f"header field {name} is missing")
    return value


def int_field(fields: Fields, name: str, default: int | None = None, *, low: int = INT_MIN, high: int = INT_MAX) -> int:
    """A Java int, or a narrower range; `default` when the field is absent. Raises FieldError."""
    value = fields.get(name)
    if value is None:
        if default is None:
            raise FieldError(f"header field {name} is missing")
        return default
    try:
        number = int(value) if len(value) <= DIGITS_MAX else None
    except ValueError:
        number = None
    if number is None:
        raise FieldError(f"header field {name}={quoted(value)} is not a whole number of at most 64 bits")
    if not low <= number <= high:
        raise FieldError(f"header field {name}={number} is outside {low} to {high}")
    return number


def long_field(fields: Fields, name: str, default: int | None = None, *, low: int = LONG_MIN) -> int:
    """A Java long. Raises FieldError."""
    return int_field(fields, name, default, low=low, high=LONG_MAX)


def quoted(value: str) -> str:
    """The peer's text, escaped and cut for a remark or a log line."""
    return repr(value if len(value) <= QUOTED_CHARS_MAX else f"{value[:QUOTED_CHARS_MAX]}…")
