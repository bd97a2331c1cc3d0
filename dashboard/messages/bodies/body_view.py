"""A message's body for people: what it seems to be, and the same bytes in other forms. No body is ever trusted.

The texts are escaped by the template; here only their size is bounded.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from dashboard.messages.bodies.registered import FORMS, registered_schema_of
from dashboard.messages.bodies.schema_errors import NotOfSchema, SchemaError
from dashboard.messages.bodies.schemas import schema_of
from dashboard.messages.bodies.unpack import MESSAGEPACK_BYTES_MAX, is_long_messagepack, messagepack, unpack
from gantrymq.message import sysflag
from gantrymq.message.model import MessageExt

NODES_MAX = 2000  # more are a plain text: a page of thousands of folds is slow, and helps no reader
DEPTH_MAX = 60
TEXT_BYTES_MAX = 256 * 1024
SHOWN_CHARS_MAX = 1 << 20  # of a decoded body: few bytes may become many lines
HEX_BYTES_MAX = 4 * 1024
PREVIEW_CHARS = 120
PREVIEW_DECODED_BYTES_MAX = 16 * 1024  # a page of rows decodes as many bodies
_PRETTY = json.JSONEncoder(indent=2, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class BodyView:
    """One body in one form. cut: only the beginning is shown."""

    form: str
    forms: tuple[str, ...]  # those that this body can take
    text: str
    size_bytes: int
    cut: bool
    note: str | None = None
    tree: SafeString | None = None  # the text as markup that folds


def body_bytes(message: MessageExt) -> tuple[bytes, str | None]:
    """The body as the SDK unpacked it, and a note when it had to leave it compressed."""
    still_packed = message.sys_flag & sysflag.COMPRESSED
    return bytes(message.body), gettext(
        "compressed in a way that can't be unpacked here; as stored"
    ) if still_packed else None


def view_body(message: MessageExt, wanted: str | None = None) -> BodyView:
    """The body in the wanted form, or in the one that fits best. What a producer packed itself is unpacked."""
    stored, note = body_bytes(message)
    packed = unpack(stored)
    body = stored if packed is None else packed[1]
    if packed is not None:
        note = gettext("%(packed)s, unpacked from %(stored)s bytes to %(body)s") % {
            "packed": packed[0],
            "stored": len(stored),
            "body": len(body),
        }
    text = _text(body)
    value = _printable(_json(text)) if text is not None else None
    decoded = _printable(messagepack(body)) if text is None else None
    kind, by_schema, remark = _by_schema(message.topic, body)
    by_schema = _printable(by_schema)
    long = _why_not_decoded(body) if by_schema is None else ""
    note = " · ".join(filter(None, (note, remark, long))) or None
    there = {
        kind: by_schema is not None, "json": value is not None, "messagepack": decoded is not None,
        "text": text is not None, "hex": True, "base64": True, "stored": packed is not None,
    }  # fmt: skip
    forms = tuple(form for form, is_there in there.items() if is_there)
    form = wanted if wanted in forms else forms[0]
    shown_value = by_schema if form == kind else value if form == "json" else decoded
    shown, tree, limit = _shown(form, stored if form == "stored" else body, shown_value)
    return BodyView(form, forms, shown, len(stored), len(body) > limit or len(shown) == SHOWN_CHARS_MAX, note, tree)


def decoded_body(message: MessageExt) -> tuple[str, Any, str]:
    """(its form, its value as JSON knows values, a remark); ("", None, …) of a body that is nothing of that."""
    stored, _ = body_bytes(message)
    packed = unpack(stored)
    plain = stored if packed is None else packed[1]
    kind, value, remark = _by_schema(message.topic, plain)
    if _printable(value) is not None:
        return kind, value, remark
    text = _text(plain)
    value = _printable(_json(text) if text is not None else messagepack(plain))
    return "" if value is None else "json" if text is not None else "messagepack", value, remark


def document_of(body: bytes, topic: str = "") -> Any:
    """What the body is by its topic's schema, in JSON or MessagePack, unpacked where its producer packed it; None when
    it is nothing of that.
    """
    packed = unpack(body)
    return _document_of_plain(body if packed is None else packed[1], topic)


def _document_of_plain(body: bytes, topic: str) -> Any:
    """`document_of` a body as it is: what is packed in it stays packed."""
    _, by_schema, _ = _by_schema(topic, body)
    if _line(by_schema) is not None:
        return by_schema
    text = _text(body)
    return _json(text) if text is not None else messagepack(body)


def _shown(form: str, body: bytes, value: Any) -> tuple[str, SafeString | None, int]:
    """(the text, the text that folds, how many bytes are shown at most)."""
    if form in ("json", "messagepack", *FORMS):
        return _pretty(value), fold(value), TEXT_BYTES_MAX
    if form == "text":
        return body[:TEXT_BYTES_MAX].decode("utf-8", "replace"), None, TEXT_BYTES_MAX
    if form == "base64":
        return base64.b64encode(body[:TEXT_BYTES_MAX]).decode(), None, TEXT_BYTES_MAX
    return hex_dump(body[:HEX_BYTES_MAX]), None, HEX_BYTES_MAX


def _by_schema(topic: str, body: bytes) -> tuple[str, Any, str]:
    """(avro or protobuf, the value or None, a remark): by the schema that the operator gave the topic, if any."""
    try:
        schema = schema_of(topic) or registered_schema_of(topic, body)
        if schema is None:
            return "", None, ""
        value, remark = schema.decode(body)
    except (SchemaError, NotOfSchema) as exc:
        return "", None, str(exc)
    return schema.kind, value, remark


def _why_not_decoded(body: bytes) -> str:
    kib = MESSAGEPACK_BYTES_MAX // 1024
    long = gettext("MessagePack of more than %(kib)s KiB, which is not decoded here") % {"kib": kib}
    return long if is_long_messagepack(body) else ""


def preview(message: MessageExt) -> str:
    """One line of a body for a table."""
    body, _ = body_bytes(message)
    text = _text(body[: PREVIEW_CHARS * 4], cut=len(body) > PREVIEW_CHARS * 4)
    if text is None:
        text = _decoded_line(body, message.topic)
    if text is None:
        return body[:24].hex(" ")
    line = " ".join(text[: PREVIEW_CHARS * 2].split())
    return line if len(line) <= PREVIEW_CHARS and len(body) <= PREVIEW_CHARS * 4 else line[:PREVIEW_CHARS] + "…"


def _decoded_line(body: bytes, topic: str) -> str | None:
    """What a packed or encoded body says, None for one that is too long for a row or says nothing."""
    if len(body) > PREVIEW_DECODED_BYTES_MAX:
        return None
    packed = unpack(body, PREVIEW_DECODED_BYTES_MAX)
    plain = body if packed is None else packed[1]
    if packed is not None and (text := _text(plain)) is not None:
        return text
    return _line(_document_of_plain(plain, topic))


def hex_dump(data: bytes) -> str:
    """Sixteen bytes a line: offset, hex, printable characters."""
    lines = []
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        printable = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in row)
        lines.append(f"{start:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {printable}")
    return "\n".join(lines)


def _text(body: bytes, *, cut: bool = False) -> str | None:
    """The body as text, None when it does not look like text. `cut`: the last character may be incomplete."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as exc:
        if not cut or exc.start < len(body) - 4:
            return None
        text = body[: exc.start].decode("utf-8")
    controls = sum(1 for char in text[:4096] if char < " " and char not in "\t\r\n")
    return text if controls == 0 else None


