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
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.consume import push_consumer
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


async def test_a_broker_that_is_back_in_one_route_is_looked_for_in_those_of_the_other_topics() -> None:
    """They all lost it when they were refreshed while it was away, and only one of them is asked for again soon."""
    shown, changes = [("a", "h:1"), ("b", "h:2")], []

    def name_server(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        writer.write(request.reply(body=several_brokers(shown).to_json()).encode())

    async with scripted_server(name_server) as names:
        client = session.ClientSession(ClientOptions(name_servers=names.address), heartbeat=HeartbeatData)
        client.when_routes_changed = lambda: changes.append(brokers_of(client, "T"))
        client.open()
        for topic in ("T", "U"):
            await client.routes.to_read(topic)
        away = shown.pop()
        await client.routes.refresh()
        assert [brokers_of(client, topic) for topic in ("T", "U")] == [{"a"}, {"a"}]
        shown.append(away)
        await client.routes.look_again("U")
        await until(lambda: bool(changes))
        assert changes == [{"a", "b"}]
        await client.close()


async def test_a_consumer_follows_a_refreshed_route_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "REFRESH_S", 0.1)
    monkeypatch.setattr(push_consumer, "REBALANCE_S", 3600.0)

    def broker(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.code != RequestCode.PULL_MESSAGE:
            writer.write(request.reply(ext_fields={"offset": "0"}).encode())

    def name_server(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        writer.write(request.reply(body=several_brokers(shown).to_json()).encode())

    async with scripted_server(broker) as a, scripted_server(broker) as b, scripted_server(name_server) as names:
        shown = [("a", a.address), ("b", b.address)]
        consumer = PushConsumer(
            names.address, group="G", listener=listener, model=MessageModel.BROADCASTING,
            consume_from=ConsumeFrom.FIRST_OFFSET, offsets_folder=tmp_path,
        )  # fmt: skip
        consumer.subscribe("T")
        async with consumer:
            for now in (shown, shown[:1], shown):
                shown = now
                wanted = [MessageQueue("T", name, 0) for name, _ in now]
                await until(lambda wanted=wanted: consumer.assigned_queues == wanted)  # type: ignore[misc]


def brokers_of(client: session.ClientSession, topic: str) -> set[str]:
    return set(client.routes.known[topic].addresses)


def several_brokers(members: list[tuple[str, str]]) -> TopicRouteData:
    routes = [one_broker(*each) for each in members]
    return TopicRouteData(
        [each.broker_datas[0] for each in routes],
        [each.queue_datas[0] for each in routes],
    )


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
