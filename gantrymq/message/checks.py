"""What an application may put into a Message. Called when one is made and when one is encoded, for it can be changed.

The separators of the property text are the reason for most of it: a value that holds one would read back as another
property, such as the tag by which consumers select.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gantrymq.errors import MessageRejected, WrongType
from gantrymq.message.properties import NAME_VALUE_SEPARATOR, PAIR_SEPARATOR

if TYPE_CHECKING:
    from gantrymq.message.model import Message

FLAG_MIN, FLAG_MAX = -(1 << 31), (1 << 31) - 1


def is_plain_tag(tag: str) -> bool:
    """Whether nothing is wrong with the tag."""
    return tag.isprintable() and "|" not in tag and "&" not in tag and tag == tag.strip()


def are_plain_keys(keys: object) -> bool:
    """Whether nothing is wrong with these keys; False does not prove the contrary."""
    return type(keys) in (list, tuple) and all(type(key) is str and key.isprintable() for key in keys)  # type: ignore[attr-defined]


def are_plain_properties(properties: object) -> bool:
    """Whether nothing is wrong with these properties; False does not prove the contrary."""
    if type(properties) is not dict:
        return False
    for name, value in properties.items():
        if type(name) is not str or type(value) is not str or not name or not value:
            return False
        if not (name.isprintable() and value.isprintable()):
            return False
    return True


def check_message(message: Message) -> None:
    """WrongType for a field of another type, MessageRejected for a value that no broker could keep as it is.

    A body of another bytes-like type, or properties of another mapping type, are replaced by plain ones.
    """
    _check_text("topic", message.topic)
    message.body = _as_bytes(message.body)
    if message.tags is not None:
        _check_tags(message.tags)
    _check_keys(message.keys)
    message.properties = _as_properties(message.properties)
    _check_number("flag", message.flag, FLAG_MIN, FLAG_MAX)
    _check_number("delay_level", message.delay_level, 0, FLAG_MAX)
    if message.delay_seconds is not None:
        _check_seconds("delay_seconds", message.delay_seconds)
    if isinstance(message.deliver_at, datetime):
        if message.deliver_at.tzinfo is None:
            raise MessageRejected("deliver_at: a datetime without a time zone may mean any hour; give it one")
    elif message.deliver_at is not None:
        _check_seconds("deliver_at", message.deliver_at)


def check_properties(properties: Mapping[str, str]) -> None:
    """WrongType or MessageRejected unless each name and value is a text that reads back as it is."""
    for name, value in properties.items():
        _check_text("the name of a property", name)
        if not isinstance(value, str):
            raise WrongType(f"property {name!r}: a text is wanted, not {_kind(value)}; str(value) makes one")
        _check_text(f"property {name!r}", value)
        if not name or not value:
            raise MessageRejected(f"property {name!r}={value!r}: neither name nor value may be empty, brokers drop it")


def _as_bytes(body: object) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    how = "; text.encode() makes them" if isinstance(body, str) else ""
    raise WrongType(f"body: bytes are wanted, not {_kind(body)}{how}")


def _check_tags(tags: object) -> None:
    if not isinstance(tags, str):
        raise WrongType(f"tags: one text is wanted, not {_kind(tags)}: a message has one tag")
    _check_text("tags", tags)
    if "||" in tags or "&&" in tags:
        raise MessageRejected(f"tags={tags!r}: a message has one tag; only subscriptions combine them, with ||")
    if tags != tags.strip():
        raise MessageRejected(f"tags={tags!r}: no subscription finds a tag with blanks around it")


def _check_keys(keys: object) -> None:
    if isinstance(keys, bytes | bytearray) or not isinstance(keys, Sequence):
        raise WrongType(f"keys: a text or several texts are wanted, not {_kind(keys)}")
    for key in (keys,) if isinstance(keys, str) else keys:
        _check_text("keys", key)


def _as_properties(properties: object) -> dict[str, str]:
    if not isinstance(properties, Mapping):
        raise WrongType(f"properties: a mapping of texts is wanted, not {_kind(properties)}")
    check_properties(properties)
    return properties if isinstance(properties, dict) else dict(properties)


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise WrongType(f"{name}: a text is wanted, not {_kind(text)}")
    if NAME_VALUE_SEPARATOR in text or PAIR_SEPARATOR in text:
        raise MessageRejected(f"{name}: {text!r} holds a separator of properties (\\x01 or \\x02)")
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise MessageRejected(f"{name}: {text!r} is not valid Unicode: {exc.reason}") from None


def _check_number(name: str, number: object, least: int, most: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool):
        raise WrongType(f"{name}: a whole number is wanted, not {_kind(number)}")
    if not least <= number <= most:
        raise MessageRejected(f"{name}={number}: it must be from {least} to {most}")


def _check_seconds(name: str, seconds: object) -> None:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise WrongType(f"{name}: seconds as a number are wanted, not {_kind(seconds)}")
    if not math.isfinite(seconds) or seconds < 0:
        raise MessageRejected(f"{name}={seconds}: it must be 0 or more")


def _kind(value: object) -> str:
    return f"{type(value).__name__} ({value!r:.40})" if not isinstance(value, bytes | str) else type(value).__name__
