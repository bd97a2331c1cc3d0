"""The audit log as JSON lines or CSV, streamed, the newest first."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from typing import Any

from django.http import StreamingHttpResponse

from dashboard.audit.listing import Asked, found
from dashboard.models.audit import AuditEntry

FORMS = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
CHUNK_ROWS = 500
COLUMNS = ("number", "at", "who", "way", "address", "action", "target", "result", "told", "details", "request_id",
           "previous_hash", "hash")  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


def export_response(asked: Asked, form: str) -> StreamingHttpResponse:
    """form: a key of FORMS."""
    response = StreamingHttpResponse(_lines(asked, form), content_type=FORMS[form])
    response.headers["Content-Disposition"] = f'attachment; filename="audit.{form}"'
    return response


def told(entry: AuditEntry) -> dict[str, Any]:
    """One entry for programs; hash: see dashboard/audit/chain.py."""
    return {
        "number": entry.number,
        "at": entry.at.isoformat(timespec="milliseconds"),
        "who": entry.who,
        "way": entry.way,
        "address": entry.address,
        "action": entry.action,
        "target": entry.target,
        "result": entry.result,
        "told": entry.told,
        "details": json.loads(entry.details) if entry.details else {},
        "request_id": entry.request_id,
        "previous_hash": entry.previous_hash,
        "hash": entry.entry_hash,
    }


async def _lines(asked: Asked, form: str) -> AsyncIterator[bytes]:
    if form == "csv":
        yield _row(COLUMNS)
    async for entry in found(asked).aiterator(chunk_size=CHUNK_ROWS):
        line = told(entry)
        if form == "csv":
            line["details"] = entry.details
            yield _row([_harmless(line[column]) for column in COLUMNS])
        else:
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _harmless(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value.startswith(FORMULA) else value


def _row(values: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue().encode()
