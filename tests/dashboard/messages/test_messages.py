"""A topic's messages as a person looks for them, against a real broker."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from urllib.parse import urlencode

from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_lookup import FOUND_MESSAGES
from gantrymq.message.model import Message
from gantrymq.remoting.bodies import PERM_READ
from tests.dashboard.conftest import Client, Topic
from tests.harness import ServingCluster
from tests.waiting import until


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


async def test_the_box_finds_by_unique_id_and_by_offset_id(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    client = await log_in("reader")
    await make_topic("by-id", queues=1)
    await make_topic("by-id-not", queues=1)
    sent = await gateway.messages.send(Message("by-id", b"wanted", keys=["k"]))
    await gateway.messages.send(Message("by-id", b"another", keys=["k2"]))
    for name in (sent.msg_id, sent.offset_msg_id, "k"):
        page = (await client.get(f"/topic/by-id?q={name}")).content.decode()
        assert page.count('class="row"') == 1 and "wanted" in page, name
        assert 'class="row"' not in (await client.get(f"/topic/by-id-not?q={name}")).content.decode()
    page = (await client.get(f"/topic/by-id-not?q={sent.offset_msg_id}")).content.decode()
    assert "That message is in another topic" in page and "/topic/by-id/messages/" in page
    for name in ("0" * 32, sent.offset_msg_id[:-1] + "0", "k3"):
        assert "No messages with" in (await client.get(f"/topic/by-id?q={name}")).content.decode()


async def test_a_key_is_looked_for_in_the_queue_that_was_chosen(
    log_in: Client, gateway: Gateway, make_topic: Topic, cluster: ServingCluster
) -> None:
    client = await log_in("reader")
    await make_topic("by-queue", queues=2)
    for queue_id in (0, 1):
        await gateway.messages.send(Message("by-queue", b"of %d" % queue_id, keys=["k"]), queue_id=queue_id)
    name = cluster.broker.config.broker_name
    page = (await client.get(f"/topic/by-queue?q=k&queue={name}.1")).content.decode()
    assert page.count('class="row"') == 1 and "of 1" in page
    assert (await client.get("/topic/by-queue?q=k")).content.decode().count('class="row"') == 2


async def test_of_a_key_with_many_messages_the_newest_of_a_time_are_found(
    log_in: Client, gateway: Gateway, make_topic: Topic
) -> None:
    topic = await make_topic("many-of-a-key", queues=1)
    first = await gateway.messages.send(Message(topic, b"the first", keys=["many"]))
    detail = await gateway.topics.get(topic)
    [found] = (await gateway.messages.find(detail, "many", limit=64)).messages
    assert found.msg_id == first.msg_id
    later = found.store_timestamp + 3000  # the index knows whole seconds
    await until(lambda: time.time() * 1000 > later)
    for number in range(FOUND_MESSAGES + 1):
        await gateway.messages.send(Message(topic, b"later %d" % number, keys=["many"]))
    client = await log_in("reader")
    page = (await client.get(f"/topic/{topic}?q=many")).content.decode()
    assert page.count('class="row"') == 64 and "the first" not in page
    assert "The newest 64 messages with the key “many”, the maximum for a key." in page
    moment = datetime.fromtimestamp(found.store_timestamp / 1000 + 1, UTC).strftime("%Y-%m-%d %H:%M:%S")
    page = (await client.get(f"/topic/{topic}?{urlencode({'q': 'many', 'until': moment})}")).content.decode()
    assert page.count('class="row"') == 1 and "the first" in page


async def test_a_message_without_a_body_is_no_fault_of_the_broker(log_in: Client, make_topic: Topic) -> None:
    await make_topic("no-body", queues=1)
    fields = {"body": "", "delay_level": "0"}
    answer = await (await log_in("operator")).post("/topic/no-body/send", fields, headers={"hx-request": "true"})
    assert answer.status_code == 409 and "a body of at least one byte" in answer.content.decode()


async def test_a_read_only_topic_takes_no_message_and_that_is_no_fault_of_the_broker(
    log_in: Client, gateway: Gateway, make_topic: Topic
) -> None:
    await make_topic("read-only", queues=1)
    await gateway.topics.change("read-only", perm=PERM_READ)
    fields = {"body": "x", "delay_level": "0"}
    answer = await (await log_in("operator")).post("/topic/read-only/send", fields, headers={"hx-request": "true"})
    assert answer.status_code == 409 and "read-only" in answer.content.decode()
