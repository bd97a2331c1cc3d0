"""No query string in a log line."""

from __future__ import annotations

import io
import logging

import pytest
from django.core.handlers.asgi import ASGIRequest

from appliance.process.logs import FORMAT
from dashboard.http.log_paths import PathsOnlyFormatter, without_queries

SECRET = "Zm9yLW9uZS11c2Ugb25seQ"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"GET /first-run?token={SECRET} failed", "GET /first-run failed"),
        (f"Referer checking failed - https://h.example/first-run?token={SECRET} does not match", "/first-run does not"),
        (
            f"<WebRequest at 0x7f method=GET uri=/first-run?a='&token={SECRET} clientproto=HTTP/1.1>",
            "uri=/first-run cl",
        ),
        (f"http://h.example?token={SECRET}", "http://h.example"),
        ("Is it there? Yes/no? Perhaps.", "Is it there? Yes/no? Perhaps."),
    ],
)
def test_addresses_lose_what_follows_the_question_mark(text: str, shown: str) -> None:
    assert shown in without_queries(text)
    assert SECRET not in without_queries(text)


def test_a_request_is_written_as_method_and_path_and_the_record_stays_as_it_is() -> None:
    query = f"a='&token={SECRET}".encode()
    scope = {"type": "http", "method": "PUT", "path": "/first-run", "query_string": query, "headers": []}
    record = logging.makeLogRecord({"name": "django.request", "msg": "Method Not Allowed (PUT): %s"})
    record.args, record.request = ("/first-run",), ASGIRequest(scope, io.BytesIO())
    line = PathsOnlyFormatter(FORMAT).format(record)
    assert "request='PUT /first-run'" in line and SECRET not in line
    assert isinstance(record.request, ASGIRequest)


def test_a_traceback_is_cut_too() -> None:
    try:
        raise ValueError(f"no answer from http://h.example/first-run?token={SECRET}")
    except ValueError as exc:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": (type(exc), exc, exc.__traceback__)})
    line = PathsOnlyFormatter(FORMAT).format(record)
    assert "ValueError: no answer from http://h.example/first-run" in line and SECRET not in line
