"""What a session does with the answers to its heartbeats, and when a broker is gone."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from pathlib import Path

import pytest

from gantrymq import AdminClient, ConsumeFrom, Message, MessageExt, MessageModel, MessageQueue, Producer, PushConsumer
from gantrymq.client.connection import session
from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.bodies import BrokerData, HeartbeatData, QueueData, TopicRouteData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.client.seen import until
from tests.gantrymq.remoting.scripted import ScriptedServer, scripted_server
from tests.harness import LocalCluster, serving
from tests.waiting import WITHIN_S


async def listener(messages: list[MessageExt]) -> None:
    """Takes everything."""


async def test_consumers_whose_group_disagrees_are_warned_once_each_and_an_admin_sees_who_wants_what(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HEARTBEAT_S", 0.05)
    remarks: list[str | None] = []
    send_heartbeat = BrokerCalls.heartbeat

    async def noting_the_remark(calls: BrokerCalls, address: str, heartbeat: HeartbeatData) -> str | None:
        remarks.append(await send_heartbeat(calls, address, heartbeat))
        return remarks[-1]

    monkeypatch.setattr(BrokerCalls, "heartbeat", noting_the_remark)
    caplog.set_level(logging.WARNING, logger="gantrymq.client.connection.session")

    def warnings() -> list[str]:
        return [record.remark for record in caplog.records if getattr(record, "event", "") == "broker_remark"]  # type: ignore[attr-defined]

    async with serving(tmp_path) as cluster, AdminClient(cluster.namesrv_address) as admin:
        await admin.topics.create_at(cluster.broker_address, TopicConfig("T", 2, 2))
        await cluster.broker.outer_api.register_all()
        one = PushConsumer(cluster.namesrv_address, group="G", listener=listener)
        other = PushConsumer(cluster.namesrv_address, group="G", listener=listener)
        one.subscribe("T", "A")
        other.subscribe("T", "B")
        async with one, other, asyncio.timeout(WITHIN_S):
            while not cluster.broker.consumers.agreement.disagreeing_groups:
                await asyncio.sleep(0.05)
            remarks.clear()
            while len([remark for remark in remarks if remark]) < 6:
                await asyncio.sleep(0.05)
            assert len(warnings()) == 2
            assert all("consumer group G subscribe differently" in remark for remark in warnings())
            found = (await admin.clients.consumers_at(cluster.broker_address, "G")).disagreement
            assert found is not None
            assert sorted(party.subscriptions["T"] for party in found) == ["A", "B"]
            other.subscribe("T", "A")
            while cluster.broker.consumers.agreement.disagreeing_groups:
                await asyncio.sleep(0.05)
            found = (await admin.clients.consumers_at(cluster.broker_address, "G")).disagreement
            assert found is None


async def test_a_consumer_whose_broker_is_gone_goes_where_the_topic_is_now(tmp_path: Path) -> None:
    def broker(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.code != RequestCode.PULL_MESSAGE:
            writer.write(request.reply(ext_fields={"offset": "0"}).encode())

    def name_server(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        writer.write(request.reply(body=one_broker(*now).to_json()).encode())

    dead = closed_port()
    async with scripted_server(broker) as live, scripted_server(name_server) as names:
        now = "a", live.address
        consumer = PushConsumer(
            names.address, group="G", listener=listener, model=MessageModel.BROADCASTING,
            consume_from=ConsumeFrom.FIRST_OFFSET, offsets_folder=tmp_path,
        )  # fmt: skip
        consumer.subscribe("T")
        async with consumer:
            await until(lambda: consumer.assigned_queues == [MessageQueue("T", "a", 0)])
            now = "b", dead
            for writer in live.writers:
                writer.close()  # a pull fails, and then taking b's queue
            await until(lambda: not consumer.assigned_queues)
            now = "c", live.address
            await until(lambda: consumer.assigned_queues == [MessageQueue("T", "c", 0)])


def one_broker(name: str, address: str) -> TopicRouteData:
    return TopicRouteData([BrokerData("c", name, {0: address})], [QueueData(name, 1, 1, 6)])


async def test_a_broker_that_is_down_costs_two_lines_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="gantrymq")
    taken: list[MessageExt] = []

    async def keep(messages: list[MessageExt]) -> None:
        taken.extend(messages)

    with LocalCluster(tmp_path) as cluster:
        address = cluster.broker_address
        async with AdminClient(cluster.namesrv_address) as admin, Producer(cluster.namesrv_address) as producer:
            await admin.topics.create_at(address, TopicConfig("T", 8, 8))
            consumer = PushConsumer(cluster.namesrv_address, group="G", listener=keep)
            consumer.subscribe("T")
            async with consumer:
                await until(lambda: len(consumer.assigned_queues) == 9)  # the retry topic's, too
                cluster.kill_broker()
                await until(lambda: any("unreachable" in record.getMessage() for record in caplog.records))
                await asyncio.sleep(3)  # of failing tries
                await asyncio.to_thread(cluster.start_broker)
                await producer.send(Message("T", b"x"), timeout_s=WITHIN_S)
                await until(lambda: bool(taken))
    said = Counter(getattr(record, "event", "") for record in caplog.records)
    assert said["unreachable"] == said["reachable_again"] <= 3, "one for each client"
    assert said.total() - 2 * said["unreachable"] <= 4, "the broker does not report it its members at first"
