"""The name servers' key-value table on its pages and by REST: read, set, replaced and removed, each noted once."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest
import pytest_asyncio

from dashboard.cluster.gateway import Gateway
from dashboard.models.audit import AuditEntry
from dashboard.models.management import Role, User
from gantrymq.client.admin.client import AdminClient
from tests.dashboard.conftest import Client, api_for, gateway_to
from tests.harness import ServingCluster

PAGE, SPACE, KEY = "/name-server/entries", "KV_PAGES", "orders <b> & 'more'"
NASTY = "<script>alert(1)</script>"


@pytest_asyncio.fixture(loop_scope="session")
async def admin(gateway: Gateway) -> AsyncIterator[AdminClient]:
    """Another program at the same name server; the namespace is empty afterwards."""
    client = await gateway.calls.admin()
    yield client
    for key in await client.name_servers.list_kv(SPACE):
        await client.name_servers.delete_kv(SPACE, key)


def text_of(response: Any) -> str:
    return unescape(response.content.decode())


async def noted() -> list[tuple[str, str, Any]]:
    entries = AuditEntry.objects.filter(target=SPACE).order_by("pk")
    return [(entry.action, entry.who, json.loads(entry.details)) async for entry in entries]


async def test_an_administrator_sets_replaces_and_removes_an_entry(log_in: Client, admin: AdminClient) -> None:
    client, kv = await log_in(), admin.name_servers
    place = {"namespace": SPACE, "key": KEY}
    assert "No entry in KV_PAGES." in text_of(await client.get(PAGE, {"namespace": SPACE}))
    assert (await client.post(PAGE, place | {"value": NASTY})).status_code == 302
    assert await kv.get_kv(SPACE, KEY) == NASTY
    shown = await client.get(PAGE, {"namespace": SPACE})
    assert NASTY in text_of(shown) and NASTY not in shown.content.decode()
    again = await client.post(PAGE, place | {"value": "2"})
    assert again.status_code == 422 and "This entry exists already" in text_of(again)
    assert await kv.get_kv(SPACE, KEY) == NASTY
    [address] = re.findall(r'href="(/name-server/entry\?[^"]*)"', text_of(shown))
    change = {"do": "put", "seen": NASTY, "value": "3", "typed_name": KEY}
    for refused in ({"typed_name": "orders"}, {"seen": "of before"}, {"value": ""}, {"do": "else"}):
        assert (await client.post(address, change | refused)).status_code == 422, refused
    assert await kv.get_kv(SPACE, KEY) == NASTY
    assert (await client.post(address, change)).status_code == 302
    assert await kv.get_kv(SPACE, KEY) == "3"
    away = {"do": "remove", "seen": "3", "typed_name": KEY}
    assert (await client.post(address, away | {"typed_name": ""})).status_code == 422
    assert (await client.post(address, away)).status_code == 302
    assert await kv.get_kv(SPACE, KEY) is None
    assert (await client.get(address)).status_code == 404
    assert await noted() == [
        ("name server's KV entry set", "admin", {"key": KEY, "value": {"before": None, "after": NASTY}}),
        ("name server's KV entry set", "admin", {"key": KEY, "value": {"before": NASTY, "after": "3"}}),
        ("name server's KV entry removed", "admin", {"key": KEY, "value": {"before": "3", "after": None}}),
    ]


async def test_a_program_does_the_same_and_each_call_is_noted_once(users: dict[str, User], admin: AdminClient) -> None:
    api = await api_for(users[Role.ADMIN], "config")
    wanted = {"namespace": SPACE, "key": "orders", "value": "broker-a:4"}
    changed = {"namespace": SPACE, "key": "orders", "before": None, "after": "broker-a:4"}
    assert await api.call("put", "/cluster/kv", wanted) == (200, changed)
    assert await api.call("put", "/cluster/kv", wanted) == (200, changed | {"before": "broker-a:4"})
    entries = [{"key": "orders", "value": "broker-a:4"}]
    status, listed = await api.call("get", f"/cluster/kv?namespace={SPACE}")
    assert (status, listed["items"]) == (200, entries)
    away = f"/cluster/kv?namespace={SPACE}&key=orders"
    assert await api.call("delete", away) == (200, changed | {"before": "broker-a:4", "after": None})
    assert (await api.call("delete", away))[0] == 404
    actions = [action for action, _, _ in await noted()]
    assert actions == ["name server's KV entry set"] * 2 + ["name server's KV entry removed"]


@pytest.mark.parametrize(
    "odd", [{"key": "a\nb"}, {"key": " a"}, {"value": "x" * 5000}, {"value": ""}, {"value": "\ud800"}, {"valeu": "1"}]
)
async def test_what_is_no_entry_changes_nothing(
    odd: dict[str, str], users: dict[str, User], admin: AdminClient
) -> None:
    api = await api_for(users[Role.ADMIN], "config")
    status, _ = await api.call("put", "/cluster/kv", {"namespace": SPACE, "key": "k", "value": "v"} | odd)
    assert status == 422
    assert await admin.name_servers.list_kv(SPACE) == {}


async def test_what_only_some_name_servers_took_is_said_and_noted(
    cluster: ServingCluster, admin: AdminClient, log_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await log_in()
    with socket.socket() as closed:  # bound, so no other program gets it; it doesn't listen
        closed.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{closed.getsockname()[1]}"
        async with gateway_to(f"{cluster.namesrv_address};{gone}", monkeypatch):
            answer = await client.post(PAGE, {"namespace": SPACE, "key": "orders", "value": "1"})
            shown = await client.get(PAGE.replace("entries", "entry"), {"namespace": SPACE, "key": "orders"})
    assert shown.status_code == 200
    assert answer.status_code == 502 and f"did not confirm it: {gone}" in text_of(answer)
    assert await admin.name_servers.get_kv(SPACE, "orders") == "1"
    value = {"before": None, "after": "1"}
    assert await noted() == [
        ("name server's KV entry set", "admin", {"key": "orders", "failed_at": gone, "value": value})
    ]


async def test_the_page_shows_how_a_shell_does_the_same(log_in: Client, admin: AdminClient) -> None:
    await admin.name_servers.put_kv(SPACE, "shell", "1")
    client = await log_in()
    new = text_of(await client.get(PAGE, {"namespace": SPACE}))
    assert f"gantry admin kv set {SPACE} orders broker-a:4 -n " in new and "curl -X PUT " in new
    one = text_of(await client.get(PAGE.replace("entries", "entry"), {"namespace": SPACE, "key": "shell"}))
    assert f"gantry admin kv set {SPACE} shell 1 -n " in one and f"gantry admin kv delete {SPACE} shell -n " in one
    assert f"'http://testserver/api/v1/cluster/kv?namespace={SPACE}&key=shell'" in one
