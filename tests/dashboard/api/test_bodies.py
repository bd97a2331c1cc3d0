"""Bodies of writes: an object with fields and types that the document names, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.api.operations import api as operations
from dashboard.cluster.gateway import Gateway
from dashboard.models.alerts import AlertRule
from dashboard.models.management import User
from dashboard.rest.values import MOMENT_WANTED
from tests.dashboard.conftest import api_for

RULE = {"name": "strict", "kind": "disk-used", "threshold": 75}


def writes_with_a_body() -> Iterator[tuple[str, str]]:
    """Method and address of each operation that takes a body."""
    for address, path in operations.get_openapi_schema(path_prefix="/api/v1/")["paths"].items():
        for method, operation in path.items():
            if "requestBody" in operation:
                yield method, re.sub(r"{\w+}", "1", address.removeprefix("/api/v1"))


@pytest.mark.parametrize("body", [[], [{"name": "x"}], "text", 5, True])
async def test_what_is_no_object_is_refused_by_every_write(body: Any, users: dict[str, User], gateway: Gateway) -> None:
    api, found = await api_for(users["admin"], scope="admin"), list(writes_with_a_body())
    assert len(found) > 20
    for method, address in found:
        status, answer = await api.call(method, address, body)
        assert (status, answer["status"]) == (422, 422), (method, address)
        assert answer["fields"]["body"] == ["Value error, this is not a JSON object"], (method, address)


async def test_a_field_that_no_body_has_is_refused_by_every_write(users: dict[str, User], gateway: Gateway) -> None:
    """With a letter missing it would pass for one that is absent, and 200 would be said of what did not change."""
    api, found = await api_for(users["admin"], scope="admin"), list(writes_with_a_body())
    assert len(found) > 20
    for method, address in found:
        status, answer = await api.call(method, address, {"dry_runn": True})
        assert (status, answer["fields"].get("dry_runn")) == (422, ["Extra inputs are not permitted"]), (
            method,
            address,
        )


@pytest.mark.parametrize(
    ("field", "value"),
    [("is_on", "false"), ("is_on", 0), ("threshold", "75"), ("for_s", True), ("channel_ids", ["1"]), ("name", 5)],
)
async def test_a_value_of_another_type_is_no_fit(
    field: str, value: Any, users: dict[str, User], gateway: Gateway
) -> None:
    api = await api_for(users["admin"])
    status, answer = await api.call("post", "/alerts/rules", RULE | {field: value})
    assert status == 422 and list(answer["fields"]) == ["0" if field == "channel_ids" else field]
    assert not await AlertRule.objects.filter(name="strict").aexists()


async def test_a_moment_is_given_as_text(users: dict[str, User], gateway: Gateway) -> None:
    api = await api_for(users["admin"])
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    silence = {"reason": "a new disk", "ends_at": until}
    assert (await api.call("post", "/alerts/mutes", silence))[0] == 201
    status, answer = await api.call("post", "/alerts/mutes", silence | {"ends_at": 4_000_000_000})
    assert status == 422 and answer["fields"] == {"ends_at": [f"Value error, {MOMENT_WANTED}"]}
