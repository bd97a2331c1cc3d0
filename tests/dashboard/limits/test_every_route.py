"""An account that is limited to some names, at every page, operation and stream: no other is shown or changed."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from django.http import HttpResponseBase
from django.test import AsyncClient

from dashboard.access.permissions import principal_of
from dashboard.cluster.errors import TopicNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.limits.names import NO_LIMIT, use
from dashboard.live.sampler import Sampler
from dashboard.models.audit import AuditEntry
from dashboard.models.management import User
from dashboard.status.board import Stored, board
from dashboard.status.waiting import waiting
from gantrymq.message.model import Message
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.dashboard.addresses import EXAMPLES, METHODS, guarded_patterns, rest_operations
from tests.dashboard.conftest import Client, Topic, api_for
from tests.dashboard.live.socket_client import connected

MINE, THEIRS = "limited-mine", "foreign-theirs"
PREFIX, CANARY = "limited-", "foreign-"
SHOWN = {
    "topic", "topic-queues", "topic-groups", "topic-charts", "topic-producers", "topic-settings", "topic-delete",
    "group", "group-reset",
}  # fmt: skip


@pytest_asyncio.fixture(loop_scope="session")
async def names(gateway: Gateway, make_topic: Topic) -> AsyncIterator[str]:
    """Topics and groups of both, both groups reading the own topic; the id of the foreign topic's message."""
    places = []
    for name in (MINE, THEIRS):
        await make_topic(name, queues=1)
        sent = await gateway.messages.send(Message(name, f"of {name}".encode(), keys=f"key-{name}"))
        places.append(sent.offset_msg_id)
    admin = await gateway.calls.admin()
    [broker] = (await gateway.calls.cluster()).brokers
    for group in (MINE, THEIRS):
        await admin.groups.create_at(broker.address, SubscriptionGroupConfig(group_name=group))
        await admin.calls.update_consumer_offset(broker.address, group, MINE, 0, 0)
    await Sampler(gateway).sample()
    yield places[1]
    use(NO_LIMIT)
    for name in (MINE, THEIRS):
        await gateway.topics.delete(name)
        await admin.groups.delete(name)


async def limit(role: str = "operator") -> User:
    await User.objects.filter(username=role).aupdate(name_prefixes=PREFIX)
    return await User.objects.aget(username=role)


async def text_of(response: HttpResponseBase) -> str:
    if not response.streaming:
        return response.content.decode(errors="replace")  # type: ignore[attr-defined]
    if response.headers["Content-Type"] == "text/event-stream":  # it has no end
        response.close()
        return ""
    parts = [part async for part in response]  # type: ignore[attr-defined]
    use(NO_LIMIT)
    return b"".join(parts).decode(errors="replace")


async def test_no_page_shows_or_takes_another_name(log_in: Client, names: str, gateway: Gateway) -> None:
    client = await log_in("operator")
    await limit()
    for name, address in guarded_patterns().items():
        if name == "logout":
            continue
        is_named = EXAMPLES["name"] in address
        for method in METHODS:
            for wanted in (THEIRS, MINE) if is_named else ("",):
                if wanted == MINE and method != "get":
                    continue  # what may be done to one's own is the roles' matter
                there = address.replace(EXAMPLES["name"], wanted)
                response = await getattr(client, method)(there)
                shown = await text_of(response)
                assert response.status_code < 500, (method, there)
                assert CANARY not in shown.replace(there, ""), (method, there)  # but for the address that was asked
                if wanted == MINE and name in SHOWN:
                    assert response.status_code == 200 and MINE in shown, there
                if wanted == THEIRS:
                    assert response.status_code == 403, (method, there)
    for address in ("/", "/audit", "/alerts", "/reports/", "/metrics"):
        response = await client.get(address)
        assert response.status_code == (302 if address == "/" else 403), address
    detail = await gateway.topics.get(THEIRS)
    assert detail.put_total == 1


async def test_the_menu_counts_and_error_pages_lead_to_what_it_may_see(log_in: Client, names: str) -> None:
    client = await log_in("operator")
    user = await limit()
    assert board.snapshot is not None
    letters = ((MINE, 2), (THEIRS, 40))
    board.snapshot = replace(board.snapshot, stored=Stored(9, 1, board.snapshot.at, dead_letters=letters))
    assert waiting(board, principal_of(user).names)["dead-letters"] == 2 and waiting(board)["dead-letters"] == 42
    refused = (await client.get("/brokers")).content.decode()
    assert re.findall(r'data-waiting="dead-letters"[^>]*>(\d+)<', refused) == ["2"]
    assert '<p><a href="/topics">Topics</a></p>' in refused and 'href="/">Overview' not in refused


async def test_lists_have_its_own_names_only(log_in: Client, names: str) -> None:
    client = await log_in("operator")
    everything = {address: (await client.get(address)).content.decode() for address in ("/topics", "/groups")}
    again = {"hx-request": "true", "hx-target": "group-list"}  # what tabs ask for is drawn once for all that see it
    assert THEIRS in (await client.get("/groups", headers=again)).content.decode()
    await limit()
    assert CANARY not in (await client.get("/groups", headers=again)).content.decode()
    for address, shown in everything.items():
        assert MINE in shown and THEIRS in shown, address
        own = (await client.get(address)).content.decode()
        assert MINE in own and CANARY not in own, address
    for found in (
        "/topics?q=theirs",
        "/topics/export.csv",
        f"/topic/{MINE}/groups",
        f"/topic/{MINE}?q={names}",
        f"/messages/{names}",
    ):
        assert CANARY not in await text_of(await client.get(found)), found


