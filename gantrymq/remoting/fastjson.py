"""Reading and writing what fastjson 1.2 writes and strict JSON can't say.

RocketMQ's bodies come from fastjson, which prints maps with integer keys unquoted (`{0:"a"}`) and maps whose keys are
beans with the bean itself as the key (`{{"brokerName":"b","queueId":0,"topic":"t"}:1}`). `loads` accepts both besides
plain JSON; `dumps` writes object keys for MessageQueue (the only form that Java and Go both read) and quotes integer
keys, which every reader takes. Output is always compact: the Go client splits it by commas and colons.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from gantrymq.errors import BodyError
from gantrymq.message.model import MessageQueue

_DEPTH_MAX = 64  # deeper than any body of the protocol; keeps hostile nesting off the interpreter's stack
_SPACES = frozenset(" \t\r\n")
_SPACE_RUN = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"', re.DOTALL)
_WORD = re.compile(r'[^,:{}\[\]" \t\r\n]+')
# An object without any inside: nearly always plain JSON, which orjson reads at once.
_FLAT = re.compile(r'\{(?=")(?:[^{}\[\]"]++|"[^"\\]*+(?:\\.[^"\\]*+)*")*+\}', re.DOTALL)
_LITERALS = {"true": True, "false": False, "null": None}


def loads(data: bytes | str, *, dialect_bytes_max: int | None = None) -> Any:
    """Parse JSON or fastjson's dialect. Integer keys become text; MessageQueue keys become MessageQueue.

    Raises BodyError. Other object keys become their compact JSON text. dialect_bytes_max: what is longer has to be
    plain JSON; the tolerant reader takes a second for a few MiB.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        if dialect_bytes_max is not None and len(data) > dialect_bytes_max:
            raise BodyError(f"body is not JSON: {exc}") from exc
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as exc:
        raise BodyError(f"body is not UTF-8: {exc}") from exc
    return _Reader(text).document()


def dumps(value: Any) -> bytes:
    """Compact JSON; dictionaries keyed by MessageQueue get raw object keys, integer keys are quoted."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # keyed by MessageQueue, which no JSON library writes
        return _dumps(value).encode()


def _plain(value: Any) -> Any:
    """What orjson doesn't take, as something that it does. Raises TypeError."""
    if isinstance(value, MessageQueue):
        return {"brokerName": value.broker_name, "queueId": value.queue_id, "topic": value.topic}
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _dumps(value: Any) -> str:
    if isinstance(value, MessageQueue):
        return _queue_text(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_key(key)}:{_dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ",".join(map(_dumps, value)) + "]"
    return orjson.dumps(value).decode()


def _key(key: Any) -> str:
    if isinstance(key, MessageQueue):
        return _queue_text(key)
    return orjson.dumps(key if isinstance(key, str) else str(key)).decode()


def _queue_text(queue: MessageQueue) -> str:
    """The order of the keys is part of the form: brokerName, queueId, topic."""
    return orjson.dumps({"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}).decode()


class _Reader:
    """A recursive-descent reader of the dialect. One document, then the end of the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def document(self) -> Any:
        value = self._value(0)
        self._skip_space()
        if self._position != len(self._text):
            raise self._error("text after the document")
        return value

    def _error(self, why: str) -> BodyError:
        return BodyError(f"body is neither JSON nor fastjson's dialect: {why} at character {self._position}")

    def _skip_space(self) -> None:
        if self._text[self._position : self._position + 1] in _SPACES:
            found = _SPACE_RUN.match(self._text, self._position)
            self._position = found.end() if found else self._position

    def _peek(self) -> str:
        self._skip_space()
        return self._text[self._position] if self._position < len(self._text) else ""

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error(f"expected {character!r}")
        self._position += 1

    def _value(self, depth: int) -> Any:
        if depth > _DEPTH_MAX:
            raise self._error("nested too deeply")
        match self._peek():
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                return self._string()
            case "":
                raise self._error("unexpected end")
            case _:
                return self._bare()

    def _object(self, depth: int) -> dict[Any, Any]:
        if (flat := _FLAT.match(self._text, self._position)) is not None:
            try:
                members: dict[Any, Any] = orjson.loads(flat.group())
            except orjson.JSONDecodeError:  # the dialect after all: word by word, which finds the place of an error
                pass
            else:
                self._position = flat.end()
                return members
        self._expect("{")
        members = {}
        while self._peek() != "}":
            key = self._object_key(depth)
            self._expect(":")
            members[key] = self._value(depth + 1)
            if self._peek() == ",":
                self._position += 1
            elif self._peek() != "}":
                raise self._error("expected ',' or '}'")
        self._position += 1
        return members

    def _object_key(self, depth: int) -> Any:
        key = self._value(depth + 1) if self._peek() in '{"' else self._word()
        if not isinstance(key, dict):
            return key
        if {"brokerName", "queueId", "topic"} <= key.keys():
            try:
                return MessageQueue(str(key["topic"]), str(key["brokerName"]), int(key["queueId"]))
            except (TypeError, ValueError, OverflowError) as exc:
                raise self._error(f"queueId {str(key['queueId'])[:20]!r} is not a number") from exc
        return _dumps(key)

    def _array(self, depth: int) -> list[Any]:
        self._expect("[")
        items: list[Any] = []
        while self._peek() != "]":
            items.append(self._value(depth + 1))
            if self._peek() == ",":
                self._position += 1
            elif self._peek() != "]":
                raise self._error("expected ',' or ']'")
        self._position += 1
        return items

    def _string(self) -> str:
        found = _STRING.match(self._text, self._position)
        if found is None:
            raise self._error("unterminated string")
        self._position = found.end()
        try:
            return str(orjson.loads(found.group()))
        except orjson.JSONDecodeError as exc:
            raise self._error(f"bad string: {exc}") from exc

    def _word(self) -> str:
        """The bare run of characters up to the next delimiter."""
        self._skip_space()
        start = self._position
        found = _WORD.match(self._text, start)
        if found is None:
            raise self._error("expected a value")
        self._position = found.end()
        return found.group()

    def _bare(self) -> Any:
        word = self._word()
        if word in _LITERALS:
            return _LITERALS[word]
        try:
            return orjson.loads(word)
        except orjson.JSONDecodeError as exc:
            raise self._error(f"{word[:20]!r} is not a value") from exc
