"""A topic's messages as a person looks for them, against a real broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dashboard.cluster.gateway import Gateway
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client
from tests.harness import ServingCluster

Topic = Callable[..., Awaitable[str]]


async def test_looking_at_messages_is_not_counted_as_consuming(
    log_in: Client, gateway: Gateway, make_topic: Topic, cluster: ServingCluster
) -> None:
    client = await log_in("reader")
    await make_topic("looked-at", queues=1, messages=[Message("looked-at", b"seen")])
    [broker] = (await gateway.brokers.list()).brokers
    before = (await gateway.brokers.runtime_info(broker))["msgGetTotalTodayNow"]
    name = cluster.broker.config.broker_name
    for address in ("/topic/looked-at", f"/topic/looked-at/messages/{name}.0.0"):
        assert "seen" in (await client.get(address)).content.decode()
    assert (await gateway.brokers.runtime_info(broker))["msgGetTotalTodayNow"] == before
