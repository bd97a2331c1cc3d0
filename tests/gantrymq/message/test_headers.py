"""Properties with types: each as a text that Java's own parser reads, and back."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest

from gantrymq import Message
from gantrymq.errors import MessageRejected, WrongType
from gantrymq.message.headers import header_text, header_value
from tests.gantrymq.client.messages import stored


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (True, "true"),
        (False, "false"),
        (-12, "-12"),
        (1 << 80, "1208925819614629174706176"),
        (9.5, "9.5"),
        (1e16, "1e+16"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Decimal("9.50"), "9.50"),
        (Decimal("1E+3"), "1E+3"),
        (datetime(2026, 11, 23, 3, 2, 1, 120000, tzinfo=UTC), "2026-11-23T03:02:01.120000Z"),
        (date(2026, 11, 23), "2026-11-23"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"\x00\xff", "AP8="),
    ],
)
def test_a_value_comes_back_as_it_was(value: Any, text: str) -> None:
    assert header_text("h", value) == text
    found = header_value("h", text, type(value))
    assert (found, type(found)) == (value, type(value))
    message = Message("t", b"x", properties={"plain": "p"}, headers={"h": value})
    assert message.properties == {"plain": "p", "h": text}
    assert stored(0, h=text).header("h", type(value)) == value


def test_not_a_number_a_subclass_and_another_time_zone_are_written_as_java_reads_them() -> None:
    assert math.isnan(header_value("h", header_text("h", math.nan), float))
    assert header_text("h", math.nan) == "NaN"
    assert header_text("h", Level.HIGH) == "3"
    there = timezone(timedelta(hours=2))
    assert header_text("h", datetime(2026, 11, 23, 3, tzinfo=there)) == "2026-11-23T01:00:00Z"


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, WrongType),
        ([1], WrongType),
        (object(), WrongType),
        (datetime(2026, 11, 23), MessageRejected),
        (Decimal("NaN"), MessageRejected),
        ("", MessageRejected),
        ("a\x02b", MessageRejected),
    ],
)
def test_what_can_not_be_written_is_refused_when_the_message_is_made(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="h"):
        Message("t", b"x", headers={"h": value})


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (bool, "yes"), (int, "1_000"), (int, "1.5"), (float, "9,5"), (Decimal, "x"), (datetime, "2026-11-23T03:02:01"),
        (date, "yesterday"), (UUID, "1"), (bytes, "not base64!"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_such_value_is_told(kind: Any, text: str) -> None:
    with pytest.raises(ValueError, match=f"'h'.* is no {kind.__name__}"):
        stored(0, h=text).header("h", kind)


def test_a_missing_header_is_its_default_or_a_key_error() -> None:
    assert stored(0).header("h", int, None) is None
    assert stored(0, h="7").header("h", int, None) == 7
    with pytest.raises(KeyError):
        stored(0).header("h", int)
    with pytest.raises(WrongType, match="read as one of"):
        stored(0, h="7").header("h", complex)  # type: ignore[type-var]
