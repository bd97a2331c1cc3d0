"""Pausing and deleting a group, on its page and over REST."""

from __future__ import annotations

import json

import pytest

from dashboard.cluster.errors import GroupNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.models.audit import AuditEntry
from dashboard.models.management import User
from gantrymq.message.model import Message
from gantrymq.message.topics import dlq_topic
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.dashboard.conftest import Client, Topic, api_for
from tests.dashboard.dead_letters.dead import OUT_OF_STOCK, give_up
from tests.dashboard.groups.group_members import consuming, group_that


async def made(gateway: Gateway, name: str) -> str:
    await (await gateway.calls.admin()).groups.create(SubscriptionGroupConfig(name, retry_max_times=3))
    return name


async def test_a_paused_group_gets_nothing_and_keeps_its_settings(log_in: Client, gateway: Gateway) -> None:
    group, client = await made(gateway, "paused"), await log_in("operator")
    assert (await client.post(f"/group/{group}/consuming", {"is_on": "false"})).status_code == 302
    [settings] = (await gateway.groups.get(group)).settings
    assert (settings.consume_enable, settings.retry_max_times) == (False, 3)
    page = (await client.get(f"/group/{group}")).content.decode()
    assert "Resume" in page and "receives nothing" in page
    api = await api_for(await User.objects.aget(username="operator"))
    on = {"is_on": True}
    assert await api.call("put", f"/groups/{group}/consuming", on) == (200, on | {"brokers": ["broker-a"]})
    assert await api.call("put", f"/groups/{group}/consuming", on) == (200, on | {"brokers": []})
    [settings] = (await gateway.groups.get(group)).settings
    assert (settings.consume_enable, settings.retry_max_times) == (True, 3)
    actions = [entry.action async for entry in AuditEntry.objects.order_by("number")]
    assert actions == ["group paused", "group resumed"]


async def test_a_group_pops_or_pulls_as_page_and_rest_say(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("mode-topic")
    group, client = await made(gateway, "pops"), await log_in("operator")
    api = await api_for(await User.objects.aget(username="operator"))
    pops = {"topic": topic, "mode": "POP"}
    assert await api.call("put", f"/groups/{group}/mode", pops) == (200, pops | {"brokers": ["broker-a"]})
    page = (await client.get(f"/group/{group}/mode")).content.decode()
    assert f"gantry admin groups mode {group} {topic} PULL" in page and "-X PUT" in page
    assert (await client.post(f"/group/{group}/mode", {"topic": "none-such", "mode": "PULL"})).status_code == 422
    assert (await gateway.groups.get(group)).modes == {topic: "POP"}
    assert (await client.post(f"/group/{group}/mode", {"topic": topic, "mode": "PULL"})).status_code == 302
    assert (await gateway.groups.get(group)).modes == {topic: "PULL"}
    assert (await api.call("put", f"/groups/{group}/mode", {"topic": "none-such", "mode": "POP"}))[0] == 404
    assert (await api.call("put", f"/groups/{group}/mode", {"topic": topic, "mode": "push"}))[0] == 422
    entries = [
        (entry.action, json.loads(entry.details)["mode"]) async for entry in AuditEntry.objects.order_by("number")
    ]
    assert entries == [("consume mode changed", "POP"), ("consume mode changed", "PULL")]


async def test_deleting_says_what_is_lost_and_asks_a_name(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("deleted-with", messages=[Message("deleted-with", b"x")])
    await give_up(gateway, topic, "to-delete", [OUT_OF_STOCK])
    client = await log_in("operator")
    page = (await client.get("/group/to-delete/delete")).content.decode()
    assert "1 dead letter" in page and "gantry admin groups delete to-delete" in page and "-X DELETE" in page
    assert (await client.post("/group/to-delete/delete", {"typed_name": "another"})).status_code == 422
    assert (await gateway.groups.get("to-delete")).name == "to-delete"
    assert (await client.post("/group/to-delete/delete", {"typed_name": "to-delete"})).status_code == 302
    with pytest.raises(GroupNotFound):
        await gateway.groups.get("to-delete")
    assert dlq_topic("to-delete") not in {row.name for row in (await gateway.topics.list()).rows}


async def test_a_group_that_gave_nothing_up_loses_no_dead_letters(log_in: Client, gateway: Gateway) -> None:
    group, client = await made(gateway, "gave-nothing-up"), await log_in("operator")
    assert "it has no dead letters" in (await client.get(f"/group/{group}/delete")).content.decode()


async def test_a_group_with_members_is_not_deleted(users: dict[str, User], gateway: Gateway, make_topic: Topic) -> None:
    topic, api = await make_topic("deleted-while"), await api_for(users["operator"])
    async with consuming(gateway, "still-here", topic):
        await group_that(gateway, "still-here", lambda seen: seen.clients)
        status, told = await api.call("delete", "/groups/still-here")
        assert (status, "1 members are connected" in told["detail"]) == (409, True)
    assert (await api.call("delete", "/groups/TOOLS_CONSUMER"))[0] == 409
    assert (await api.call("delete", "/groups/none-of-this-name"))[0] == 404
