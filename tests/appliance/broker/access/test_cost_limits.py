"""Bounds of what one request and one connection may cost: one more is refused, in words that name the setting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.access.cost_limits import (
    CONNECTIONS_OF_AN_ADDRESS,
    WINDOW_S,
    CreationLimit,
    check_batch_keys,
    check_keys,
)
from appliance.errors import BrokerError
from appliance.settings.roles import BrokerConfig
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message, MessageQueue
from gantrymq.message.topics import TRACE_TOPIC
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, LockBatchRequest, LockBatchResponse, SubscriptionData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.recording import RecordingConnection
from tests.appliance.peer import Peer, connected
from tests.harness import ServingCluster, serving

LIMITS: dict[str, Any] = {
    "message_keys_max": 3,
    "trace_message_keys_max": 7,
    "heartbeat_subscriptions_max": 4,
    "lock_queues_max": 5,
    "created_a_minute_max": 6,
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ServingCluster]:
    async with serving(tmp_path, broker=LIMITS) as cluster:
        yield cluster


@pytest.fixture
async def peer(cluster: ServingCluster) -> AsyncIterator[Peer]:
    async with connected(cluster.broker.port) as peer:
        yield peer


def send(topic: str, properties: str = "", body: bytes = b"x", **changes: str) -> RemotingCommand:
    code = RequestCode.SEND_BATCH_MESSAGE if changes.get("m") == "true" else RequestCode.SEND_MESSAGE_V2
    return RemotingCommand.request(code, send_fields("producers", topic, 0, properties) | changes, body)


async def ask(peer: Peer, request: RemotingCommand) -> RemotingCommand:
    return await peer.ask(request.code, request.ext_fields, request.body)


def client(port: int, host: str = "10.0.0.1") -> Any:
    return RecordingConnection(port, host)


def batch_of(keys: list[str]) -> bytes:
    return encode_batch([Message("Topic", b"a body of some words", keys=each) for each in keys])


async def test_a_message_has_as_many_keys_as_are_allowed(peer: Peer) -> None:
    assert (await ask(peer, send("Topic", "KEYS\x01a b c\x02WAIT\x01true\x02"))).code == 0
    for properties in (
        "KEYS\x01a b c d\x02WAIT\x01true\x02",
        "TAGS\x01t\x02KEYS\x01a b c d",
        "KEYS\x01a\x02KEYS\x01a b c d",
    ):
        refused = await ask(peer, send("Topic", properties))
        assert refused.code == ResponseCode.MESSAGE_ILLEGAL
        assert refused.remark == "the message has 4 keys: at most messageKeysMax=3"
    half = await ask(peer, send("Topic", "TRAN_MSG\x01true\x02PGROUP\x01p\x02KEYS\x01a b c d\x02", f="4"))
    assert half.code == ResponseCode.MESSAGE_ILLEGAL


async def test_so_has_each_message_of_a_batch(peer: Peer) -> None:
    assert (await ask(peer, send("Topic", body=batch_of(["a b c", "d e f"]), m="true"))).code == 0
    refused = await ask(peer, send("Topic", body=batch_of(["a", "a b c d", "e"]), m="true"))
    assert (refused.code, refused.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        "the message has 4 keys: at most messageKeysMax=3",
    )


async def test_a_trace_message_has_the_keys_of_many(peer: Peer) -> None:
    keys = [" ".join("abcdefgh"[:count]) for count in (7, 8)]
    assert (await ask(peer, send(TRACE_TOPIC, f"KEYS\x01{keys[0]}\x02WAIT\x01true\x02"))).code == 0
    assert (await ask(peer, send(TRACE_TOPIC, body=batch_of([keys[0]]), m="true"))).code == 0
    told = "the message has 8 keys: at most traceMessageKeysMax=7"
    assert (await ask(peer, send(TRACE_TOPIC, f"KEYS\x01{keys[1]}\x02"))).remark == told
    assert (await ask(peer, send(TRACE_TOPIC, body=batch_of([keys[1]]), m="true"))).remark == told


async def test_the_trace_topic_of_the_brokers_settings_counts(tmp_path: Path) -> None:
    limits = LIMITS | {"trace_topic_name": "Traces"}
    async with serving(tmp_path, broker=limits) as cluster, connected(cluster.broker.port) as peer:
        assert (await ask(peer, send("Traces", "KEYS\x01a b c d e f g\x02"))).code == 0
        assert (await ask(peer, send("Topic", "KEYS\x01a b c d e f g\x02"))).code == ResponseCode.MESSAGE_ILLEGAL


def test_a_java_clients_trace_message_fits_by_default() -> None:
    ids = " ".join(f"{number:032X}" for number in range(32_000 // 33))  # as many as properties hold
    check_keys(BrokerConfig(), TRACE_TOPIC, f"KEYS\x01{ids}\x02")


def test_text_that_looks_like_no_key_is_none() -> None:
    config = BrokerConfig(**LIMITS)
    for properties in ("", "a\x01many words that are no keys at all\x02", "KEYS\x01\x02b\x01w w w w w", "KEYS\x01one"):
        check_keys(config, "Topic", properties)
        check_batch_keys(config, "Topic", properties.encode())  # no batch at all
    with pytest.raises(BrokerError):
        check_keys(config, "Topic", "KEYS\x01a b c d")


async def test_a_heartbeat_has_as_many_subscriptions_as_are_allowed(peer: Peer, cluster: ServingCluster) -> None:
    def beat(groups: int, topics: int) -> RemotingCommand:
        wanted = [SubscriptionData(f"T{number}") for number in range(topics)]
        consumers = [ConsumerData(f"G{number}", subscription_data_set=wanted) for number in range(groups)]
        return RemotingCommand.request(RequestCode.HEART_BEAT, body=HeartbeatData("c@1", [], consumers).to_json())

    assert (await ask(peer, beat(2, 2))).code == 0
    refused = await ask(peer, beat(1, 5))
    assert refused.code == ResponseCode.INVALID_PARAMETER
    assert refused.remark == "the heartbeat has 5 subscriptions: at most heartbeatSubscriptionsMax=4"
    escaped = beat(1, 5)
    escaped.body = escaped.body.replace(b'"subString"', b'"\\u0073ubString"')
    assert (await ask(peer, escaped)).remark == refused.remark, "however it is written"
    changed = await peer.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"heartbeatSubscriptionsMax=5")
    assert changed.code == 0
    assert (await ask(peer, beat(1, 5))).code == 0


@pytest.mark.parametrize("code", [RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ])
async def test_a_lock_names_as_many_queues_as_are_allowed(peer: Peer, code: int) -> None:
    def lock(count: int) -> RemotingCommand:
        queues = [MessageQueue("T", "broker-a", number) for number in range(count)]
        return RemotingCommand.request(code, body=LockBatchRequest("G", "c", queues).to_json())

    answer = await ask(peer, lock(5))
    assert answer.code == 0
    if code == RequestCode.LOCK_BATCH_MQ:
        assert len(LockBatchResponse.from_json(answer.body).lock_ok_mq_set) == 5
    refused = await ask(peer, lock(6))
    assert refused.code == ResponseCode.INVALID_PARAMETER
    assert refused.remark == "the request names 6 queues: at most lockQueuesMax=5"


async def test_one_connection_creates_so_much_in_a_minute(peer: Peer, cluster: ServingCluster) -> None:
    for number in range(6):
        assert (await ask(peer, send(f"New{number}"))).code == 0
    refused = await ask(peer, send("New6"))
    assert refused.code == ResponseCode.SYSTEM_BUSY
    assert refused.remark is not None and "at most createdAMinuteMax=6; create it with updateTopic" in refused.remark
    assert "New6" not in cluster.broker.topics.configs
    assert (await ask(peer, send("New0"))).code == 0, "what exists is not asked for"
    async with connected(cluster.broker.port) as another:
        assert (await ask(another, send("New6"))).code == 0
    consumer = ConsumerData("NewGroup", subscription_data_set=[])
    beat = HeartbeatData("c@1", [], [consumer]).to_json()
    told = await ask(peer, RemotingCommand.request(RequestCode.HEART_BEAT, body=beat))
    assert told.remark is not None and "group NewGroup is not created" in told.remark
    assert told.code == ResponseCode.SYSTEM_BUSY, "which passes"
    assert "NewGroup" not in cluster.broker.groups.configs


def test_an_address_creates_what_a_few_connections_may_and_anew_after_a_minute() -> None:
    now = 100.0
    limit = CreationLimit(BrokerConfig(**LIMITS), clock=lambda: now)
    made = 0
    with pytest.raises(BrokerError):
        for number in range(100):
            for _ in range(6):
                limit.count(client(number), "topic t")
                made += 1
    assert made == CONNECTIONS_OF_AN_ADDRESS * 6
    limit.count(client(1, "10.0.0.2"), "topic t")
    now += WINDOW_S
    limit.count(client(1), "topic t")
