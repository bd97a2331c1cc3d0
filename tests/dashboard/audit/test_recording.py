"""S60: What pages and REST change stands in the audit log, in words; nothing that writes goes unseen. What a view
says of a change, as it is kept.
"""

from __future__ import annotations

import json

from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.http import HttpRequest
from django.test import AsyncClient

from dashboard.audit.chain import check
from dashboard.audit.notes import note, notes_of
from dashboard.cluster.gateway import Gateway
from dashboard.models.audit import AuditEntry
from dashboard.models.management import User
from tests.dashboard.addresses import OPEN, all_patterns, example_address
from tests.dashboard.conftest import PASSWORD, Client, Topic, api_for
from tests.harness import ServingCluster


async def entries() -> list[AuditEntry]:
    return [entry async for entry in AuditEntry.objects.order_by("number")]


async def told() -> list[tuple[str, str, str, str, str]]:
    return [(one.who, one.way, one.action, one.target, one.result) for one in await entries()]


async def test_s60_a_topics_life_on_pages(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("operator")
    fields = {"name": "audit-life", "queues": "2", "perm": "read-write", "keep_for": "", "keep_messages": ""}
    assert (await client.post("/topics/create", fields)).status_code == 302
    assert (await client.post("/topics/create", fields)).status_code == 422  # it is there: nothing was changed
    assert (await client.post("/topic/audit-life/send", {"body": "x", "delay": ""})).status_code in (200, 302, 422)
    await client.post("/topic/audit-life/settings", fields | {"queues": "3"})
    await client.post("/topic/audit-life/delete", {"typed_name": "audit-life"})
    found = [one for one in await told() if one[2] != "message sent by hand"]
    assert found == [
        ("operator", "page", "topic created", "audit-life", "done"),
        ("operator", "page", "topic changed", "audit-life", "done"),
        ("operator", "page", "topic deleted", "audit-life", "done"),
    ]
    created = (await entries())[0]
    assert json.loads(created.details)["queues"] == 2 and created.address == "127.0.0.1"


async def test_s60_rest_names_the_token(users: dict[str, User], make_topic: Topic) -> None:
    topic = await make_topic("audit-rest", queues=1)
    api = await api_for(users["operator"])
    await api.call("post", f"/topics/{topic}/messages", {"body": "secret text"})
    await api.call("delete", f"/topics/{topic}")
    found = await entries()
    assert [(one.way, one.action, one.target) for one in found] == [
        ("rest", "message sent by hand", topic), ("rest", "topic deleted", topic),
    ]  # fmt: skip
    assert all(one.who.startswith("operator (token ") for one in found)
    assert all("secret text" not in one.details for one in found)


async def test_s60_looks_and_dry_runs_change_none(
    users: dict[str, User], gateway: Gateway, cluster: ServingCluster
) -> None:
    api, broker = await api_for(users["admin"], "config"), cluster.broker.config.broker_name
    wanted = {"changes": {"fileReservedTime": "71"}, "dry_run": True}
    status, answer = await api.call("put", f"/brokers/{broker}/settings", wanted)
    assert (status, answer["is_done"], len(answer["changes"])) == (200, False, 1)
    assert (await AsyncClient().post("/preferences/theme", {"theme": "dark"})).status_code == 302
    assert (await api.call("get", "/topics"))[0] == 200
    assert await told() == []


async def test_s60_what_a_role_may_not_do_is_written_down(log_in: Client, gateway: Gateway) -> None:
    response = await (await log_in("reader")).post("/topics/create", {"name": "audit-refused"})
    assert response.status_code == 403
    assert await told() == [("reader", "page", "POST topic-create", "", "refused")]


async def test_s60_log_ins_and_passwords_leave_a_line_without_the_password(admin: User) -> None:
    client = AsyncClient()
    await client.post("/login", {"username": "admin", "password": PASSWORD})
    await client.post("/tokens", {"name": "ci", "scope": "read", "life_days": "7"})
    await client.post("/logout")
    assert [one[:3] for one in await told()] == [
        ("admin", "page", "logged in"), ("admin", "page", "token created"), ("admin", "page", "logged out"),
    ]  # fmt: skip
    assert all(PASSWORD not in one.details for one in await entries())


async def test_s60_each_address_that_a_role_may_not_write_to_leaves_a_line(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("reader")
    refused = set()
    for route, item in all_patterns():
        if item.name in OPEN or getattr(item.callback, "checks_itself", False):
            continue
        if (await client.post(example_address(route))).status_code == 403:
            refused.add(f"POST {item.name}")
    assert refused and {one[2] for one in await told() if one[4] == "refused"} == refused
    assert (await sync_to_async(check)()).broken_at is None


def test_s60_the_command_line_writes_down_what_it_changes(users: dict[str, User]) -> None:
    def run(**request: object) -> None:
        call_command("users", json.dumps(request))

    run(verb="list", json=False)
    run(verb="roles", name="operator", role="reader", json=False)
    run(verb="unlock", name="reader", address=None)
    found = [(one.way, one.action, one.target) for one in AuditEntry.objects.order_by("number")]
    assert found == [("command", "role changed", "operator"), ("command", "wrong attempts forgotten", "reader")]


async def test_s60_a_change_bears_what_was_before_and_the_id_of_its_request(log_in: Client, make_topic: Topic) -> None:
    topic = await make_topic("audit-before", queues=2)
    client = await log_in("operator")
    fields = {"queues": "3", "perm": "read-write", "keep_for": "", "keep_messages": ""}
    await client.post(f"/topic/{topic}/settings", fields, headers={"x-request-id": "deploy-17:step.4"})
    api = await api_for(await User.objects.aget(username="operator"))
    await api.call("put", f"/topics/{topic}", {"write_queues": 5})
    by_page, by_rest = [one for one in await entries() if one.action == "topic changed"]
    assert json.loads(by_page.details)["write_queues"] == {"before": 2, "after": 3}
    assert json.loads(by_rest.details)["write_queues"] == {"before": 3, "after": 5}
    assert by_page.request_id == "deploy-17:step.4" and len(by_rest.request_id) == 32
    page = (await client.get("/audit?q=deploy-17:step.4")).content.decode()
    assert "2 → 3" in page and "3 → 5" not in page
    assert (await sync_to_async(check)()).broken_at is None
    await AuditEntry.objects.filter(number=by_page.number).aupdate(request_id="another")
    assert (await sync_to_async(check)()).broken_at == by_page.number


async def test_the_audit_log_is_exported_by_rest(users: dict[str, User], make_topic: Topic) -> None:
    topic = await make_topic("audit-export", queues=1)
    api = await api_for(users["operator"])
    await api.call("delete", f"/topics/{topic}")
    answer = await AsyncClient().get("/api/v1/audit/export.jsonl?q=topic%20deleted", headers=api.headers)
    lines = [json.loads(line) for line in b"".join([part async for part in answer]).splitlines()]  # type: ignore[attr-defined]
    assert [(one["action"], one["target"], one["way"]) for one in lines] == [("topic deleted", topic, "rest")]
    table = await AsyncClient().get("/api/v1/audit/export.csv", headers=api.headers)
    assert b"topic deleted" in b"".join([part async for part in table])  # type: ignore[attr-defined]
    assert (await api.call("get", "/audit/export.xml"))[0] == 422


def test_details_lack_what_is_empty_and_the_targets_name_and_nothing_else() -> None:
    request = HttpRequest()
    note(request, "message resent", "orders", {"name": "orders", "to": "orders", "place": "", "key": None, "count": 0})
    note(request, "alert rule changed", "late", {"name": {"before": "slow", "after": "late"}})
    first, second = notes_of(request) or []
    assert first.details == {"to": "orders", "count": 0}
    assert second.details == {"name": {"before": "slow", "after": "late"}}
