"""The Java remoting client of RocketMQ 5 with our broker: people move their clients first."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.maven import rocketmqs
from appliance.bench.peer import Peer
from tests.interop.broker_cluster import PEER, BrokerCluster
from tests.interop.clients import JAVA_SOURCES, ClientProgram, JavaClient
from tests.interop.java_flows import WITHOUT_REQUESTS, assert_flows_work, make_client
from tests.interop.mqadmin.session import HERE, TOOLS_FIVE

pytestmark = pytest.mark.slow

COUNT, QUEUES = 60, 3
PROGRAMS = (
    *(JAVA_SOURCES / f"{name}.java" for name in ("Lines", "Patience", "Run")),
    HERE / "java_tools" / "LitePull.java",
)
# Lite pull asks with code 361, which Apache's 4.9 does not know.
WITHOUT_ON_APACHE = ("lite-assign", "lite-subscribe") if PEER == "apache" else ()
CASES = [
    # client, encoding, TLS and accounts, brokers, compression, flows that are left out
    pytest.param("5.3.3", "JSON", False, 1, "ZSTD", WITHOUT_REQUESTS, id="5.3.3"),
    pytest.param("5.4.0", "ROCKETMQ", False, 2, "ZLIB", (), id="5.4.0, ROCKETMQ, two brokers"),
    pytest.param("5.4.0", "JSON", True, 2, "LZ4", (), id="5.4.0, TLS, accounts, two brokers"),
]


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> JavaClient:
    return make_client(tmp_path_factory.mktemp("java-five"), TOOLS_FIVE, PROGRAMS)


@pytest.mark.parametrize(("version", "encoding", "is_guarded", "brokers", "compression", "without"), CASES)
def test_every_flow_of_a_client_of_5_works(
    tmp_path: Path,
    version: str,
    encoding: str,
    is_guarded: bool,
    brokers: int,
    compression: str,
    without: tuple[str, ...],
) -> None:
    if is_guarded and PEER == "apache":
        pytest.skip("Apache's TLS takes other settings")
    client = make_client(tmp_path, rocketmqs(version, "client"))
    with BrokerCluster(tmp_path / "cluster", brokers=brokers, tls=is_guarded, acl=is_guarded) as cluster:
        without = (*without, *WITHOUT_ON_APACHE)
        assert_flows_work(client, cluster, encoding, compression=compression, without=without)


def assert_same(producer: ClientProgram, consumer: ClientProgram) -> None:
    """Every message came once, where the producer was told that it is, and as it was sent."""
    sent = {(one.number, one.queue_id, one.queue_offset, one.unique_id) for one in producer.sent()}
    got = [(one.number, one.queue_id, one.queue_offset, one.message_id) for one in consumer.got()]
    assert len(sent) == COUNT
    assert sorted(got) == sorted(sent)
    assert {(one.keys, one.body) for one in consumer.got()} == {
        (f"key-{number}", f"body-{number}-ä消息") for number in range(COUNT)
    }


def test_a_lite_pull_consumer_gets_what_the_old_client_sent_and_commits(
    cluster: Peer, five: JavaClient, java: JavaClient
) -> None:
    topic = f"Interop-five-{time.monotonic_ns()}"
    rpc.create_topic(cluster.broker_address, topic, QUEUES)
    with java.produce(cluster.namesrv_address, topic, COUNT) as producer:
        producer.wait_done()
    with five.run("LitePull", cluster.namesrv_address, topic, f"{topic}-group", COUNT) as consumer:
        consumer.wait_done()
    assert_same(producer, consumer)
    with five.run("LitePull", cluster.namesrv_address, topic, f"{topic}-group", COUNT) as again:
        again.wait_started()
        with java.produce(cluster.namesrv_address, topic, COUNT) as more:
            more.wait_done()
        again.wait_done()
    assert {one.queue_offset for one in again.got()} == {one.queue_offset for one in more.sent()}
