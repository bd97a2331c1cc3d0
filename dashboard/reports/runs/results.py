"""What a run left: the rows of its page, and its result as a file, streamed. Page and REST give the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse

from appliance.process.file_tail import read_tail
from appliance.reports.errors import ReportError
from appliance.reports.runs import RunFolder
from dashboard.models.reports import ReportRun

CHUNK_BYTES = 1 << 18
LOG_BYTES_SHOWN = 8192
CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}


def page(run: ReportRun) -> Mapping[str, Any] | None:
    """The rows that a page shows; None when the run has no result (any more)."""
    folder = _folder(run)
    return folder.page() if folder is not None and run.has_result else None


def file_response(run: ReportRun, suffix: str) -> StreamingHttpResponse | None:
    """The whole result; None when there is none. Text cells of the CSV were made safe for spreadsheets before."""
    folder = _folder(run)
    if folder is None or suffix not in CONTENT_TYPES:
        return None
    path = folder.result(suffix, run.report)
    if not path.is_file():
        return None
    response = StreamingHttpResponse(_chunks(path), content_type=CONTENT_TYPES[suffix])
    response["Content-Disposition"] = f'attachment; filename="{run.report}-{run.run_id}.{suffix}"'
    response["Content-Length"] = str(path.stat().st_size)
    return response


def result_bytes(run: ReportRun) -> int | None:
    """Bytes of the result as CSV; None without one."""
    folder = _folder(run)
    path = folder.result("csv", run.report) if folder is not None and run.has_result else None
    return path.stat().st_size if path is not None and path.is_file() else None


def log_end(run: ReportRun) -> str:
    """The end of what the run's process said; empty when there is nothing (any more)."""
    folder = _folder(run)
    return read_tail(folder.log_path, LOG_BYTES_SHOWN) if folder is not None else ""


def _folder(run: ReportRun) -> RunFolder | None:
    try:
        return RunFolder.in_data(settings.APPLIANCE.data, run.run_id)
    except ReportError:
        return None


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
    finally:
        file.close()
