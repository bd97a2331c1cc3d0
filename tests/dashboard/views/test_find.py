"""What Ctrl-K finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from dashboard.cluster.gateway import Gateway
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client
from tests.dashboard.group_places import placed
from tests.harness import ServingCluster

Topic = Callable[..., Awaitable[str]]


async def found(client: Any, text: str) -> list[tuple[str, str]]:
    answer = (await client.get("/find", {"q": text})).json()
    assert answer["trouble"] == ""
    return [(one["kind"], one["label"]) for one in answer["found"]]


async def test_topics_groups_pages_and_actions_by_a_part_of_their_name(
    log_in: Client, cluster: ServingCluster, gateway: Gateway, make_topic: Topic
) -> None:
    topic = await make_topic("palette-orders", queues=1)
    await placed(gateway, cluster, "mail-palette", topic, {0: 0})
    client = await log_in("admin")
    assert await found(client, "PALETTE") == [("Topic", topic), ("Group", "mail-palette")]
    assert await found(client, "invite") == [("Action", "Invite a person")]
    assert ("Page", "Security") in await found(client, "")
    for one in (await client.get("/find", {"q": ""})).json()["found"]:
        assert (await client.get(one["href"])).status_code == 200, one


async def test_a_message_by_its_offset_id(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("palette-message", queues=1)
    sent = await gateway.messages.send(Message(topic, b"this one"))
    client = await log_in("reader")
    [one] = (await client.get("/find", {"q": sent.offset_msg_id})).json()["found"]
    assert (one["kind"], one["label"]) == ("Message", f"{topic} q0 @ 0")
    assert "this one" in (await client.get(one["href"])).content.decode()


async def test_a_reader_is_offered_nothing_to_change(log_in: Client, gateway: Gateway) -> None:
    offered = await found(await log_in("reader"), "")
    assert ("Page", "Topics") in offered
    assert not {("Action", "Create a topic"), ("Action", "Invite a person"), ("Page", "People")} & set(offered)
