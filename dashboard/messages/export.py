"""The messages of a search as JSON lines or CSV, streamed, newest first. Pages and REST give out the same.

A file is bounded in messages, in bytes, and in what is looked at for it. One that is cut says so in its last line, with
the cursor to go on from: `next`.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from django.http import StreamingHttpResponse

from dashboard.cluster.browse import read_cursor, write_cursor
from dashboard.cluster.errors import GatewayError, MessageDamaged, TopicNotFound
from dashboard.cluster.gateway import Gateway, gateway
from dashboard.cluster.message_search import Search
from dashboard.cluster.message_values import read_place
from dashboard.cluster.units import moment
from dashboard.cluster.values import TopicDetail
from gantrymq.message.model import MessageExt

MESSAGES_MAX = 10_000
BYTES_MAX = 64 << 20
LOOKED_AT_MAX = 1_000_000
STEP_LINES = 64
CONTENT_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
COLUMNS = ("place", "message_id", "stored_at", "born_at", "tag", "keys", "properties", "size_bytes", "body", "encoding")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


async def exported(
    source: Gateway, detail: TopicDetail, wanted: Search, form: str, older: Mapping[str, int] | None = None
) -> AsyncIterator[bytes]:
    """The file's lines. A broker that stops answering ends it, as what is too much does."""
    line_of = _json_line if form == "jsonl" else _csv_line
    if form == "csv":
        yield _csv_row(COLUMNS)
    cursor, cut = dict(older or {}), ""
    count = size = looked_at = 0
    while not cut:
        try:
            limit = min(STEP_LINES, MESSAGES_MAX - count)
            looked = await source.lookup.look(detail, wanted, older=cursor, limit=limit)
            for line in looked.lines:
                place = read_place(line.place)
                assert place is not None, "a line knows its place"
                try:
                    row = line_of(await source.messages.get(detail.name, *place))
                except MessageDamaged as exc:
                    row = _damaged_line(form, line.place, str(exc.lost))
                except TopicNotFound:  # it expired meanwhile
                    continue
                count, size = count + 1, size + len(row)
                yield row
        except GatewayError as exc:
            cut = str(exc)
            break
        looked_at += looked.scanned
        if looked.failures:
            cut = f"{looked.failures[0].what}: {looked.failures[0].reason}"
        elif looked.older is None:
            return
        elif count >= MESSAGES_MAX or size >= BYTES_MAX or looked_at >= LOOKED_AT_MAX:
            cut = f"{count} messages, {size} bytes, {looked_at} looked at: that is the most of one file"
        cursor = read_cursor(looked.older) if looked.older else cursor
    yield _end(form, cut, cursor)


def export_response(detail: TopicDetail, wanted: Search, form: str, older: Mapping[str, int]) -> StreamingHttpResponse:
    """The file as an answer; form: jsonl or csv."""
    lines = exported(gateway(), detail, wanted, form, older)
    response = StreamingHttpResponse(lines, content_type=CONTENT_TYPES[form])
    file_name = re.sub(r"[^A-Za-z0-9_-]+", "-", detail.name)
    response["Content-Disposition"] = f'attachment; filename="{file_name}.{form}"'
    return response


def _end(form: str, cut: str, cursor: Mapping[str, int]) -> bytes:
    if form == "jsonl":
        return _json({"cut": cut, "next": write_cursor(cursor)})
    return _csv_row((f"cut: {cut}", f"next: {write_cursor(cursor)}"))


def _damaged_line(form: str, place: str, damage: str) -> bytes:
    """A message that can't be read has its place, and in place of its encoding what it is."""
    if form == "jsonl":
        return _json({"place": place, "damaged": damage})
    found = {"place": place, "body": damage, "encoding": "damaged"}
    return _csv_row(tuple(found.get(name, "") for name in COLUMNS))


def _facts(message: MessageExt) -> dict[str, Any]:
    body = bytes(message.body)
    try:
        text, encoding = body.decode(), "text"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(body).decode(), "base64"
    return {
        "place": f"{message.broker_name}.{message.queue_id}.{message.queue_offset}",
        "message_id": message.msg_id,
        "stored_at": moment(message.store_timestamp),
        "born_at": moment(message.born_timestamp),
        "tag": message.tags or "",
        "keys": message.keys,
        "properties": message.properties,
        "size_bytes": len(body),
        "body": text,
        "encoding": encoding,
    }


def _json_line(message: MessageExt) -> bytes:
    return _json(_facts(message))


def _csv_line(message: MessageExt) -> bytes:
    facts = _facts(message)
    facts["keys"] = " ".join(facts["keys"])
    facts["properties"] = json.dumps(facts["properties"], ensure_ascii=False)
    return _csv_row(tuple(facts[name] for name in COLUMNS))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _csv_row(cells: tuple[Any, ...]) -> bytes:
    """One row. A text that a spreadsheet would take for a formula gets an apostrophe before it."""
    shown = [f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in cells]
    out = io.StringIO()
    csv.writer(out).writerow(shown)
    return out.getvalue().encode("utf-8", "backslashreplace")
