"""S13: another site's page can't act for who is logged in, and looking changes nothing."""

from __future__ import annotations

import ast
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile

from dashboard.cluster.gateway import Gateway
from dashboard.models.management import User
from dashboard.reports.runs.plans import ensure_plans
from tests.dashboard.addresses import all_patterns, example_address
from tests.dashboard.conftest import Client, api_for
from tests.harness import ServingCluster
from tests.source_files import ROOT, sources, syntax_of

UNSAFE = ("post", "put", "patch", "delete")
UPLOADS = {"FILES", "FileField", "ImageField", "UploadedFile"}
# What a page elsewhere could put behind an address that it makes a browser open.
TEMPTATIONS = {"name": "forged", "queues": "1", "perm": "read-write", "confirm": "forged", "days": "1", "delete": "1"}


async def test_s13_every_unsafe_request_of_a_session_needs_the_forms_token(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("admin", enforce_csrf_checks=True)
    for route, item in all_patterns():
        for method in UNSAFE:
            response = await getattr(client, method)(example_address(route), TEMPTATIONS)
            is_rest = getattr(item.callback, "checks_itself", False)
            expected = {401, 405} if is_rest else {403}  # REST doesn't look at the cookie at all
            assert response.status_code in expected, (method, route, response.status_code)


async def test_s13_a_token_needs_no_cookie_and_no_forms_token(users: dict[str, User], gateway: Gateway) -> None:
    client = await api_for(users["operator"])
    assert (await client.call("post", "/topics", {"name": "by-token", "write_queues": 1}))[0] == 201


async def test_s26_a_file_in_a_form_is_read_by_no_address(log_in: Client, gateway: Gateway) -> None:
    """S26: nothing can be uploaded. A file of the name of a field is not taken for the field."""
    read = [
        f"{path.name}:{node.lineno}"
        for path in sources()
        if path.is_relative_to(ROOT / "dashboard")
        for node in ast.walk(syntax_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in UPLOADS)
        or (isinstance(node, ast.Name) and node.id in UPLOADS)
    ]
    assert read == []
    client = await log_in("operator")
    file = SimpleUploadedFile("by-file.txt", b"by-file", "text/plain")
    answer = await client.post("/topics/create", {"name": file, "queues": "1", "perm": "read-write"})
    assert answer.status_code == 422
    assert not [row.name for row in (await gateway.topics.list()).rows if "by-file" in row.name]


async def test_s13_looking_at_addresses_changes_nothing(
    log_in: Client, gateway: Gateway, cluster: ServingCluster
) -> None:
    client = await log_in("admin")
    await cluster.broker.transaction_checks.round()  # the first one, a minute after its start, makes a topic
    await ensure_plans()  # the page of reports makes its rows when it is first looked at
    before = await state_of(gateway)
    for route, item in all_patterns():
        if item.name != "static":
            for method in ("get", "head"):
                await getattr(client, method)(example_address(route), TEMPTATIONS)
    assert await state_of(gateway) == before
    assert (await client.get("/topics")).status_code == 200, "a look logged somebody out"


async def state_of(gateway: Gateway) -> tuple[Any, ...]:
    """Every row that says something, and the cluster's topics and groups."""
    topics = sorted(row.name for row in (await gateway.topics.list()).rows)
    groups = sorted((await gateway.groups.settings())[0])
    return await rows(), topics, groups


@sync_to_async
def rows() -> dict[str, list[Any]]:
    return {
        model._meta.label: sorted(model.objects.values_list("pk", *_telling(model)), key=repr)
        for model in apps.get_app_config("dashboard").get_models()
    }


def _telling(model: Any) -> list[str]:
    names = {field.name for field in model._meta.concrete_fields} - {model._meta.pk.name}
    return sorted(names - {"last_login", "last_used_at"})
