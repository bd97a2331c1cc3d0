"""PopConsumer against real brokers: one for all tests, and two that belong to one name server."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.peer import Peer
from gantrymq import (
    AdminClient,
    ConsumeFrom,
    ConsumeResult,
    DeadLetter,
    Message,
    MessageExt,
    PopConsumer,
    Producer,
    PullConsumer,
    RetryLater,
    SubscriptionGroupConfig,
    SyncPopConsumer,
    SyncProducer,
    TopicConfig,
)
from gantrymq.client.produce.trace_records import TraceKind
from gantrymq.errors import ClientClosed, ConfigError, LeaseEnded, ResponseError
from gantrymq.message.model import MessageQueue
from tests.gantrymq.client.messages import stored
from tests.gantrymq.client.peers import topic_at, traced
from tests.gantrymq.client.seen import numbers, polled, until
from tests.harness import LocalCluster
from tests.peers.fixtures import PATIENT
from tests.waiting import WITHIN_S
from tests.waiting import until as until_it

PROGRAM = Path(__file__).parent / "programs" / "holding.py"


@pytest.fixture
def peer(peer_of: Callable[[str], Peer]) -> Peer:
    return peer_of("gantry")


@pytest.fixture
def name() -> str:
    return f"pop_{next(numbers)}"


@pytest.fixture
async def admin(peer: Peer, name: str) -> AsyncIterator[AdminClient]:
    """With the topic `name` at the peer."""
    async with topic_at(peer, name) as client:
        yield client


@pytest.fixture
async def producer(peer: Peer, admin: AdminClient) -> AsyncIterator[Producer]:
    """With the topic `name` at the peer."""
    async with Producer(peer.namesrv_address) as client:
        yield client


def consumer_of(peer: Peer, name: str, **options: Any) -> PopConsumer:
    options = {"consume_from": ConsumeFrom.FIRST_OFFSET} | options
    consumer = PopConsumer(peer.namesrv_address, group=name, **options)
    consumer.subscribe(name)
    return consumer


@contextlib.contextmanager
def running(peer: Peer, name: str, what: str) -> Iterator[subprocess.Popen[str]]:
    """The program, killed at the end."""
    command = [sys.executable, str(PROGRAM), peer.namesrv_address, name, what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def until_none_is_leased(admin: AdminClient, peer: Peer, group: str) -> None:
    """What was given back counts until the disk has it."""

    async def is_none_leased() -> bool:
        return (await admin.groups.leases_at(peer.broker_address, group)).total == 0

    await until_it(is_none_leased)


def bodies(messages: list[MessageExt]) -> list[bytes]:
    return sorted(message.body for message in messages)


# -- polling and acknowledging ----------------------------------------------------------------------------------------


async def test_each_message_goes_to_one_member_and_is_acknowledged_by_itself(
    peer: Peer, name: str, admin: AdminClient, producer: Producer
) -> None:
    await producer.send_many(Message(name, b"%02d" % n) for n in range(40))
    async with consumer_of(peer, name, batch_size=8) as one, consumer_of(peer, name, batch_size=8) as two:
        found: list[MessageExt] = []
        while len(found) < 40:
            for member in (one, two):
                some = await member.poll(0.2)
                found += some
                for message in reversed(some):
                    await member.ack(message)
        assert bodies(found) == [b"%02d" % n for n in range(40)]
        assert {message.topic for message in found} == {name}
        assert one.held == two.held == 0
        leases = await admin.groups.leases_at(peer.broker_address, name)
        assert (leases.total, leases.modes) == (0, {name: "POP"})
        members = await admin.clients.consumers_at(peer.broker_address, name)
        assert members.consume_type == "CONSUME_POP"
        assert len(members.connection_set) == 2
        progress = await admin.offsets.stats_at(peer.broker_address, name, name)
        assert sum(at.broker_offset - at.consumer_offset for at in progress.offset_table.values()) == 0


async def test_several_messages_are_acknowledged_in_one_request(
    peer: Peer, name: str, admin: AdminClient, producer: Producer
) -> None:
    await producer.send_many(Message(name, b"%02d" % n) for n in range(30))
    async with consumer_of(peer, name, batch_size=32) as consumer:
        found = await polled(consumer, 30)
        assert (await admin.groups.leases_at(peer.broker_address, name)).total == 30
        await consumer.ack(*found[:-1])
        left = await admin.groups.leases_at(peer.broker_address, name)
        assert [lease.message_id for lease in left.leases] == [found[-1].msg_id]
        assert left.leases[0].client == consumer.client_id
        await consumer.ack(found[-1])
        with pytest.raises(LeaseEnded):
            await consumer.ack(*found)
        with pytest.raises(LeaseEnded):
            await consumer.ack(found[0])
        assert await consumer.poll(0.1) == []


async def test_only_messages_with_the_tag_or_that_meet_the_condition_come(
    peer: Peer, name: str, producer: Producer
) -> None:
    await producer.send_many(Message(name, b"%02d" % n, tags="ABC"[n % 3]) for n in range(30))
    async with PopConsumer(peer.namesrv_address, group=name, consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
        with pytest.raises(ConfigError, match="subscribe first"):
            await consumer.poll()
        consumer.subscribe(name, "A || C")
        found = await polled(consumer, 20)
        await consumer.ack(*found)
        assert {message.tags for message in found} == {"A", "C"}
    by_sql = f"{name}_sql"
    async with PopConsumer(peer.namesrv_address, group=by_sql, consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
        consumer.subscribe(name, sql="TAGS = 'B'")
        assert {message.tags for message in await polled(consumer, 10)} == {"B"}
        consumer.subscribe(name, sql="TAGS =")
        with pytest.raises(ResponseError):
            await consumer.poll()


async def test_a_poll_waits_for_a_message_and_a_cancelled_one_loses_none(
    peer: Peer, name: str, producer: Producer
) -> None:
    async with consumer_of(peer, name) as consumer:
        began = time.monotonic()
        assert await consumer.poll(0.3) == []
        assert time.monotonic() - began >= 0.3
        waiting = asyncio.create_task(consumer.poll(30.0))
        await asyncio.sleep(0.2)  # the poll waits at the broker by now
        waiting.cancel()
        await asyncio.wait({waiting})
        await producer.send(Message(name, b"late"))
        (message,) = await polled(consumer, 1)
        assert (message.body, message.reconsume_times) == (b"late", 0)
        await consumer.ack(message)


async def test_no_more_is_polled_than_is_held(peer: Peer, name: str, producer: Producer) -> None:
    await producer.send_many(Message(name, b"%d" % n) for n in range(10))
    async with consumer_of(peer, name, batch_size=8, held_max=5) as consumer:
        found = await polled(consumer, 5)
        assert await consumer.poll(0.1) == []
        waiting = asyncio.create_task(consumer.poll(WITHIN_S))
        await consumer.ack(*found)
        assert 1 <= len(await waiting) <= 5


async def test_what_no_consumer_polled_has_no_lease(peer: Peer, name: str) -> None:
    async with consumer_of(peer, name) as consumer:
        with pytest.raises(ConfigError, match="was not polled"):
            await consumer.ack(stored(0))
    with pytest.raises(ClientClosed):
        await consumer.poll()


# -- leases -----------------------------------------------------------------------------------------------------------


async def test_a_lease_is_renewed_while_the_message_is_worked_on(peer: Peer, name: str, producer: Producer) -> None:
    await producer.send(Message(name, b"slow"))
    async with consumer_of(peer, name, invisible_s=6.0) as one, consumer_of(peer, name) as two:
        (message,) = await polled(one, 1)
        assert await two.poll(8.0) == []  # longer than the lease
        await one.ack(message)
        assert await two.poll(0.1) == []


async def test_a_message_that_is_not_renewed_any_more_is_delivered_again(
    peer: Peer, name: str, producer: Producer
) -> None:
    await producer.send(Message(name, b"lost"))
    async with consumer_of(peer, name, invisible_s=0.5, renew_for_s=0) as consumer:
        (first,) = await polled(consumer, 1)
        (again,) = await polled(consumer, 1)
        assert (again.body, again.topic, again.msg_id) == (b"lost", name, first.msg_id)
        assert (first.reconsume_times, again.reconsume_times) == (0, 1)
        with pytest.raises(LeaseEnded):
            await consumer.ack(first)
        await consumer.ack(again)


async def test_a_message_comes_again_when_its_time_says_and_can_be_acknowledged_before(
    peer: Peer, name: str, admin: AdminClient, producer: Producer
) -> None:
    await producer.send_batch([Message(name, b"a"), Message(name, b"b")])
    async with consumer_of(peer, name, batch_size=2) as consumer:
        one, other = await polled(consumer, 2)
        await consumer.change_invisible_time(one, 0)
        await consumer.change_invisible_time(other, 3600)
        (again,) = await polled(consumer, 1)
        assert (again.msg_id, again.reconsume_times) == (one.msg_id, 1)
        await consumer.ack(again, other)
        await until_none_is_leased(admin, peer, name)
        with pytest.raises(ConfigError):
            await consumer.change_invisible_time(again, -1)


async def test_closing_gives_back_what_was_open(peer: Peer, name: str, producer: Producer) -> None:
    await producer.send_many(Message(name, b"%d" % n) for n in range(5))
    async with consumer_of(peer, name, batch_size=5, invisible_s=3600.0) as consumer:
        found = await polled(consumer, 5)
        await consumer.ack(found[0])
    async with consumer_of(peer, name, batch_size=5) as consumer:
        again = await polled(consumer, 4)
        assert bodies(again) == bodies(found[1:])
        await consumer.ack(*again)


async def test_after_its_retries_a_message_is_dead(
    peer: Peer, name: str, admin: AdminClient, producer: Producer
) -> None:
    await admin.groups.create_at(peer.broker_address, SubscriptionGroupConfig(name, retry_max_times=2))
    await producer.send_batch([Message(name, b"bad"), Message(name, b"worse")])
    async with consumer_of(peer, name) as consumer:
        times = []
        for _ in range(4):
            (message,) = await polled(consumer, 1)
            if message.body == b"worse":
                await consumer.bury(message)
            else:
                times.append(message.reconsume_times)
                await consumer.change_invisible_time(message, 0)
        assert times == [0, 1, 2]
        async with PullConsumer(
            peer.namesrv_address, group=f"{name}_dead", consume_from=ConsumeFrom.FIRST_OFFSET
        ) as dead:
            dead.subscribe(f"%DLQ%{name}")
            letters = [await anext(aiter(dead)) for _ in range(2)]
        assert bodies(letters) == [b"bad", b"worse"]
        assert await consumer.poll(0.1) == []


async def test_a_group_that_pulls_may_not_pop(peer: Peer, name: str, admin: AdminClient, producer: Producer) -> None:
    await admin.groups.create_at(peer.broker_address, SubscriptionGroupConfig(name))
    await admin.groups.set_mode_at(peer.broker_address, name, name, "PULL")
    async with consumer_of(peer, name) as consumer:
        with pytest.raises(ResponseError, match="by pulling"):
            await consumer.poll()
        with pytest.raises(ResponseError, match="by pulling"):
            await consumer.serve(lambda messages: None)


async def test_topics_of_a_namespace_are_consumed_by_their_plain_names(peer: Peer, name: str) -> None:
    async with Producer(peer.namesrv_address, namespace="shop") as producer:
        await producer.send(Message(name, b"inside"))
        async with consumer_of(peer, name, namespace="shop") as consumer:
            (message,) = await polled(consumer, 1)
            assert message.topic == name
            await consumer.change_invisible_time(message, 0)
            (again,) = await polled(consumer, 1)
            assert (again.topic, again.reconsume_times) == (name, 1)
            await consumer.ack(again)


async def test_a_new_group_begins_at_a_time_also_in_queues_that_are_young(
    peer: Peer, name: str, producer: Producer
) -> None:
    async with PullConsumer(peer.namesrv_address, group=f"{name}_all", consume_from=ConsumeFrom.FIRST_OFFSET) as reader:
        reader.subscribe(name)
        times = []
        for body in (b"old", b"older", b"new", b"newer"):
            await producer.send(Message(name, body), queue=MessageQueue(name, "gantry-a", 1))
            (message,) = await reader.poll(WITHIN_S)
            times.append(message.store_timestamp)
            await until(lambda: time.time() * 1000 > times[-1] + 2)
    options = {"consume_from": ConsumeFrom.TIMESTAMP, "consume_from_ms": times[2], "batch_size": 4}
    async with consumer_of(peer, name, **options) as one:
        found = await polled(one, 2)
        assert bodies(found) == [b"new", b"newer"]
        await one.ack(*found)
    async with consumer_of(peer, name, **options | {"consume_from_ms": times[0]}) as other:
        assert await other.poll(0.2) == [], "the group stands where it stood"


async def test_what_was_polled_is_traced_to_its_end(
    peer: Peer, name: str, admin: AdminClient, producer: Producer
) -> None:
    sent = await producer.send(Message(name, b"followed", keys="k"))
    async with consumer_of(peer, name, trace=True) as consumer:
        (message,) = await polled(consumer, 1)
        await consumer.change_invisible_time(message, 0)
        (message,) = await polled(consumer, 1)
        await consumer.ack(message)
    records = (await traced(admin, sent.msg_id, 4)).records
    assert [record.kind for record in records] == [TraceKind.SUB_BEFORE, TraceKind.SUB_AFTER] * 2
    assert [record.is_success for record in records[1::2]] == [False, True]
    assert {record.group for record in records} == {name} and records[2].retry_times == 1


# -- several brokers, and their ends ----------------------------------------------------------------------------------


@pytest.fixture
def two_brokers(tmp_path: Path) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    with LocalCluster(tmp_path / "a", broker_properties=PATIENT) as one:
        other = LocalCluster(tmp_path / "b", broker_properties=PATIENT | {"brokerName": "broker-b"})
        other.share_name_server(one)
        try:
            other.start_broker()
            yield one, other
        finally:
            other.stop()


async def test_messages_come_from_all_brokers_as_one_is_killed(
    two_brokers: tuple[LocalCluster, LocalCluster],
) -> None:
    one, other = two_brokers
    async with AdminClient(one.namesrv_address) as admin:
        for broker in two_brokers:
            for topic in ("jobs", "more"):
                await admin.topics.create_at(broker.broker_address, TopicConfig(topic, 2, 2))
    async with Producer(one.namesrv_address) as producer:
        consumer = PopConsumer(
            one.namesrv_address, group="g", consume_from=ConsumeFrom.FIRST_OFFSET, batch_size=4, invisible_s=3600.0
        )
        consumer.subscribe("jobs")
        consumer.subscribe("more")
        async with consumer:
            assert await consumer.poll(0.1) == []
            waiting = asyncio.create_task(consumer.poll(WITHIN_S))
            await asyncio.sleep(0.3)  # it waits at all of them by now
            await producer.send(Message("more", b"first"))
            await consumer.ack(*await waiting)
            await producer.send_many(Message("jobs", b"%02d" % n) for n in range(40))
            found = await polled(consumer, 40)
            assert bodies(found) == [b"%02d" % n for n in range(40)]
            assert {message.broker_name for message in found} == {"gantry-a", "broker-b"}
            other.kill_broker()
            acknowledging = asyncio.create_task(consumer.ack(*found))
            await producer.send(Message("jobs", b"meanwhile"))
            (meanwhile,) = await polled(consumer, 1)
            await consumer.ack(meanwhile)
            other.start_broker()
            await acknowledging  # the leases were journalled
            assert await consumer.poll(1.0) == []
            assert consumer.held == 0


async def test_messages_of_a_process_that_was_killed_come_when_their_time_is_over(
    peer: Peer, name: str, producer: Producer
) -> None:
    await producer.send_many(Message(name, b"%d" % n) for n in range(6))
    with running(peer, name, "6") as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "holds 6, acknowledged 2\n"
    async with consumer_of(peer, name, batch_size=6) as consumer:
        again = await polled(consumer, 4)
        assert {message.reconsume_times for message in again} == {1}
        await consumer.ack(*again)
        assert await consumer.poll(0.2) == []


# -- a listener -------------------------------------------------------------------------------------------------------


async def test_a_listener_decides_on_each_message(
    peer: Peer, name: str, admin: AdminClient, producer: Producer
) -> None:
    await producer.send_many(Message(name, body) for body in (b"good", b"later", b"raises", b"dead"))
    seen: list[tuple[bytes, int]] = []

    async def listener(messages: list[MessageExt]) -> ConsumeResult | RetryLater | None:
        (message,) = messages
        seen.append((message.body, message.reconsume_times))
        if message.body == b"dead":
            raise DeadLetter("no use")
        if message.reconsume_times == 0 and message.body != b"good":
            raise RetryLater(0) if message.body == b"raises" else RetryLater(0.1)
        return None

    async with consumer_of(peer, name) as consumer:
        serving = asyncio.create_task(consumer.serve(listener, concurrency=2))
        await until(lambda: len(seen) >= 6)
        with pytest.raises(ConfigError, match="already"):
            await consumer.serve(listener)
        consumer.stop()
        assert await serving
        assert sorted(seen) == [
            (b"dead", 0), (b"good", 0), (b"later", 0), (b"later", 1), (b"raises", 0), (b"raises", 1),
        ]  # fmt: skip
        await until_none_is_leased(admin, peer, name)
        assert consumer.held == 0


async def test_stopping_lets_calls_end_and_gives_back_those_that_do_not(
    peer: Peer, name: str, producer: Producer
) -> None:
    await producer.send_many(Message(name, body) for body in (b"quick", b"endless"))
    begun, quick = [], asyncio.Event()

    async def listener(messages: list[MessageExt]) -> None:
        begun.append(messages[0].body)
        await (quick.wait() if messages[0].body == b"quick" else asyncio.Event().wait())

    async with consumer_of(peer, name, close_wait_s=0.5) as consumer:
        serving = asyncio.create_task(consumer.serve(listener))
        await until(lambda: len(begun) == 2)
        consumer.stop()
        quick.set()
        assert not await serving
    async with consumer_of(peer, name) as consumer:
        (message,) = await polled(consumer, 1)
        assert (message.body, message.reconsume_times) == (b"endless", 1)
        await consumer.ack(message)


# -- for threads ------------------------------------------------------------------------------------------------------


def test_the_blocking_twin_does_the_same(peer: Peer, name: str) -> None:
    with SyncProducer(peer.namesrv_address) as producer:
        producer.send_many(Message(name, b"%d" % n) for n in range(4))
    with SyncPopConsumer(peer.namesrv_address, group=name, consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
        consumer.subscribe(name)
        (first,) = consumer.poll(WITHIN_S)
        assert consumer.held == 1
        consumer.change_invisible_time(first, 0)
        seen: list[bytes] = []

        def listener(messages: list[MessageExt]) -> None:
            seen.extend(message.body for message in messages)
            if len(seen) == 4:
                consumer.stop()

        assert consumer.serve(listener, concurrency=1)
        assert sorted(seen) == [b"0", b"1", b"2", b"3"]
        assert consumer.poll(0.1) == []


def test_a_service_ends_in_order_at_sigterm(peer: Peer, name: str) -> None:
    with SyncProducer(peer.namesrv_address) as producer:
        producer.send_many(Message(name, b"%d" % n) for n in range(3))
    with running(peer, name, "serve") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.terminate()
        assert process.stdout.read() == "worked\n"
        assert process.wait(WITHIN_S) == 0
