"""What a Message refuses, when it is made and when it was changed afterwards."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest

from gantrymq.client.connection.send_codec import pack, pack_batch
from gantrymq.errors import MessageRejected, WrongType
from gantrymq.message.model import Message
from gantrymq.message.properties import decode_properties, sendable_properties

WRONG_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"body": "text"}, r"body: bytes are wanted, not str; text.encode\(\)"),
    ({"body": None}, "body: bytes are wanted, not NoneType"),
    ({"topic": b"T"}, "topic: a text is wanted, not bytes"),
    ({"tags": ["x"]}, "tags: one text is wanted"),
    ({"tags": 5}, "tags: one text is wanted"),
    ({"keys": 7}, "keys: a text or several"),
    ({"keys": b"k"}, "keys: a text or several"),
    ({"keys": ["k", 7]}, "keys: a text is wanted"),
    ({"properties": {"a": 5}}, r"property 'a': a text is wanted, not int \(5\)"),
    ({"properties": {5: "a"}}, "the name of a property"),
    ({"properties": ["a"]}, "properties: a mapping"),
    ({"flag": "1"}, "flag: a whole number"),
    ({"delay_level": 1.5}, "delay_level: a whole number"),
    ({"delay_seconds": "5"}, "delay_seconds: seconds as a number"),
    ({"deliver_at": "noon"}, "deliver_at: seconds as a number"),
]
REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"properties": {"a": "b\x02TAGS\x01admin"}}, "separator"),
    ({"properties": {"TAGS\x01admin\x02a": "b"}}, "separator"),
    ({"properties": {"a": "b\x01c"}}, "separator"),
    ({"tags": "a\x02TAGS\x01admin"}, "separator"),
    ({"keys": "a\x02TAGS\x01admin"}, "separator"),
    ({"keys": ["fine", "a\x02TAGS\x01admin"]}, "separator"),
    ({"tags": "a || b"}, "one tag"),
    ({"tags": "a && b"}, "one tag"),
    ({"tags": " a"}, "blanks"),
    ({"properties": {"a": ""}}, "empty"),
    ({"properties": {"": "a"}}, "empty"),
    ({"properties": {"a": "\ud800"}}, "Unicode"),
    ({"flag": 1 << 31}, "flag="),
    ({"delay_level": -1}, "delay_level=-1"),
    ({"delay_seconds": -0.1}, "0 or more"),
    ({"delay_seconds": float("nan")}, "0 or more"),
    ({"deliver_at": -5}, "0 or more"),
    ({"deliver_at": datetime(2026, 11, 21, 12)}, "time zone"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG_TYPES)
def test_a_field_of_another_type_is_refused_when_the_message_is_made(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongType, match=words):
        Message(**({"topic": "T", "body": b"x"} | fields))


@pytest.mark.parametrize(("fields", "words"), REJECTED)
def test_what_would_read_back_as_something_else_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(MessageRejected, match=words):
        Message(**({"topic": "T", "body": b"x"} | fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": "tag-a"},
        {"tags": "tag with blanks inside"},
        {"tags": "größe"},
        {"tags": ""},
        {"keys": ["k1", "k2"]},
        {"keys": ("k1",)},
        {"keys": "line\nbreak"},
        {"properties": {"multi": "line\nline\ttab", "emoji": "🐍"}},
        {"properties": MappingProxyType({"a": "b"})},
        {"body": bytearray(b"x")},
        {"body": memoryview(b"x")},
        {"flag": -1},
        {"deliver_at": datetime(2026, 11, 21, tzinfo=timezone(timedelta(hours=2)))},
    ],
)
def test_what_is_unusual_and_right_is_taken_and_kept(fields: dict[str, Any]) -> None:
    message = Message(**({"topic": "T", "body": b"x"} | fields))
    assert message.body == b"x"
    assert type(message.body) is bytes
    read = decode_properties(pack(message).properties)
    for name, value in fields.get("properties", {}).items():
        assert read[name] == value
    assert read.get("TAGS", "") == fields.get("tags", "")


def test_a_message_that_was_changed_is_looked_at_again() -> None:
    message = Message("T", b"x", properties={"a": "b"})
    message.properties["a"] = "b\x02TAGS\x01admin"
    for refuse in (lambda: pack(message), lambda: pack_batch([message])):
        with pytest.raises(MessageRejected, match="separator"):
            refuse()
    message = Message("T", b"x")
    message.tags = "a\x02TAGS\x01admin"
    with pytest.raises(MessageRejected, match="separator"):
        pack(message)
    message = Message("T", b"x")
    message.body = "text"  # type: ignore[assignment]
    for refuse in (lambda: pack(message), lambda: pack_batch([message])):
        with pytest.raises(WrongType, match="body"):
            refuse()


def test_what_is_no_message_is_named() -> None:
    with pytest.raises(WrongType, match="a Message is wanted, not 'text'"):
        pack("text")  # type: ignore[arg-type]


def test_received_properties_that_no_sender_should_have_made_can_be_sent_again() -> None:
    received = decode_properties("a\x01b\x01c\x02d\x01e")
    assert received == {"a": "b\x01c", "d": "e"}
    assert pack(Message("T", b"x", properties=sendable_properties(received)))
    assert sendable_properties(received) == {"a": "b c", "d": "e"}
