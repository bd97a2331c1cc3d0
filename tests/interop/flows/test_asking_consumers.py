"""What tools ask running official Java consumers, and what those are told of a quarrel in their group."""

from __future__ import annotations

import time

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import ConsumerConnection
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.interop.clients import JavaClient
from tests.interop.conftest import PEER
from tests.waiting import WITHIN_S, wait_until

QUEUES = 2


def test_a_consumer_tells_its_state_its_offsets_and_how_it_consumes_one_message(
    cluster: Peer, java: JavaClient
) -> None:
    topic = f"Interop-asked-{time.monotonic_ns()}"
    group, address = f"{topic}-group", cluster.broker_address
    rpc.create_topic(address, topic, QUEUES)
    with java.consume(cluster.namesrv_address, topic, group) as consumer:
        consumer.wait_started()
        with java.produce(cluster.namesrv_address, topic, 10) as producer:
            producer.wait_done()
        consumer.wait_for(lambda: consumer.count("GOT") >= 10, "every message")
        (member,) = _online(address, group).connection_set
        who = {"consumerGroup": group, "clientId": member.client_id}
        with_stacks = rpc.ask(address, RequestCode.GET_CONSUMER_RUNNING_INFO, who | {"jstackEnable": "true"})
        assert "ConsumeMessageThread" in fastjson.loads(with_stacks.body)["jstack"]
        without = fastjson.loads(
            rpc.ask(address, RequestCode.GET_CONSUMER_RUNNING_INFO, who | {"jstackEnable": "false"}).body
        )
        assert "jstack" not in without
        assert without["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
        sent = producer.sent()[3]
        fields = who | {"msgId": sent.offset_id}
        result = fastjson.loads(rpc.ask(address, RequestCode.CONSUME_MESSAGE_DIRECTLY, fields).body)
        assert result["consumeResult"] == "CR_SUCCESS"
        consumer.wait_for(lambda: [got.number for got in consumer.got()].count(sent.number) == 2, "it once more")
        fields = {"topic": topic, "group": group, "clientAddr": ""}

        def offsets() -> int:
            answer = rpc.ask(address, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)
            table: dict[str, int] = fastjson.loads(answer.body)["consumerTable"][member.client_id]
            return sum(table.values())

        wait_until(lambda: offsets() == 10)  # a message is said before its offset is noted


@pytest.mark.skipif(PEER == "apache", reason="Apache's broker tells nobody")
def test_consumers_that_want_other_tags_than_their_group_find_it_in_their_log(cluster: Peer, java: JavaClient) -> None:
    topic = f"Interop-quarrel-{time.monotonic_ns()}"
    group = f"{topic}-group"
    rpc.create_topic(cluster.broker_address, topic, QUEUES)
    with (
        java.consume(cluster.namesrv_address, topic, group, "TagA") as one,
        java.consume(cluster.namesrv_address, topic, group, "TagB || TagC") as other,
    ):
        one.wait_started()
        other.wait_started()
        deadline = time.monotonic() + WITHIN_S
        while (quarrel := _online(cluster.broker_address, group).disagreement) is None:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert sorted(party.subscriptions[topic] for party in quarrel) == ["TagA", "TagB || TagC"]
        while f"members of consumer group {group} subscribe differently" not in java.log():
            assert time.monotonic() < deadline, "the client logs the notice that carries the text"
            time.sleep(0.2)
        with java.produce(cluster.namesrv_address, topic, 30) as producer:  # told, and not broken
            producer.wait_done()
        one.wait_for(lambda: one.count("GOT") + other.count("GOT") > 0, "a message")


def _online(address: str, group: str) -> ConsumerConnection:
    """The group's members, when it has any."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        with rpc.connect(address) as connection:
            request = RemotingCommand.request(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})
            answer = rpc.call(connection, request)
        if answer.code == 0:
            return ConsumerConnection.from_json(answer.body)
        assert time.monotonic() < deadline, answer.remark
        time.sleep(0.2)
