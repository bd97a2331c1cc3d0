"""Properties with types: how a value is written as the text that every client reads, and read back.

A property is a text on the wire, for Java's `getUserProperty` too. Each type is written as Java's own parser of it
reads it, and nothing says which type it was: who reads says what is wanted.

    type       written as                                         read in Java by
    str        itself
    bool       true, false                                        Boolean.parseBoolean
    int        -12                                                Long.parseLong, new BigInteger
    float      9.5, 1e+16, Infinity, -Infinity, NaN               Double.parseDouble
    Decimal    9.50, 1E+3                                         new BigDecimal
    datetime   2026-11-23T03:02:01.123456Z, always in UTC         Instant.parse
    date       2026-11-23                                         LocalDate.parse
    UUID       123e4567-e89b-12d3-a456-426614174000               UUID.fromString
    bytes      base64, with padding                               Base64.getDecoder().decode
"""

from __future__ import annotations

import base64
import functools
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from gantrymq.errors import MessageRejected, WrongType

if TYPE_CHECKING:  # importing these takes longer than this module, and few messages have such headers
    from decimal import Decimal
    from uuid import UUID

    HeaderValue = str | bool | int | float | Decimal | datetime | date | UUID | bytes
    H = TypeVar("H", str, bool, int, float, Decimal, datetime, date, UUID, bytes)
else:
    HeaderValue = Any
    H = TypeVar("H")


def header_text(name: str, value: HeaderValue) -> str:
    """The text of a property. WrongType for a type that is not in the table, MessageRejected for a value that can't be
    written."""
    writers = _writers()
    write = writers.get(type(value))
    if write is None:  # of a subclass, such as an IntEnum, or of a type of its own
        write = next((writers[kind] for kind in type(value).__mro__ if kind in writers), None)
    if write is None:
        kinds = ", ".join(kind.__name__ for kind in writers)
        raise WrongType(f"header {name!r}: one of {kinds} is wanted, not {type(value).__name__} ({value!r:.40})")
    try:
        return write(value)
    except ValueError as exc:
        raise MessageRejected(f"header {name!r}={value!r:.40}: {exc}") from None


def header_texts(values: Mapping[str, HeaderValue]) -> dict[str, str]:
    """The texts of several properties."""
    return {name: header_text(name, value) for name, value in values.items()}


def header_value(name: str, text: str, kind: type[H]) -> H:
    """The value of a property's text as this type. WrongType when the type is none of the table, ValueError when the
    text is none of the type."""
    readers = _readers()
    read: Callable[[str], Any] | None = readers.get(kind)
    if read is None:
        kinds = ", ".join(kind.__name__ for kind in readers)
        raise WrongType(f"header {name!r}: it can be read as one of {kinds}, not as {kind!r:.60}")
    try:
        value: H = read(text)
    except (ValueError, ArithmeticError) as exc:  # decimals raise the second
        raise ValueError(f"header {name!r}: {text!r:.60} is no {kind.__name__}") from exc
    return value


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float.__repr__(value)


def _decimal_text(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError("only finite decimals can be read by others")
    return str(value)


def _datetime_text(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("a datetime without a time zone may mean any hour; give it one")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _read_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _read_int(text: str) -> int:
    if "_" in text:
        raise ValueError
    return int(text)


def _read_float(text: str) -> float:
    if "_" in text:
        raise ValueError
    return float(text)


def _read_datetime(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment


@functools.cache
def _writers() -> dict[type, Callable[[Any], str]]:
    from decimal import Decimal
    from uuid import UUID

    return {
        str: str.__str__,
        bool: _bool_text,
        int: int.__repr__,
        float: _float_text,
        Decimal: _decimal_text,
        datetime: _datetime_text,
        date: date.isoformat,
        UUID: str,
        bytes: lambda value: base64.b64encode(value).decode(),
    }


@functools.cache
def _readers() -> dict[type, Callable[[str], Any]]:
    from decimal import Decimal
    from uuid import UUID

    return {
        str: str,
        bool: _read_bool,
        int: _read_int,
        float: _read_float,
        Decimal: Decimal,
        datetime: _read_datetime,
        date: date.fromisoformat,
        UUID: UUID,
        bytes: lambda text: base64.b64decode(text, validate=True),
    }
