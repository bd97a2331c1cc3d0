"""The dashboard beside a cluster of Apache RocketMQ 4.9: all pages and operations, and what that cluster lacks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from django.http import HttpResponseBase

from appliance.bench import rpc
from dashboard.cluster.gateway import Gateway
from dashboard.live.sampler import Sampler
from dashboard.models.management import User
from dashboard.models.reports import ReportRun
from gantrymq import ConsumeFrom, ConsumeResult, Message, MessageExt, MessageQueue, Producer, PushConsumer
from tests.dashboard.addresses import EXAMPLES, guarded_patterns, rest_operations
from tests.dashboard.conftest import Client, api_for, gateway_to
from tests.peers import ApachePeer
from tests.peers.dispatch import until_dispatched
from tests.peers.fixtures import apache_peer  # noqa: F401 (a fixture)
from tests.waiting import WITHIN_S, until

TOPIC, GROUP = "orders", "billing"
MESSAGES = 12
OF_GROUPS = ("group", "dead-letters", "resend")  # beginnings of names of pages whose address has a group
SHOWN = {
    "overview", "topics", "topic", "topic-queues", "topic-groups", "topic-charts", "topic-producers",
    "topic-settings", "topic-message", "topic-search",
    "groups", "group", "group-reset", "clients", "dead-letters", "alerts", "broker-config",
    "broker-succession", "audit", "security", "accounts",
}  # fmt: skip


@pytest_asyncio.fixture(loop_scope="session")
async def attached(
    apache_peer: ApachePeer,  # noqa: F811
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Gateway]:
    """The gateway to Apache's cluster, which has a topic with messages and a group that has read them."""
    settings.APPLIANCE = replace(settings.APPLIANCE, attach=apache_peer.namesrv_address)
    await until(lambda: apache_peer.broker_name in rpc.registered_brokers(apache_peer.namesrv_address))
    async with gateway_to(apache_peer.namesrv_address, monkeypatch) as gateway:
        if TOPIC not in [row.name for row in (await gateway.topics.list()).rows]:
            await gateway.topics.create(TOPIC, queues=1)
            await _fill_and_read(apache_peer)
        await Sampler(gateway).sample()
        yield gateway


async def _fill_and_read(peer: ApachePeer) -> None:
    got: set[bytes] = set()

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        got.update(message.body for message in messages)
        return ConsumeResult.SUCCESS

    async with Producer(peer.namesrv_address, delivery_timeout_s=WITHIN_S) as producer:
        for number in range(MESSAGES):
            message = Message(TOPIC, f"order {number}".encode(), keys=f"key-{number}")
            await producer.send(message, queue=MessageQueue(TOPIC, peer.broker_name, 0))
    await until_dispatched(peer)
    consumer = PushConsumer(peer.namesrv_address, group=GROUP, listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET)
    consumer.subscribe(TOPIC)
    async with consumer:
        await until(lambda: len(got) == MESSAGES)


async def test_every_page_is_shown(log_in: Client, attached: Gateway, apache_peer: ApachePeer) -> None:  # noqa: F811
    client = await log_in("admin")
    seen: dict[str, str] = {}
    for name, address in guarded_patterns().items():
        if name == "logout":
            continue
        own = GROUP if name.startswith(OF_GROUPS) else apache_peer.broker_name if name.startswith("broker") else TOPIC
        place = f"{apache_peer.broker_name}.0.0"
        there = address.replace(EXAMPLES["name"], own).replace(EXAMPLES["place"], place)
        response = await client.get(there)
        assert response.status_code < 500, there
        if name in SHOWN:
            assert response.status_code == 200, there
            seen[name] = response.content.decode()
    assert "1 of 1" in seen["overview"]
    assert TOPIC in seen["topics"] and GROUP in seen["groups"]
    assert "order 0" in seen["topic-message"]
    assert "no slave" in seen["broker-succession"] and "no master answers" not in seen["broker-succession"]
    assert "has no access control" in seen["accounts"]
    assert "aclEnable=true" in seen["security"] and "Clients need no account" not in seen["security"]


async def test_what_there_is_no_store_for_says_so(log_in: Client, attached: Gateway) -> None:
    client = await log_in("admin")
    assert "Not available for this cluster" in (await client.get("/reports/")).content.decode()
    await client.post("/reports/run", {"report": "traffic", "days": "1"})
    api = await api_for(await User.objects.aget(username="admin"), "config")
    status, told = await api.call("post", "/reports/runs", {"report": "traffic", "days": 1})
    assert (status, told["detail"][:7]) == (409, "Reports")
    assert not await ReportRun.objects.aexists()


async def test_every_operation_answers(log_in: Client, attached: Gateway) -> None:
    await log_in("admin")
    api = await api_for(await User.objects.aget(username="admin"), "config")
    for method, address in sorted(rest_operations()):
        if method == "get" and address != "/live":
            status, _ = await api.call(method, address.replace("/topics/no-such", f"/topics/{TOPIC}"))
            assert status < 500, address
    [broker] = (await api.call("get", "/brokers"))[1]["items"]
    status, told = await api.call("get", f"/brokers/{broker['name']}/failover")
    assert status == 409 and "has no automatic failover" in told["detail"], told
    status, told = await api.call("get", f"/topics/{TOPIC}")
    assert (status, told["name"]) == (200, TOPIC)
    status, told = await api.call("get", f"/groups/{GROUP}")
    assert (status, told["lag"]) == (200, 0), told


async def test_topics_messages_and_groups_are_changed_there(log_in: Client, attached: Gateway) -> None:
    client = await log_in("operator")
    made = await client.post("/topics/create", {"name": "from-here", "queues": "2", "perm": "read-write"})
    assert made.status_code == 302, await _text(made)
    api = await api_for(await User.objects.aget(username="operator"), "config")
    status, told = await api.call("post", "/topics/from-here/messages", {"body": "hello"})
    assert status == 201, told
    status, told = await api.call("delete", "/topics/from-here?confirm=from-here")
    assert status < 300, json.dumps(told)
    assert "from-here" not in [row.name for row in (await attached.topics.list()).rows]


async def test_a_topic_is_told_to_have_no_retention_of_its_own_there(log_in: Client, attached: Gateway) -> None:
    await log_in("operator")
    api = await api_for(await User.objects.aget(username="operator"), "config")
    status, told = await api.call("post", "/topics", {"name": "kept-here", "retention_ms": 3_600_000})
    assert 400 <= status < 600 and "RocketMQ 4.9" in told["detail"], told
    status, told = await api.call("put", "/topics/kept-here", {"retention_ms": 7_200_000})
    assert 400 <= status < 600 and "RocketMQ 4.9" in told["detail"], told
    status, _ = await api.call("put", "/topics/kept-here", {"write_queues": 2})
    assert status == 200
    await api.call("delete", "/topics/kept-here?confirm=kept-here")


async def _text(response: HttpResponseBase) -> str:
    return response.content.decode()  # type: ignore[attr-defined,no-any-return]