async def test_no_rest_operation_shows_or_takes_another_name(log_in: Client, names: str, gateway: Gateway) -> None:
    await log_in()
    api = await api_for(await limit(), "config")
    for method, address in sorted(rest_operations()):
        is_named = re.match(r"/(topics|groups|dead-letters)/no-such", address)
        there = address.replace("no-such", THEIRS) if is_named else address
        status, answer = await api.call(method, there, None if method in ("get", "delete") else {})
        assert status < 500, (method, there)
        if is_named:
            assert status == 403, (method, there)
        assert CANARY not in json.dumps(answer), (method, there)
    _, topics = await api.call("get", "/topics")
    _, groups = await api.call("get", "/groups")
    assert [row["name"] for row in topics["items"]] == [MINE] and topics["total"] == 1
    assert [row["name"] for row in groups["items"]] == [MINE]
    assert (await api.call("get", f"/topics/{MINE}"))[0] == 200
    assert (await api.call("get", "/live"))[0] == (await api.call("get", f"/live?topic={THEIRS}"))[0] == 403
    assert (await api.call("get", f"/live?topic={MINE}"))[0] == 200
    use(NO_LIMIT)


async def test_names_in_bodies_are_looked_at_too(log_in: Client, names: str, gateway: Gateway) -> None:
    client = await log_in("operator")
    api = await api_for(await limit())
    fields = {"name": f"{CANARY}new", "queues": "2", "perm": "read-write", "keep_for": "", "keep_messages": ""}
    assert (await client.post("/topics/create", fields)).status_code == 403
    assert (await api.call("post", "/topics", {"name": f"{CANARY}new", "write_queues": 2}))[0] == 403
    copied = {"topics": [MINE], "to": "copy", "source": THEIRS}
    assert (await api.call("post", f"/groups/{MINE}/reset", copied))[0] in (403, 422)
    assert (await api.call("post", f"/groups/{MINE}/reset", {"topics": [THEIRS], "to": "end"}))[0] in (403, 422)
    with pytest.raises(TopicNotFound):
        await gateway.topics.get(f"{CANARY}new")
    assert not [one async for one in AuditEntry.objects.filter(result="done")]


async def test_the_live_socket_carries_its_own_topics_only(log_in: Client, names: str) -> None:
    client = await log_in("operator")
    await limit()
    async with connected(client) as socket:
        for channel in ("overview", f"topic:{THEIRS}"):
            await socket.send_to(json.dumps({"subscribe": [channel]}))
            assert json.loads(await socket.receive_from()) == {"channel": channel, "error": "not allowed"}
        await socket.send_to(json.dumps({"subscribe": [f"topic:{MINE}"]}))
        told: dict[str, Any] = json.loads(await socket.receive_from())
        assert told["frames"][0]["channel"] == f"topic:{MINE}" and MINE in told["frames"][0]["rows"][0]


async def test_administrators_set_the_limit_by_page_and_rest(log_in: Client) -> None:
    client = await log_in("admin")
    ada = await User.objects.aget(username="operator")
    page = f"/users/{ada.pk}"
    assert (await client.post(page, {"do": "prefixes", "prefixes": "a*"})).status_code == 422
    assert (await client.post(page, {"do": "prefixes", "prefixes": "orders-, billing-"})).status_code == 302
    assert (await User.objects.aget(pk=ada.pk)).prefixes == ("billing-", "orders-")
    assert "Operator of billing-, orders-" in (await client.get(page)).content.decode()
    refused = await client.post(page, {"do": "role", "role": "admin"})
    assert refused.status_code == 422 and "limited to some names" in refused.content.decode()
    api = await api_for(await User.objects.aget(username="admin"), "admin")
    status, told = await api.call("put", "/users/operator", {"prefixes": ["orders-"]})
    assert (status, told["prefixes"]) == (200, ["orders-"])
    assert (await api.call("put", "/users/operator", {"prefixes": ["a b"]}))[0] == 422
    status, told = await api.call("put", "/users/operator", {"prefixes": [], "role": "admin"})
    assert (status, told["prefixes"], told["role"]) == (200, [], "admin")
    actions = [one.action async for one in AuditEntry.objects.order_by("number")]
    assert actions == ["names limited", "names limited", "limit of names removed", "role changed"]


async def test_an_invitation_carries_the_limit(log_in: Client) -> None:
    client = await log_in("admin")
    asked = await client.post("/users", {"label": "Bo", "role": "reader", "prefixes": "orders-"})
    found = re.search(
        r'data-copy-text="[^"]*token=([\w-]+)"', (await client.get(asked.headers["Location"])).content.decode()
    )
    assert found is not None
    given = {"token": found[1], "username": "bo", "password": "a long way from 1234", "again": "a long way from 1234"}
    assert (await AsyncClient().post("/invitation", given)).status_code == 302
    assert (await User.objects.aget(username="bo")).prefixes == ("orders-",)
