"""What every JSON body is made of: a dataclass that writes and reads itself (the bodies: bodies.py, admin_bodies.py).

`to_json` writes what fastjson would (compact, absent instead of null), `from_json` reads JSON and fastjson's dialect,
ignores unknown fields and fills missing ones with the defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Self

from gantrymq.errors import BodyError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson

DIGITS_MAX = 20  # of a 64-bit number as text
REAL_CHARS_MAX = 40


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def json_field(
    *, name: str | None = None, read: Callable[[Any], Any] | None = None, default: Any = dataclasses.MISSING
) -> Any:
    """A field whose JSON name is not its camelCase, or whose value is made of other bodies (`read` builds it)."""
    metadata = {"name": name, "read": read}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


_Plan = tuple[tuple[str, str, Callable[[Any], Any] | None], ...]

_plans: dict[str, _Plan] = {}


def _plan(body: type[Body]) -> _Plan:
    """(attribute, JSON name, reader) for each field, sorted as fastjson sorts beans; made once a body."""
    if body.__qualname__ in _plans:
        return _plans[body.__qualname__]
    plan = [
        (
            item.name,
            item.metadata.get("name") or _camel(item.name),
            item.metadata.get("read") or _READERS.get(str(item.type)),
        )
        for item in dataclasses.fields(body)  # type: ignore[arg-type]  # every Body is a dataclass
    ]
    return _plans.setdefault(body.__qualname__, tuple(sorted(plan, key=lambda entry: entry[1])))


class Body:
    """What all bodies can do; subclasses are dataclasses that only list their fields."""

    def to_dict(self) -> dict[str, Any]:
        """Field values under their JSON names; None is left out."""
        members: dict[str, Any] = {}
        for attribute, name, _ in _plan(type(self)):
            value = getattr(self, attribute)
            if value is not None:
                members[name] = _plain(value)
        return members

    def to_json(self) -> bytes:
        """The JSON of the wire, as fastjson writes it."""
        return fastjson.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, members: Mapping[str, Any]) -> Self:
        """Raises BodyError when a field can't be what it should be."""
        if not isinstance(members, Mapping):
            raise BodyError(f"{cls.__name__}: expected an object, got {type(members).__name__}")
        values: dict[str, Any] = {}
        name = ""
        try:
            for attribute, name, read in _plan(cls):
                value = members.get(name)
                if value is not None:
                    values[attribute] = read(value) if read else value
            return cls(**values)
        except (TypeError, ValueError, AttributeError, KeyError, OverflowError) as exc:
            raise BodyError(f"{cls.__name__}.{name}: {exc}") from exc

    @classmethod
    def from_json(cls, data: bytes, *, dialect_bytes_max: int | None = None) -> Self:
        """Raises BodyError. dialect_bytes_max: see fastjson.loads."""
        return cls.from_dict(fastjson.loads(data, dialect_bytes_max=dialect_bytes_max))


def _plain(value: Any) -> Any:
    if isinstance(value, Body):
        return value.to_dict()
    if isinstance(value, MessageQueue):  # a tuple by type, one value by meaning
        return value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def text_value(value: Any) -> str:
    """Text, or what fastjson makes of a number or a boolean where a bean has text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise TypeError(f"expected text, got {type(value).__name__}")


def long_value(value: Any) -> int:
    """A whole number of 64 bits; as fastjson does, also from its text."""
    if not isinstance(value, int | float | str) or (isinstance(value, str) and len(value) > DIGITS_MAX):
        raise TypeError(f"expected a number, got {type(value).__name__}")
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("a number of more than 64 bits")
    return number


def _real(value: Any) -> float:
    if not isinstance(value, int | float | str) or (isinstance(value, str) and len(value) > REAL_CHARS_MAX):
        raise TypeError(f"expected a number, got {type(value).__name__}")
    return float(value)


def _flag(value: Any) -> bool:
    """A boolean; as fastjson does, also from its text or from 0 and 1."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise TypeError(f"expected true or false, got {type(value).__name__}")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


def longs(value: Any) -> list[int]:
    return [long_value(item) for item in _list(value)]  # Go sends them as texts


def _text_list(value: Any) -> list[str]:
    return [text_value(item) for item in _list(value)]


def _text_table(value: Any) -> dict[str, str]:
    return {key_text(key): text_value(item) for key, item in table_value(value).items() if item is not None}


def _text_lists(value: Any) -> dict[str, list[str]]:
    return {key_text(key): _text_list(item) for key, item in table_value(value).items()}


def table_value(value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def key_text(key: Any) -> str:
    return key if isinstance(key, str) else str(key)


# By the annotation of a field that names no reader.
_READERS: dict[str, Callable[[Any], Any]] = {
    "str": text_value,
    "str | None": text_value,
    "int": long_value,
    "float": _real,
    "bool": _flag,
    "list[str]": _text_list,
    "dict[str, str]": _text_table,
    "dict[str, list[str]]": _text_lists,
}


def list_of(body: type[Body]) -> Callable[[Any], list[Any]]:
    return lambda items: [body.from_dict(item) for item in _list(items)]


def map_of(body: type[Body]) -> Callable[[Any], dict[Any, Any]]:
    return lambda items: {key_text(key): body.from_dict(item) for key, item in table_value(items).items()}


def texts(items: Mapping[Any, Any]) -> dict[str, str] | None:
    return {str(key): str(value) for key, value in items.items()} or None


def int_keys(items: Mapping[Any, Any]) -> dict[int, Any]:
    return {long_value(key): text_value(value) for key, value in table_value(items).items()}


def read_message_queue(members: Any) -> MessageQueue:
    """{"topic", "brokerName", "queueId"} to MessageQueue."""
    members = table_value(members)
    return MessageQueue(text_value(members["topic"]), text_value(members["brokerName"]), long_value(members["queueId"]))


def queue_list(items: Any) -> list[MessageQueue]:
    return [read_message_queue(item) for item in _list(items)]


def queue_keys(read: Callable[[Any], Any]) -> Callable[[Any], dict[MessageQueue, Any]]:
    """A map keyed by MessageQueue, whichever of fastjson's two key forms was used."""

    def convert(items: Any) -> dict[MessageQueue, Any]:
        return {
            key if isinstance(key, MessageQueue) else read_message_queue(fastjson.loads(key)): read(value)
            for key, value in items.items()
        }

    return convert
