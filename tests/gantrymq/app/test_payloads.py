"""Bodies as payloads of every kind of type, and the place where one is wrong."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec
import orjson
import pydantic
import pytest

from gantrymq.app.payloads import decoder_of, encode
from gantrymq.errors import ConfigError, PayloadError


class Color(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    at: datetime
    tags: set[str] = set()


@pydantic.dataclasses.dataclass
class Checked:
    count: pydantic.PositiveInt


class Struct(msgspec.Struct):
    a: int


class Typed(TypedDict):
    a: int
    b: NotRequired[str]


@dataclass
class Line:
    price: Decimal
    color: Color = Color.RED


@dataclass
class Order:
    id: UUID
    lines: list[Line]
    note: str | None = None
    model: Model | None = None
    struct: Struct | None = None
    pairs: dict[str, tuple[int, float]] = field(default_factory=dict)
    parts: list[Order] = field(default_factory=list)


ORDER = Order(
    UUID(int=7), [Line(Decimal("9.50"))], "n", Model(at=datetime(2026, 1, 1, tzinfo=UTC)), Struct(3), {"x": (1, 2.5)},
    [Order(UUID(int=8), [])],
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (bytes, b"\xff"),
        (str, "grüße"),
        (int, 3),
        (float, 2.5),
        (bool, True),
        (dict, {"a": [1]}),
        (Any, {"a": None}),
        (list[int], [1, 2]),
        (Sequence[str], ["a"]),
        (set[int], {1}),
        (tuple[int, ...], (1, 2)),
        (dict[str, int], {"a": 1}),
        (int | None, None),
        (Literal["a", 1], "a"),
        (Annotated[int, "positive"], 5),
        (datetime, datetime(2026, 1, 1, tzinfo=UTC)),
        (date, date(2026, 1, 1)),
        (Color, Color.RED),
        (Typed, {"a": 1}),
        (Order, ORDER),
        (Model, ORDER.model),
        (Checked, Checked(1)),
        (Struct, Struct(1)),
        (list[Struct | None], [Struct(1), None]),
    ],
)
def test_a_payload_comes_back_as_it_was(kind: Any, payload: Any) -> None:
    body = orjson.dumps(payload) if kind == Literal["a", 1] else encode(payload)
    assert decoder_of(kind)(body) == payload


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        (Order, b"{", "not JSON"),
        (Order, b"[]", "an object is wanted, not list"),
        (Order, b'{"lines": []}', "id: it is missing"),
        (Order, b'{"id": 7, "lines": []}', "id: UUID is wanted, not int"),
        (Order, b'{"id": "%s", "lines": [{"price": "x"}]}' % str(UUID(int=1)).encode(), "lines[0].price: Decimal is"),
        (Line, b'{"price": 1, "prize": 2}', "prize: there is no such field"),
        (Line, b'{"price": 1, "color": "blue"}', "color: 'blue' is not a valid Color"),
        (int, b"true", "int is wanted, not bool"),
        (int | str, b"1.5", "is wanted, not float"),
        (Literal["a"], b'"b"', "one of 'a' is wanted"),
        (tuple[int, int], b"[1]", "a list of 2 is wanted"),
        (Model, b'{"at": "x"}', "no Model"),
        (Checked, b'{"count": 0}', "no Checked"),
        (Struct, b'{"a": "x"}', "Expected `int`, got `str`"),
        (dict[str, Struct], b'{"k": {"a": "x"}}', "k: Expected `int`"),
        (str, b"\xff", "not UTF-8"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(kind: Any, body: bytes, told: str) -> None:
    with pytest.raises(PayloadError) as caught:
        decoder_of(kind)(body)
    assert told in str(caught.value)


@pytest.mark.parametrize("kind", [complex, object(), dict[int, str], list[complex], type])
def test_a_type_that_no_payload_can_have_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(ConfigError, match="no payload can be made"):
        decoder_of(kind)


def test_what_cannot_be_written_is_told() -> None:
    with pytest.raises(PayloadError, match="complex"):
        encode({"a": 1j})
