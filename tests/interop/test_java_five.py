"""The Java remoting client of RocketMQ 5 with our broker: people move their clients first."""

from __future__ import annotations

import time

import pytest

from appliance.bench import wire
from appliance.bench.maven import ToolError
from appliance.bench.peer import Peer
from tests.conftest import missing, require_tool
from tests.interop.clients import JAVA_SOURCES, ClientProgram, JavaClient
from tests.interop.mqadmin_session import HERE, TOOLS_FIVE

pytestmark = [pytest.mark.interop, pytest.mark.slow]

COUNT, QUEUES = 60, 3
PROGRAMS = (
    *(JAVA_SOURCES / f"{name}.java" for name in ("Consume", "Lines", "Produce", "Run")),
    HERE / "java_tools" / "LitePull.java",
)


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> JavaClient:
    for name in ("java", "javac", "mvn"):
        require_tool(name, "it runs RocketMQ 5's Java client")
    try:
        return JavaClient(tmp_path_factory.mktemp("java-five"), pom=TOOLS_FIVE, programs=PROGRAMS)
    except ToolError as exc:
        missing("RocketMQ 5's Java client", str(exc))
        raise


def new_topic(cluster: Peer, what: str) -> str:
    topic = f"Interop-five-{what}-{time.monotonic_ns()}"
    wire.create_topic(cluster.broker_address, topic, QUEUES)
    return topic


def assert_same(producer: ClientProgram, consumer: ClientProgram) -> None:
    """Every message came once, where the producer was told that it is, and as it was sent."""
    sent = {(one.number, one.queue_id, one.queue_offset, one.unique_id) for one in producer.sent()}
    got = [(one.number, one.queue_id, one.queue_offset, one.message_id) for one in consumer.got()]
    assert len(sent) == COUNT
    assert sorted(got) == sorted(sent)
    assert {(one.keys, one.body) for one in consumer.got()} == {
        (f"key-{number}", f"body-{number}-ä消息") for number in range(COUNT)
    }


@pytest.mark.parametrize("encoding", ["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("kind", ["concurrently", "orderly"])
def test_it_sends_and_a_push_consumer_gets(cluster: Peer, five: JavaClient, encoding: str, kind: str) -> None:
    topic = new_topic(cluster, kind)
    where = (cluster.namesrv_address, topic)
    with five.run("Consume", *where, f"{topic}-group", "*", kind, encoding=encoding) as consumer:
        consumer.wait_started()
        with five.run("Produce", *where, f"{topic}-producer", COUNT, 0, encoding=encoding) as producer:
            producer.wait_done(60)
        consumer.wait_for(lambda: consumer.count("GOT") >= COUNT, 60, "every message")
        assert_same(producer, consumer)


def test_a_lite_pull_consumer_gets_what_the_old_client_sent_and_commits(
    cluster: Peer, five: JavaClient, java: JavaClient
) -> None:
    topic = new_topic(cluster, "lite")
    with java.produce(cluster.namesrv_address, topic, COUNT) as producer:
        producer.wait_done(60)
    with five.run("LitePull", cluster.namesrv_address, topic, f"{topic}-group", COUNT) as consumer:
        consumer.wait_done(60)
    assert_same(producer, consumer)
    with five.run("LitePull", cluster.namesrv_address, topic, f"{topic}-group", COUNT) as again:
        again.wait_started()
        with java.produce(cluster.namesrv_address, topic, COUNT) as more:
            more.wait_done(60)
        again.wait_done(60)
    assert {one.queue_offset for one in again.got()} == {one.queue_offset for one in more.sent()}