def _json(text: str) -> Any:
    """The object or array that the text is, None when it is none."""
    if len(text) > TEXT_BYTES_MAX or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _printable(value: Any) -> Any:
    """The value, None when it can't be shown: too deep, or with halves of characters."""
    try:
        _pretty(value)
    except (ValueError, RecursionError):
        return None
    return value if _line(value) is not None else None


def _line(value: Any) -> str | None:
    """The value in JSON; None of nothing, or where it is too deep or has halves of characters."""
    try:
        line = json.dumps(value, ensure_ascii=False)
        line.encode()
    except (ValueError, RecursionError):
        return None
    return None if value is None else line


def _pretty(value: Any) -> str:
    """The value over lines, as far as it is shown: a few bytes deep within arrays would become gigabytes of indents."""
    parts, chars = [], 0
    for part in _PRETTY.iterencode(value):
        parts.append(part)
        chars += len(part)
        if chars >= SHOWN_CHARS_MAX:
            break
    return "".join(parts)[:SHOWN_CHARS_MAX]


def fold(value: Any) -> SafeString | None:
    """A pretty print whose objects and arrays fold without a script; copied, it is JSON. None: no object or array, too
    deep, or too much."""
    if not isinstance(value, dict | list) or _count(value, 0) > NODES_MAX:
        return None
    return _lines(value, "", "", "")


def _count(value: Any, depth: int) -> int:
    """How many values there are; more than NODES_MAX as soon as there are too many, or they are too deep."""
    if not isinstance(value, dict | list):
        return 1
    if depth > DEPTH_MAX or len(value) > NODES_MAX:
        return NODES_MAX + 1
    total = 1
    for item in value.values() if isinstance(value, dict) else value:
        total += _count(item, depth + 1)
        if total > NODES_MAX:
            break
    return total


def _lines(value: Any, indent: str, key: str, comma: str) -> SafeString:
    """One value with its key, from its indent to its line end."""
    if not isinstance(value, dict | list) or not value:
        return format_html("{}{}{}{}\n", indent, key, json.dumps(value, ensure_ascii=False), comma)
    is_object = isinstance(value, dict)
    if isinstance(value, dict):
        items = [(f"{json.dumps(name, ensure_ascii=False)}: ", item) for name, item in value.items()]
    else:
        items = [("", item) for item in value]
    inner = format_html_join(
        "", "{}", ((_lines(item, indent + "  ", name, "," if at < len(items) - 1 else ""),)
                   for at, (name, item) in enumerate(items)),
    )  # fmt: skip
    return format_html(
        '<details open><summary data-n="{}">{}{}{}<span>\n</span></summary>{}</details>{}{}{}\n',
        len(items), indent, key, "{" if is_object else "[", inner, indent, "}" if is_object else "]", comma,
    )  # fmt: skip
