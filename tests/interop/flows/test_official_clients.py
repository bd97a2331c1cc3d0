"""The official Java client and ali-ons from npm, as they are: send, consume, filter, share."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from tests.interop.checks import check_contents, check_order, check_places, tag_of
from tests.interop.clients import Client, ClientProgram, JavaClient, JavaScriptClient
from tests.suite.long_runs import in_all

COUNT = in_all(2_000, long=10_000)
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


def _share_fairly(first: ClientProgram, second: ClientProgram) -> bool:
    """Each holds half of the queues, together all. Queues are taken one by one: halves alone may be a passing state."""
    one, other = first.queues(), second.queues()
    return len(one) == len(other) == QUEUES // 2 and one | other == set(range(QUEUES))


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


@pytest.mark.parametrize("pair", [("java", "java"), ("java", "javascript"), ("javascript", "javascript")], ids="+".join)
def test_two_consumers_of_a_group_share_thousands_of_messages(
    cluster: Peer, java: JavaClient, javascript: JavaScriptClient, pair: tuple[str, str]
) -> None:
    clients: dict[str, Client] = {"java": java, "javascript": javascript}
    topic = _new_topic(cluster, "-".join(("share", *pair)))
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(clients[name].consume(cluster.namesrv_address, topic, f"{topic}-group"))
            for name in pair
        )
        second.wait_for(lambda: _share_fairly(first, second), "fair share of the queues")
        _produce(cluster, java, topic)
        second.wait_for(lambda: first.count("GOT") + second.count("GOT") >= COUNT, f"{COUNT} messages in sum")
        time.sleep(0.5)  # what would come twice has time to come
        one, other = ({message.number for message in consumer.got()} for consumer in (first, second))
        assert not one & other
        assert one | other == set(range(COUNT))
        assert first.count("GOT") + second.count("GOT") == COUNT
        print(f"{pair[0]} took {len(one)} messages, {pair[1]} {len(other)}: disjoint and complete")
