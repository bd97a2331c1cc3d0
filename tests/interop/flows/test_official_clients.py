"""The official Java client and ali-ons from npm, as they are: each gets what the other sent, by tags and in order."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from tests.interop.checks import check_contents, check_order, check_places, tag_of
from tests.interop.clients import Client, ClientProgram, JavaClient, JavaScriptClient

COUNT = 2_000
QUEUES = 4


def _new_topic(cluster: Peer, name: str) -> str:
    topic = f"Interop-{name}-{time.monotonic_ns()}"
    rpc.create_topic(cluster.broker_address, topic, QUEUES)
    return topic


def _produce(cluster: Peer, client: Client, topic: str) -> ClientProgram:
    """Send COUNT messages and check what the answers say."""
    start = time.monotonic()
    with client.produce(cluster.namesrv_address, topic, COUNT) as producer:
        producer.wait_done()
    sent = producer.sent()
    assert [message.number for message in sent] == list(range(COUNT))
    assert sorted((message.queue_id, message.queue_offset) for message in sent) == [
        (queue_id, offset) for queue_id in range(QUEUES) for offset in range(COUNT // QUEUES)
    ]
    print(
        f"{client.version} sent {COUNT} messages in {time.monotonic() - start:.1f} s, {producer.count('RETRY')} retries"
    )
    return producer


@pytest.mark.parametrize("sender", ["java", "javascript"])
def test_thousands_of_messages_reach_both_clients_with_tags_and_keys_in_order(
    cluster: Peer, java: JavaClient, javascript: JavaScriptClient, sender: str
) -> None:
    client: Client = java if sender == "java" else javascript
    topic = _new_topic(cluster, f"each-way-{sender}")
    with ExitStack() as stack:
        consumers = {
            receiver.name: stack.enter_context(
                receiver.consume(cluster.namesrv_address, topic, f"{topic}-{receiver.name}", orderly=True)
            )
            for receiver in (java, javascript)
        }
        filtered = {
            receiver.name: stack.enter_context(
                receiver.consume(cluster.namesrv_address, topic, f"{topic}-{receiver.name}-tags", "TagA || TagC")
            )
            for receiver in (java, javascript)
        }
        for consumer in (*consumers.values(), *filtered.values()):
            consumer.wait_started()
        sent = _produce(cluster, client, topic).sent()
        for name, consumer in consumers.items():
            consumer.wait_for(lambda consumer=consumer: consumer.count("GOT") >= COUNT, f"{COUNT} messages")
            messages = consumer.got()
            assert sorted(message.number for message in messages) == list(range(COUNT))
            check_contents(messages)
            check_places(sent, messages)
            check_order(messages)
            print(f"{name} consumer: {len(messages)} messages from {sender}, all in order, none twice")
        wanted = [number for number in range(COUNT) if tag_of(number) in ("TagA", "TagC")]
        for name, consumer in filtered.items():
            consumer.wait_for(lambda consumer=consumer: consumer.count("GOT") >= len(wanted), "filtered messages")
            messages = consumer.got()
            assert sorted(message.number for message in messages) == wanted
            check_contents(messages)
            print(f"{name} consumer with 'TagA || TagC': {len(messages)} of {COUNT} messages")
