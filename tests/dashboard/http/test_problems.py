"""Refusals for programs are problem documents (RFC 9457), whoever refuses. The words behind a status are the same
whichever Python serves the pages.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from typing import Any

import pytest
from django.test import AsyncClient

from dashboard.api.operations import api
from dashboard.cluster.gateway import Gateway
from dashboard.http.phrases import RENAMED, phrase_of
from dashboard.models.management import User
from dashboard.web.channel import refusal
from tests.dashboard.conftest import api_for


def is_problem(answer: Any, status: int) -> bool:
    """Whether an answer is a whole problem document of that status."""
    told = json.loads(answer.content)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(told) and told["detail"].endswith("."), told
    return (answer.status_code, told["status"]) == (status, status)


@pytest.mark.parametrize(
    ("method", "address", "body", "status"),
    [
        ("post", "/topics", "{", 400), ("post", "/topics", '{"name": "\\ud800"}', 422),
        ("get", "/topics/none-of-this-name", None, 404), ("get", "/no-such-address", None, 404),
        ("get", "/topics?limit=0", None, 422), ("post", "/topics", '{"name": "TBW102"}', 422),
        ("delete", "/topics/TBW102", None, 409), ("patch", "/topics", "{}", 405),
    ],
)  # fmt: skip
async def test_a_refusal_says_what_and_why(
    method: str, address: str, body: str | None, status: int, users: dict[str, User], gateway: Gateway
) -> None:
    caller = await api_for(users["operator"])
    options: dict[str, Any] = {} if body is None else {"data": body, "content_type": "application/json"}
    answer = await getattr(AsyncClient(), method)("/api/v1" + address, headers=caller.headers, **options)
    assert is_problem(answer, status)
    assert ("Allow" in answer.headers) is (status == 405)


async def test_who_may_not_is_told_in_the_same_way(users: dict[str, User], gateway: Gateway) -> None:
    nobody = await AsyncClient().get("/api/v1/topics")
    assert is_problem(nobody, 401) and nobody.headers["WWW-Authenticate"] == "Bearer"
    assert is_problem(await AsyncClient().get("/api/v1/openapi.json"), 401)
    assert is_problem(await AsyncClient().get("/api/v1/topics", headers={"host": "evil.example"}), 400)
    reader = await api_for(users["reader"])
    assert is_problem(await AsyncClient().delete("/api/v1/topics/x", headers=reader.headers), 403)


async def test_our_own_fault_is_told_without_its_cause(
    users: dict[str, User], gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr(gateway.topics, "list", fails)
    caller = await api_for(users["reader"])
    answer = await AsyncClient(raise_request_exception=False).get("/api/v1/topics", headers=caller.headers)
    assert is_problem(answer, 500) and b"canary" not in answer.content


def test_a_refusal_before_any_page_is_one_too() -> None:
    head, _, body = refusal(413, "Too large.", is_api=True, more=[]).partition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head
    assert json.loads(body) == {
        "type": "about:blank", "title": "Content Too Large", "status": 413, "detail": "Too large.",
    }  # fmt: skip


def test_the_document_names_the_refusals_of_each_operation() -> None:
    for path, operations in api.get_openapi_schema(path_prefix="/api/v1/")["paths"].items():
        for method, operation in operations.items():
            refusals = {int(status): answer for status, answer in operation["responses"].items() if int(status) >= 400}
            assert {401, 403} <= set(refusals), (method, path)
            of_headers = refusals.pop(431, None)  # sent before it is known what is asked
            assert of_headers is None or set(of_headers["content"]) == {"text/plain"}
            assert all(set(answer["content"]) == {"application/problem+json"} for answer in refusals.values())


def test_the_words_are_those_of_rfc_9110() -> None:
    assert [phrase_of(status) for status in (200, 404, 413, 414, 416, 422)] == [
        "OK", "Not Found", "Content Too Large", "URI Too Long", "Range Not Satisfiable", "Unprocessable Content",
    ]  # fmt: skip


def test_only_what_an_older_python_says_in_other_words_is_listed() -> None:
    """Python has RFC 9110's words since 3.13."""
    listed = set() if sys.version_info >= (3, 13) else set(RENAMED)
    assert {status for status in HTTPStatus if phrase_of(status) != status.phrase} == listed
