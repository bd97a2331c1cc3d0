"""The broker goes away in the middle of a load and comes back: nothing that was acknowledged is lost."""

from __future__ import annotations

import time

from appliance.bench import rpc
from appliance.bench.peer import Peer
from tests.interop.checks import check_contents, repeated
from tests.interop.clients import Client, JavaClient, JavaScriptClient

COUNT = 3_000
RATE = 500
QUEUES = 4
TOPIC = "Interop-restart"


def _restart_in_the_middle(cluster: Peer, client: Client, *, kill: bool) -> None:
    rpc.create_topic(cluster.broker_address, TOPIC, QUEUES)
    with (
        client.consume(cluster.namesrv_address, TOPIC, f"{TOPIC}-group") as consumer,
        client.produce(cluster.namesrv_address, TOPIC, COUNT, RATE) as producer,
    ):
        consumer.wait_started()
        producer.wait_for(lambda: producer.count("ACK") >= COUNT // 3, "a third of the messages")
        start = time.monotonic()
        if kill:
            cluster.kill_broker()
        else:
            cluster.stop_broker()
        before = producer.count("ACK")
        cluster.start_broker()
        away_s = time.monotonic() - start
        producer.wait_done()
        sent = producer.sent()
        assert before < COUNT
        assert [message.number for message in sent] == list(range(COUNT))
        consumer.wait_for(lambda: len({line[0] for line in consumer.lines("GOT")}) >= COUNT, "every message")
        messages = consumer.got()
        assert {message.number for message in messages} == set(range(COUNT))
        places = {(message.number, message.queue_id, message.queue_offset) for message in messages}
        assert places >= {(message.number, message.queue_id, message.queue_offset) for message in sent}
        check_contents(messages)
        print(
            f"{client.version}: broker {'killed' if kill else 'stopped'} after {before} messages, away {away_s:.1f} s; "
            f"{COUNT} acknowledged, {producer.count('RETRY')} sends repeated, none lost, "
            f"{repeated(messages)} consumed more than once"
        )


def test_java_loses_nothing_when_the_broker_is_killed(own_cluster: Peer, java: JavaClient) -> None:
    _restart_in_the_middle(own_cluster, java, kill=True)


def test_javascript_loses_nothing_when_the_broker_restarts(own_cluster: Peer, javascript: JavaScriptClient) -> None:
    _restart_in_the_middle(own_cluster, javascript, kill=False)
