"""Requests and replies between official Java clients, in every form they have."""

from __future__ import annotations

import time

import pytest

from appliance.bench import rpc
from appliance.bench.peer import CLUSTER_NAME, Peer
from tests.interop.clients import JavaClient

EACH = 50


@pytest.mark.parametrize("encoding", ["JSON", "ROCKETMQ"])
def test_every_request_gets_its_own_reply(cluster: Peer, java: JavaClient, encoding: str) -> None:
    topic = f"Interop-requests-{time.monotonic_ns()}"
    rpc.create_topic(cluster.broker_address, topic, 4)
    reply_topic = f"{CLUSTER_NAME}_REPLY_TOPIC"
    before = rpc.max_offsets(cluster.broker_address, reply_topic, 1)[0]
    with (
        java.run(
            "RequestForms", cluster.namesrv_address, topic, f"{topic}-answers", "answer", encoding=encoding
        ) as one,
        java.run("RequestForms", cluster.namesrv_address, topic, f"{topic}-asks", "ask", encoding=encoding) as other,
    ):
        one.wait_started()
        other.wait_done()
    assert one.lines("FAILED") == other.lines("FAILED") == []
    forms = ("selector", "plain", "async")
    expected = {f"{form}-{number}" for form in forms for number in range(EACH)} | {"queue"}
    replies = {body: reply for body, reply in other.lines("REPLY") if body != "long"}
    assert replies == {body: f"re: {body}" for body in expected}
    assert [reply for body, reply in other.lines("REPLY") if body == "long"] == ["x" * 100_000]
    assert other.lines("TIMEOUT") == [["mute"]]
    assert {status for _, status in one.lines("REPLIED")} == {"SEND_OK"}
    stored = rpc.max_offsets(cluster.broker_address, reply_topic, 1)[0] - before
    assert stored == len(expected) + 1
