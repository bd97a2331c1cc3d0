"""What a push consumer checks before it consumes."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from gantrymq import AdminClient, ConsumeFrom, ConsumeResult, Message, Producer, PullConsumer, PushConsumer
from gantrymq.client.connection import session
from gantrymq.client.consume import queue_locks
from gantrymq.errors import ResponseError
from gantrymq.message.model import MessageExt
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.gantrymq.client.seen import until
from tests.harness import ServingCluster, serving
from tests.waiting import WITHIN_S

TOO_MANY = "at most heartbeatSubscriptionsMax="


async def listener(messages: list[MessageExt]) -> ConsumeResult:
    return ConsumeResult.SUCCESS


async def test_a_topic_that_is_not_known_yet_keeps_no_consumer_from_starting(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        consumer = PushConsumer(cluster.namesrv_address, group="early", listener=listener)
        consumer.subscribe("not-there-yet", sql="a > 5")
        async with consumer:
            assert consumer.assigned_queues == []


async def test_a_condition_that_no_broker_understands_fails_at_the_start(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        async with Producer(cluster.namesrv_address) as producer:
            await producer.send(Message("there", b"x"))
        await cluster.broker.outer_api.register_all()
        consumer = PushConsumer(cluster.namesrv_address, group="wrong", listener=listener)
        consumer.subscribe("there", sql="a >")
        with pytest.raises(ResponseError, match="found end of the condition"):
            await consumer.start()


async def make_topics(cluster: ServingCluster, *names: str) -> None:
    for name in names:
        cluster.broker.topics.update(TopicConfig(name, 1, 1))
    await cluster.broker.outer_api.register_all()


async def test_a_consumer_whose_subscriptions_are_refused_does_not_start(tmp_path: Path) -> None:
    async with serving(tmp_path, broker={"heartbeat_subscriptions_max": 3}) as cluster:
        topics = [f"Topic{number}" for number in range(3)]
        await make_topics(cluster, *topics)
        consumer = PushConsumer(cluster.namesrv_address, group="wide", listener=listener)
        for topic in topics:
            consumer.subscribe(topic)
        with pytest.raises(ResponseError, match=TOO_MANY):  # they, and the group's retry topic
            await consumer.start()
        assert "wide" not in cluster.broker.consumers.groups


async def test_a_thousand_topics_are_consumed(tmp_path: Path) -> None:
    got: set[str] = set()

    async def taking(messages: list[MessageExt]) -> None:
        got.update(message.topic for message in messages)

    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        topics = [f"Topic{number}" for number in range(1000)]
        await make_topics(cluster, *topics)
        consumer = PushConsumer(
            cluster.namesrv_address, group="wide", listener=taking, consume_from=ConsumeFrom.FIRST_OFFSET
        )
        for topic in topics:
            consumer.subscribe(topic)
        async with consumer:
            for topic in (topics[0], topics[-1]):
                await producer.send(Message(topic, b"x"))
            await until(lambda: got == {topics[0], topics[-1]})


async def test_a_subscription_that_is_refused_while_running_is_taken_back_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HEARTBEAT_S", 0.1)
    got: set[str] = set()

    async def taking(messages: list[MessageExt]) -> None:
        got.update(message.body.decode() for message in messages)

    def told() -> list[str]:
        return [each.getMessage() for each in caplog.records if getattr(each, "event", "") == "subscription_refused"]

    async with (
        serving(tmp_path, broker={"heartbeat_subscriptions_max": 2}) as cluster,
        Producer(cluster.namesrv_address) as producer,
    ):
        await make_topics(cluster, "One", "Other")
        consumer = PushConsumer(cluster.namesrv_address, group="grown", listener=taking)
        consumer.subscribe("One")
        async with consumer:
            await until(lambda: bool(consumer.assigned_queues))
            consumer.subscribe("Other")
            await until(lambda: bool(told()))
            assert "Other" in told()[0] and TOO_MANY in told()[0]
            info = cluster.broker.consumers.groups["grown"]
            beats = [channel.last_update for channel in info.channels.values()]
            await until(lambda: [channel.last_update for channel in info.channels.values()] != beats)
            await producer.send(Message("One", b"goes on"))
            await until(lambda: got == {"goes on"})
            assert len(told()) == 1
            async with AdminClient(cluster.namesrv_address) as admin:
                await admin.brokers.update_config(cluster.broker_address, {"heartbeatSubscriptionsMax": "3"})
            consumer.subscribe("Other")
            await producer.send(Message("Other", b"taken now"))
            await until(lambda: got == {"goes on", "taken now"})


async def test_a_pull_consumer_says_at_the_poll_that_its_subscription_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, broker={"heartbeat_subscriptions_max": 1}) as cluster:
        await make_topics(cluster, "One", "Other")
        async with PullConsumer(cluster.namesrv_address, group="pulls") as consumer, asyncio.timeout(WITHIN_S):
            consumer.subscribe("One")
            assert await consumer.poll(0.1) == []
            consumer.subscribe("Other")
            with pytest.raises(ResponseError, match=TOO_MANY):
                while True:
                    await consumer.poll(0.1)
            consumer.unsubscribe("Other")
            while True:
                with contextlib.suppress(ResponseError):
                    assert await consumer.poll(0.1) == []
                    break


async def test_locks_of_many_queues_are_asked_for_in_requests_that_a_broker_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_locks, "QUEUES_A_REQUEST", 2)
    async with serving(tmp_path, broker={"lock_queues_max": 2}) as cluster:
        cluster.broker.topics.update(TopicConfig("wide", 5, 5))
        await cluster.broker.outer_api.register_all()
        consumer = PushConsumer(cluster.namesrv_address, group="ordered", listener=listener, ordered=True)
        consumer.subscribe("wide")
        async with consumer:
            await until(lambda: sum(queue.topic == "wide" for queue in consumer.assigned_queues) == 5)
