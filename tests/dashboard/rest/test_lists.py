"""One shape of a list: what is cut off it says where it goes on, and a cursor that no answer had is refused."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.api.operations import api as operations
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import PartialFailure
from dashboard.models.management import User
from dashboard.rest.lists import LIMIT_MAX, Listed, part_of, place_of
from dashboard.rest.refusals import FormProblem
from tests.dashboard.conftest import api_for

ENVELOPE = ["items", "total", "next", "problems"]


def test_a_list_is_read_in_parts_until_next_is_null() -> None:
    rows, cursor, read = list(range(7)), "", []
    while cursor is not None:
        part = part_of(cursor, 3)
        answer = Listed[int].cut(part, rows[part.rows], len(rows), [PartialFailure("broker-b", "no answer")])
        assert answer.total == 7 and answer.problems == ["broker-b: no answer"]
        read, cursor = read + answer.items, answer.next  # type: ignore[assignment]
    assert read == rows
    assert Listed[int].cut(part_of("7", 3), [], 7).next is None, "behind the end"


@pytest.mark.parametrize("cursor", ["-1", "x", "1.5", "٣", "9" * 10, "broker-a.0:4"])
def test_a_cursor_of_no_answer_is_refused(cursor: str) -> None:
    with pytest.raises(FormProblem) as refused:
        part_of(cursor, 3)
    assert list(refused.value.problems) == ["cursor"]


@pytest.mark.parametrize(
    ("cursor", "place"), [("", {}), ("broker-a.0:4,broker-a.1:9", {"broker-a.0": 4, "broker-a.1": 9})]
)
def test_the_cursor_of_a_search_is_its_place_in_each_queue(cursor: str, place: dict[str, int]) -> None:
    assert place_of(cursor) == place


@pytest.mark.parametrize("cursor", ["4", "broker-a.0:x", "broker-a.0:1,", ","])
def test_half_a_place_is_refused_and_not_taken_for_the_newest(cursor: str) -> None:
    with pytest.raises(FormProblem):
        place_of(cursor)


def test_each_operation_that_gives_many_gives_them_in_the_envelope_and_takes_the_same_paging() -> None:
    document = operations.get_openapi_schema(path_prefix="/api/v1/")
    lists = 0
    for path, methods in document["paths"].items():
        told: dict[str, Any] = methods.get("get", {})
        answer = told.get("responses", {}).get(200, {}).get("content", {}).get("application/json", {}).get("schema", {})
        assert answer.get("type") != "array", path
        fields = (
            document["components"]["schemas"].get(answer.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        )
        lists += "items" in fields
        assert "items" not in fields or list(fields)[:4] == ENVELOPE, path
        query = {one["name"]: one["schema"] for one in told.get("parameters", []) if one["in"] == "query"}
        assert not query.keys() & {"offset", "older", "page", "skip"}, path
        assert query.get("limit", {}).get("maximum", LIMIT_MAX) == LIMIT_MAX, path
        assert "limit" not in query or "cursor" in query, path
    assert lists > 20


@pytest.mark.parametrize("moment", ["0.5", "1700000000", "2026-11-21", "soon", "2 h"])
async def test_a_moment_in_an_address_is_iso_8601_alone(moment: str, users: dict[str, User], gateway: Gateway) -> None:
    api = await api_for(users["admin"], "admin")
    status, answer = await api.call("get", f"/audit?until={moment}")
    assert (status, list(answer["fields"])) == (422, ["until"])


async def test_moments_of_answers_have_one_form(users: dict[str, User], gateway: Gateway) -> None:
    api = await api_for(users["admin"], "admin")
    _, tokens = await api.call("get", "/tokens")
    _, entries = await api.call("get", "/audit")
    moments = [
        tokens["items"][0]["created_at"],
        tokens["items"][0]["expires_at"],
        *(one["at"] for one in entries["items"]),
    ]
    assert all(len(one) == len("2026-11-21T07:30:00.000Z") and one.endswith("Z") for one in moments), moments
