"""What Ctrl-K finds."""

from __future__ import annotations

from typing import Any

from dashboard.clients.listing import client_book
from dashboard.cluster.gateway import Gateway
from gantrymq import Producer
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic
from tests.dashboard.group_places import placed
from tests.harness import ServingCluster
from tests.waiting import until


async def found(client: Any, text: str) -> list[tuple[str, str]]:
    answer = (await client.get("/find", {"q": text})).json()
    assert answer["trouble"] == ""
    return [(one["kind"], one["label"]) for one in answer["found"]]


async def test_topics_groups_pages_and_actions_by_a_part(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("palette-orders", queues=1)
    await placed(gateway, "mail-palette", topic, {0: 0})
    client = await log_in("admin")
    assert await found(client, "PALETTE") == [("Topic", topic), ("Group", "mail-palette")]
    assert await found(client, "invite") == [("Action", "Invite a user")]
    assert {("Page", "Security"), ("Page", "Broker accounts")} <= set(await found(client, ""))
    for one in (await client.get("/find", {"q": ""})).json()["found"]:
        assert (await client.get(one["href"])).status_code == 200, one


async def test_a_message_by_its_offset_id(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("palette-message", queues=1)
    sent = await gateway.messages.send(Message(topic, b"this one"))
    client = await log_in("reader")
    [one] = (await client.get("/find", {"q": sent.offset_msg_id})).json()["found"]
    assert (one["kind"], one["label"]) == ("Message", f"{topic} q0 @ 0")
    assert "this one" in (await client.get(one["href"])).content.decode()


async def test_clients_brokers_and_reports_are_met(log_in: Client, cluster: ServingCluster, make_topic: Topic) -> None:
    topic = await make_topic("palette-senders", queues=1)
    client = await log_in("reader")
    assert ("Report", "Produce latency") in await found(client, "latency")
    [broker] = [label for kind, label in await found(client, "broker-a") if kind == "Broker"]
    assert ("Broker", broker) in await found(client, broker.split()[1]), "by its address"
    async with Producer(cluster.namesrv_address, group="palette-makers") as producer:
        await producer.send(Message(topic, b"here I am"))  # brokers know who has sent

        async def is_found() -> bool:
            client_book.forget()
            return ("Client", producer.client_id) in await found(client, producer.client_id)

        await until(is_found)


async def test_an_id_or_key_leads_to_the_box_for_it(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("palette-keys", queues=1, messages=[Message("palette-keys", b"paid", keys=["order-17"])])
    client = await log_in("reader")
    await gateway.topics.with_metrics((await gateway.topics.list()).rows)

    async def offered() -> bool:
        answer = (await client.get("/find", {"q": "order-17"})).json()["found"]
        return any(one["label"] == f"order-17 in {topic}" for one in answer)

    await until(offered)
    one = next(one for one in (await client.get("/find", {"q": "order-17"})).json()["found"] if topic in one["label"])
    assert one["kind"] == "Key" and "paid" in (await client.get(one["href"])).content.decode()


async def test_a_reader_is_offered_nothing_to_change(log_in: Client, gateway: Gateway) -> None:
    offered = await found(await log_in("reader"), "")
    assert ("Page", "Topics") in offered
    assert not {("Action", "Create a topic"), ("Action", "Invite a user"), ("Page", "People")} & set(offered)
