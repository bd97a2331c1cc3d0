"""A message's body for people: what it seems to be, and the same bytes as text, JSON or hex. No body is ever trusted.

The texts are escaped by the template; here only their size is bounded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from gantrymq.message import sysflag
from gantrymq.message.model import MessageExt

TEXT_BYTES_MAX = 256 * 1024
HEX_BYTES_MAX = 4 * 1024
PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True)
class BodyView:
    """One body in one form. cut: only the beginning is shown."""

    form: str
    forms: tuple[str, ...]  # those that this body can take
    text: str
    size_bytes: int
    cut: bool
    note: str | None = None


def body_bytes(message: MessageExt) -> tuple[bytes, str | None]:
    """The body as the SDK unpacked it, and a note when it had to leave it compressed."""
    still_packed = message.sys_flag & sysflag.COMPRESSED
    return bytes(message.body), "compressed in a way that can't be unpacked here; as stored" if still_packed else None


def view_body(message: MessageExt, wanted: str | None = None) -> BodyView:
    """The body in the wanted form, or in the one that fits best."""
    body, note = body_bytes(message)
    text = _text(body)
    pretty = _pretty_json(text) if text is not None else None
    forms = tuple(form for form, there in (("json", pretty), ("text", text), ("hex", "")) if there is not None)
    form = wanted if wanted in forms else forms[0]
    if form == "json":
        assert pretty is not None
        return BodyView(form, forms, pretty, len(body), len(body) > TEXT_BYTES_MAX, note)
    if form == "text":
        shown = body[:TEXT_BYTES_MAX].decode("utf-8", "replace")
        return BodyView(form, forms, shown, len(body), len(body) > TEXT_BYTES_MAX, note)
    return BodyView(form, forms, hex_dump(body[:HEX_BYTES_MAX]), len(body), len(body) > HEX_BYTES_MAX, note)


def preview(message: MessageExt) -> str:
    """One line of a body for a table."""
    body, _ = body_bytes(message)
    text = _text(body[: PREVIEW_CHARS * 4], cut=len(body) > PREVIEW_CHARS * 4)
    if text is None:
        return body[:24].hex(" ")
    line = " ".join(text[: PREVIEW_CHARS * 2].split())
    return line if len(line) <= PREVIEW_CHARS and len(body) <= PREVIEW_CHARS * 4 else line[:PREVIEW_CHARS] + "…"


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


def _pretty_json(text: str) -> str | None:
    if len(text) > TEXT_BYTES_MAX or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
