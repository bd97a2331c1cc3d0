"""What is typed to find messages, as it is understood."""

from __future__ import annotations

import functools

import pytest

from dashboard.cluster.message_query import CONDITIONS_MAX, QUERY_CHARS_MAX, MessageQuery, Place, understand
from tests.gantrymq.client.messages import stored

message = functools.partial(stored, 0)


@pytest.mark.parametrize(
    ("text", "understood"),
    [
        ("", {}),
        ("order-17", {"single": "order-17", "words": ("order-17",)}),
        ('"order-17"', {"words": ("order-17",)}),
        ("q3 @ 1204", {"place": Place((), 3, 1204)}),
        ("q3@1204", {"place": Place((), 3, 1204)}),
        ("orders q3 @ 1204", {"place": Place(("orders",), 3, 1204)}),
        ("orders broker-a q3 @ 1204", {"place": Place(("orders", "broker-a"), 3, 1204)}),
        ("tag:paid", {"tags": ("paid",)}),
        ("key:a id:b", {"keys": ("a", "b")}),
        ("region=eu", {"properties": (("region", "eu"),)}),
        ('note="two words" x', {"properties": (("note", "two words"),), "words": ("x",)}),
        ("hello world", {"words": ("hello", "world")}),
        ('tag:paid "two words"', {"tags": ("paid",), "words": ("two words",)}),
        ("http://x", {"single": "http://x", "words": ("http://x",)}),
        ('{"a":1}', {"single": '{"a":1}', "words": ('{"a":1}',)}),
        ("tag:", {"single": "tag:", "words": ("tag:",)}),
        ('"', {"single": '"', "words": ('"',)}),
    ],
)
def test_texts_are_understood(text: str, understood: dict[str, object]) -> None:
    assert understand(text) == MessageQuery(text, **understood)  # type: ignore[arg-type]


def test_what_is_too_much_is_said() -> None:
    assert "500" in understand("x" * (QUERY_CHARS_MAX + 1)).problem
    assert str(CONDITIONS_MAX) in understand("a " * (CONDITIONS_MAX + 1)).problem


def test_all_conditions_must_hold_and_words_have_no_case() -> None:
    wanted = understand('tag:paid key:k1 region=eu "grüße an" ZOË')
    right = message("Viele GRÜSSE an Zoë".encode(), TAGS="paid", KEYS="k0 k1", region="eu")
    assert wanted.matches(right)
    for name, other in {"TAGS": "Paid", "KEYS": "k1x", "region": "eu2"}.items():
        assert not wanted.matches(message(right.body, **right.properties | {name: other})), name
    assert not wanted.matches(message(b"an", **right.properties))
    assert understand("x").matches(message(b"\xff\x00x"))


def test_the_index_is_asked_for_what_stands_alone() -> None:
    asked = {text: understand(text).indexed for text in ("k", "key:k", "key:k x", "tag:k", '"k"', "a b")}
    assert asked == {"k": "k", "key:k": "k", "key:k x": "", "tag:k": "", '"k"': "", "a b": ""}
