"""PopConsumer in order: a queue waits for what was polled of it, at whichever member."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from appliance.bench.peer import Peer
from gantrymq import AdminClient, ConsumeFrom, DeadLetter, Message, MessageExt, PopConsumer, Producer, PullConsumer
from gantrymq.message.model import MessageQueue
from tests.gantrymq.client.peers import topic_at
from tests.gantrymq.client.seen import numbers, until
from tests.soak.relay import Relay
from tests.waiting import WITHIN_S
from tests.waiting import until as until_it

QUEUES = 4


@pytest.fixture
def peer(peer_of: Callable[[str], Peer]) -> Peer:
    return peer_of("gantry")


@pytest.fixture
def name() -> str:
    return f"ordered_{next(numbers)}"


@pytest.fixture
async def admin(peer: Peer, name: str) -> AsyncIterator[AdminClient]:
    """With the topic `name` at the peer, five messages in each of its queues: b"QUEUE NUMBER"."""
    async with topic_at(peer, name, queues=QUEUES) as client, Producer(peer.namesrv_address) as producer:
        for queue in range(QUEUES):
            at = MessageQueue(name, "gantry-a", queue)
            await producer.send_many([Message(name, b"%d %d" % (queue, n)) for n in range(5)], queue=at)
        yield client


def consumer_of(name_server: str, name: str, **options: Any) -> PopConsumer:
    begin = ConsumeFrom.FIRST_OFFSET
    consumer = PopConsumer(name_server, group=name, consume_from=begin, ordered=True, **options)
    consumer.subscribe(name)
    return consumer


async def test_a_queue_waits_for_what_was_polled_and_goes_to_any_member(
    peer: Peer, name: str, admin: AdminClient
) -> None:
    async with (
        consumer_of(peer.namesrv_address, name, batch_size=2) as one,
        consumer_of(peer.namesrv_address, name, batch_size=2) as two,
    ):
        seen: dict[int, list[int]] = defaultdict(list)
        by: dict[int, set[str]] = defaultdict(set)
        out: list[tuple[PopConsumer, list[MessageExt]]] = []
        deadline = time.monotonic() + WITHIN_S
        while sum(map(len, seen.values())) < 5 * QUEUES:
            assert time.monotonic() < deadline, seen
            for member in (one, two):
                messages = await member.poll(0.2)
                if messages:
                    assert len({message.queue_id for message in messages}) == 1
                    busy = [message.queue_id for _, some in out for message in some]
                    assert messages[0].queue_id not in busy, "what was polled of it is not acknowledged"
                    out.append((member, messages))
            member, messages = out.pop(0)
            for message in messages:
                queue, number = map(int, message.body.split())
                seen[queue].append(number)
                by[queue].add(member.client_id)
            await member.ack(*messages)
        assert seen == {queue: [0, 1, 2, 3, 4] for queue in range(QUEUES)}
        assert set.union(*by.values()) == {one.client_id, two.client_id}


async def test_what_fails_comes_again_before_the_next_and_is_counted(peer: Peer, name: str, admin: AdminClient) -> None:
    tries: dict[bytes, list[int]] = defaultdict(list)
    order: list[bytes] = []

    async def listener(messages: list[MessageExt]) -> None:
        (message,) = messages
        tries[message.body].append(message.reconsume_times)
        if message.body.endswith(b" 2") and message.reconsume_times < 2:
            raise LookupError("not yet")
        if message.body == b"0 3":
            raise DeadLetter("never")
        order.append(message.body)

    async with consumer_of(peer.namesrv_address, name, suspend_s=0.05) as consumer:
        serving = asyncio.create_task(consumer.serve(listener, concurrency=3))
        await until(lambda: len(order) == 5 * QUEUES - 1)
        consumer.stop()
        assert await serving
    assert tries[b"0 2"] == [0, 1, 2] and tries[b"0 1"] == [0]
    for queue in range(QUEUES):
        numbers_seen = [int(body.split()[1]) for body in order if body.startswith(b"%d " % queue)]
        assert numbers_seen == [n for n in range(5) if (queue, n) != (0, 3)]


async def test_after_its_tries_a_message_is_dead_and_the_next_comes(peer: Peer, name: str, admin: AdminClient) -> None:
    async with consumer_of(peer.namesrv_address, name, max_reconsume_times=1) as consumer:
        seen: list[tuple[bytes, int]] = []
        while len(seen) < 5 * QUEUES + 1:
            for message in await consumer.poll(WITHIN_S):
                seen.append((message.body, message.reconsume_times))
                if message.body == b"1 0":
                    await consumer.change_invisible_time(message, 0)
                else:
                    await consumer.ack(message)
        assert [times for body, times in seen if body == b"1 0"] == [0, 1]
        assert [body for body, _ in seen if body.startswith(b"1 ")][2:] == [b"1 %d" % n for n in range(1, 5)]
    async with PullConsumer(peer.namesrv_address, group=f"{name}_dead", consume_from=ConsumeFrom.FIRST_OFFSET) as dead:
        dead.subscribe(f"%DLQ%{name}")
        assert (await anext(aiter(dead))).body == b"1 0"


async def test_messages_of_a_member_that_closes_come_first_elsewhere(peer: Peer, name: str, admin: AdminClient) -> None:
    async with consumer_of(peer.namesrv_address, name, batch_size=3, invisible_s=3600.0) as one:
        held = await one.poll(WITHIN_S)
    async with consumer_of(peer.namesrv_address, name, batch_size=32) as two:
        seen: list[bytes] = []
        while len(seen) < 5 * QUEUES:
            messages = await two.poll(WITHIN_S)
            seen += [message.body for message in messages]
            await two.ack(*messages)
        queue = held[0].body.split()[0]
        assert [body for body in seen if body.startswith(queue)] == [b"%s %d" % (queue, n) for n in range(5)]


async def test_what_was_polled_when_the_connection_broke_comes_again(peer: Peer, name: str, admin: AdminClient) -> None:
    async def is_blocked() -> bool:
        return (await admin.groups.leases_at(peer.broker_address, name)).total == 5

    async with Relay(peer.broker_address) as broker:
        rewrite = (peer.broker_address.encode(), broker.address.encode())
        async with (
            Relay(peer.namesrv_address, rewrite=rewrite) as name_server,
            consumer_of(name_server.address, name, batch_size=5, invisible_s=3600.0) as consumer,
        ):
            broker.delay_s = 2.0
            polling = asyncio.create_task(consumer.poll(WITHIN_S))
            await until_it(is_blocked)
            broker.delay_s = 0.0
            broker.reset()  # the answer is on its way
            messages = await polling
            assert [int(message.body.split()[1]) for message in messages] == [0, 1, 2, 3, 4]
            assert {message.reconsume_times for message in messages} == {1}
            assert await is_blocked(), "and nothing of another queue"
