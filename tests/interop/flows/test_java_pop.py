"""The Java push consumer of RocketMQ 5 in POP mode with our broker: the broker assigns, the client pops."""

from __future__ import annotations

import time

import pytest

from appliance.bench import rpc
from appliance.bench.maven import rocketmqs
from appliance.bench.peer import Peer
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.pop_bodies import SetModeRequest
from tests.interop.clients import JAVA_SOURCES, JavaClient
from tests.interop.java_flows import make_client

pytestmark = pytest.mark.slow

COUNT, QUEUES = 60, 3
PROGRAMS = tuple(JAVA_SOURCES / f"{name}.java" for name in ("five/PopConsume", "Lines", "Patience", "Produce", "Run"))


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> JavaClient:
    return make_client(tmp_path_factory.mktemp("java-pop"), rocketmqs("5.4.0", "client"), PROGRAMS)


def ask(address: str, code: RequestCode, body: bytes) -> None:
    with rpc.connect(address) as connection:
        answer = rpc.call_frame(connection, RemotingCommand.request(code, {}, body).encode())
    assert answer.code == 0, answer


def test_a_consumer_pops_and_what_it_fails_at_comes_again(own_cluster: Peer, five: JavaClient) -> None:
    cluster = own_cluster
    topic, group = f"Interop-pop-{time.monotonic_ns()}", "pop-group"
    rpc.create_topic(cluster.broker_address, topic, QUEUES)
    settings = SubscriptionGroupConfig(group).to_json()
    ask(cluster.broker_address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, settings)
    mode = SetModeRequest(topic, group, "POP").to_json()  # as mqadmin setConsumeMode sends it
    ask(cluster.broker_address, RequestCode.SET_MESSAGE_REQUEST_MODE, mode)
    with five.run("PopConsume", cluster.namesrv_address, topic, group) as consumer:
        consumer.wait_started()
        with five.run("Produce", cluster.namesrv_address, topic, "producer", COUNT, 0) as producer:
            producer.wait_done()
        failing = COUNT // 10
        consumer.wait_for(lambda: consumer.count("POPPED") >= COUNT + failing, "every message, some twice")
        time.sleep(1)  # nothing more may come: time has to pass
        popped = [(int(line[0]), int(line[1])) for line in consumer.lines("POPPED")]
        assert sorted(popped) == sorted([(n, 0) for n in range(COUNT)] + [(n, 1) for n in range(0, COUNT, 10)])
        assert {(line[2], line[3]) for line in consumer.lines("POPPED")} == {("popped", topic)}
