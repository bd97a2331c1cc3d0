"""Queue locks, as clients ask for them: a few, thousands, and what is none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, cast

import pytest

from appliance.broker.controller import BrokerController
from appliance.broker.processors import queue_locks
from appliance.broker.processors.queue_locks import lock_queues, unlock_queues
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, LockBatchRequest, LockBatchResponse, ProducerData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import tool_at
from tests.appliance.broker.processors.unopened import ask
from tests.appliance.broker.recording import RecordingConnection
from tests.appliance.peer import Peer, connected
from tests.harness import ServingCluster, serving
from tests.waiting import Clock, until

LOCK, UNLOCK = 41, 42


def test_queues_are_locked_for_one_client_until_it_lets_go(broker: BrokerController) -> None:
    queues = [MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)]

    def lock(client: str, wanted: list[MessageQueue]) -> list[MessageQueue]:
        answer = ask(broker, LOCK, body=LockBatchRequest("g", client, wanted).to_json())
        assert answer.code == 0
        return LockBatchResponse.from_json(answer.body).lock_ok_mq_set

    assert lock("c1", queues[:1]) == queues[:1]
    assert lock("c2", queues) == queues[1:]
    assert ask(broker, UNLOCK, body=LockBatchRequest("g", "c1", queues).to_json()).code == 0
    assert lock("c2", queues) == queues
    assert lock("c1", queues) == []


def test_a_queue_named_twice_is_held_once(broker: BrokerController) -> None:
    queue = MessageQueue("t", "broker-a", 0)
    answer = ask(broker, LOCK, body=LockBatchRequest("g", "c", [queue, queue]).to_json())
    assert json.loads(answer.body) == {"lockOKMQSet": [{"brokerName": "broker-a", "queueId": 0, "topic": "t"}]}


@pytest.mark.parametrize("code", [LOCK, UNLOCK])
@pytest.mark.parametrize(
    "body",
    [
        LockBatchRequest("g" * 256, "c", []),
        LockBatchRequest("g", "c" * 1025, []),
        LockBatchRequest("g", "c", [MessageQueue("t" * 256, "b", 0)]),
        LockBatchRequest("g", "c", [MessageQueue("t", "b" * 256, 0)]),
    ],
)
def test_names_longer_than_any_are_not_remembered(broker: BrokerController, code: int, body: LockBatchRequest) -> None:
    answer = ask(broker, code, body=body.to_json())
    assert answer.code == 29
    assert "at most" in str(answer.remark)
    assert len(broker.locks) == 0


@pytest.mark.parametrize("code", [LOCK, UNLOCK])
@pytest.mark.parametrize("queues", ["{}", "7", '"x"', "[7]", '[{"topic":"t"}]'])
def test_what_is_no_set_of_queues_is_refused(broker: BrokerController, code: int, queues: str) -> None:
    body = f'{{"consumerGroup":"g","clientId":"c","mqSet":{queues}}}'.encode()
    answer = ask(broker, code, body=body)
    assert answer.code == 29, answer.remark
    assert "mqSet" in str(answer.remark)


def test_one_address_can_not_take_all_locks(broker: BrokerController) -> None:
    broker.locks._locks_of_a_host_max = 2
    queues = [MessageQueue("t", "b", queue_id) for queue_id in range(3)]
    body = LockBatchRequest("g", "c", queues).to_json()
    held = LockBatchResponse.from_json(ask(broker, LOCK, body=body, connection=RecordingConnection(1)).body)
    assert held.lock_ok_mq_set == queues[:2]
    body = LockBatchRequest("h", "d", queues).to_json()
    held = LockBatchResponse.from_json(ask(broker, LOCK, body=body, connection=RecordingConnection(2)).body)
    assert held.lock_ok_mq_set == [], "another connection of the same address"


async def test_thousands_are_locked_in_slices(broker: BrokerController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_locks, "QUEUES_A_SLICE", 10)
    queues = [MessageQueue("t", "b", queue_id) for queue_id in range(95)]
    connection: Any = RecordingConnection()
    request = RemotingCommand.request(LOCK, body=LockBatchRequest("g", "c", queues).to_json())
    answer = lock_queues(broker, connection, request)
    assert isinstance(answer, Awaitable)
    answering = asyncio.ensure_future(answer)
    turns = 0
    while not answering.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 9
    assert LockBatchResponse.from_json((await answering).body).lock_ok_mq_set == queues
    released = unlock_queues(broker, connection, RemotingCommand.request(UNLOCK, body=request.body))
    assert isinstance(released, Awaitable)
    assert (await released).code == 0
    assert len(broker.locks) == 0


async def test_as_many_as_a_body_holds_are_locked_over_a_socket(tmp_path: Path) -> None:
    queues = [MessageQueue("orders", "broker-a", queue_id) for queue_id in range(20_000)]
    async with tool_at(tmp_path) as tool:
        assert (await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"lockQueuesMax=20001")).code == 0
        body = LockBatchRequest("g", "c", queues).to_json()
        assert LockBatchResponse.from_json((await tool.ask(LOCK, body=body)).body).lock_ok_mq_set == queues
        wrong = LockBatchRequest("g", "c", [*queues, MessageQueue("t" * 256, "b", 0)]).to_json()
        assert (await tool.ask(LOCK, body=wrong)).code == 29
        assert (await tool.ask(UNLOCK, body=body)).code == 0
        assert len(tool.broker.locks) == 0


async def held(peer: Peer, client: str) -> bool:
    queue = MessageQueue("t", "broker-a", 0)
    answer = await peer.ask(LOCK, body=LockBatchRequest("g", client, [queue]).to_json())
    assert answer.code == 0
    return LockBatchResponse.from_json(answer.body).lock_ok_mq_set == [queue]


async def until_closed(cluster: ServingCluster, connections: int) -> None:
    """Wait until the broker has seen all other connections end."""
    await until(lambda: len(cluster.broker.client_connections._clients) == connections)


async def beat(peer: Peer, client: str) -> None:
    heartbeat = HeartbeatData(client, producer_data_set=[ProducerData("p")], consumer_data_set=[])
    assert (await peer.ask(34, body=heartbeat.to_json())).code == 0


async def test_locks_of_a_client_go_with_its_last_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, broker={"queue_lock_grace_ms": 0}) as cluster:
        port = cluster.broker.port
        async with connected(port) as heir:
            async with connected(port) as producing:
                async with connected(port) as consuming:
                    assert await held(consuming, "one") and not await held(heir, "two")
                    await beat(producing, "one")
                await until_closed(cluster, 2)
                assert not await held(heir, "two")  # its process lives: another connection says so
            await until_closed(cluster, 1)
            assert await held(heir, "two")


async def test_a_client_that_is_back_within_the_grace_keeps_its_locks(tmp_path: Path) -> None:
    async with serving(tmp_path, broker={"queue_lock_grace_ms": 1000}) as cluster:
        port, clock = cluster.broker.port, Clock(0.0)
        cluster.broker.locks._clock = clock
        async with connected(port) as heir:
            async with connected(port) as before:
                assert await held(before, "one") and not await held(heir, "two")
            await until_closed(cluster, 1)
            async with connected(port) as after:
                await beat(after, "one")
                clock.now = 2
                assert not await held(heir, "two")
            await until_closed(cluster, 1)
            assert not await held(heir, "two")
            clock.now = 4
            assert await held(heir, "two")


async def test_with_rocketmqs_way_locks_wait_until_they_expire(tmp_path: Path) -> None:
    async with serving(tmp_path, broker={"queue_lock_grace_ms": -1}) as cluster, connected(cluster.broker.port) as heir:
        cluster.broker.locks._clock = clock = Clock(0.0)
        async with connected(cluster.broker.port) as before:
            assert await held(before, "one") and not await held(heir, "two")
        await until_closed(cluster, 1)
        clock.now = 59
        assert not await held(heir, "two")
        clock.now = 61
        assert await held(heir, "two")


async def test_the_others_are_told_when_the_locks_have_gone(tmp_path: Path) -> None:
    async with serving(tmp_path, broker={"queue_lock_grace_ms": 200}) as cluster:
        port = cluster.broker.port
        async with connected(port) as heir:
            async with connected(port) as before:
                for peer, client in ((heir, "two"), (before, "one")):
                    heartbeat = HeartbeatData(client, consumer_data_set=[ConsumerData("g")])
                    assert (await peer.ask(34, body=heartbeat.to_json())).code == 0
                assert await held(before, "one")
            while not await held(heir, "two"):  # as a client asks: whenever the group changed
                assert (await heir.read()).code == 40


def test_a_client_that_left_while_its_request_waited_gets_no_lock(broker: BrokerController) -> None:
    connection = RecordingConnection()
    connection.close("killed")
    body = LockBatchRequest("g", "one", [MessageQueue("t", "broker-a", 0)]).to_json()
    request = RemotingCommand.request(LOCK, None, body)
    with pytest.raises(BrokerError, match="closed"):
        lock_queues(broker, cast("ServerConnection", connection), request)
    assert len(broker.locks) == 0
