"""Ordered consumption with broker locks, against GantryMQ's broker and Apache's.

The tests of lost locks reach into the consumer: they move its clock instead of waiting for a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict

import pytest

from appliance.bench.peer import Peer
from gantrymq import AdminClient, ConsumeFrom, ConsumeResult, Message, MessageExt, MessageQueue, Producer, PushConsumer
from gantrymq.client.consume import push_consumer
from gantrymq.errors import ConfigError, GantryError
from tests.conftest import time_limit
from tests.gantrymq.client.peers import topic_at
from tests.gantrymq.client.seen import Seen, numbers, until
from tests.waiting import WITHIN_S
from tests.waiting import until as until_it


@pytest.fixture
def name() -> str:
    return f"ordered_{next(numbers)}"


def ordered(peer: Peer, name: str, listener: object, **options: object) -> PushConsumer:
    consumer = PushConsumer(
        peer.namesrv_address,
        group=name,
        listener=listener,  # type: ignore[arg-type]
        ordered=True,
        consume_from=ConsumeFrom.FIRST_OFFSET,
        **options,  # type: ignore[arg-type]
    )
    consumer.subscribe(name)
    return consumer


async def test_messages_of_one_key_stay_in_order_over_many_workers(peer: Peer, name: str) -> None:
    seen: dict[int, list[int]] = defaultdict(list)
    at_once: dict[int, int] = defaultdict(int)
    most = 0

    async def listener(messages: list[MessageExt]) -> None:
        nonlocal most
        queue_id = messages[0].queue_id
        at_once[queue_id] += 1
        most = max(most, at_once[queue_id])
        await asyncio.sleep(0.001)
        at_once[queue_id] -= 1
        for message in messages:
            seen[int(message.body) % 7].append(int(message.body))

    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        for number in range(140):
            await producer.send(Message(name, b"%d" % number), sharding_key=f"order-{number % 7}")
        async with ordered(peer, name, listener, batch_size=3):
            await until(lambda: sum(map(len, seen.values())) == 140)
    assert all(numbers_of == sorted(numbers_of) for numbers_of in seen.values())
    assert most == 1


async def test_a_failed_message_is_tried_again_before_the_next_one(peer: Peer, name: str) -> None:
    tries: list[tuple[bytes, int]] = []

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        (message,) = messages
        tries.append((message.body, message.reconsume_times))
        if message.body == b"raise" and message.reconsume_times < 1:
            raise ValueError("the listener's own mistake")
        return (
            ConsumeResult.LATER if message.body == b"later" and message.reconsume_times < 2 else ConsumeResult.SUCCESS
        )

    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        for body in (b"raise", b"later", b"last"):
            await producer.send(Message(name, body))
        async with ordered(peer, name, listener, suspend_s=0.05):
            await until(lambda: (b"last", 0) in tries)
    assert tries == [(b"raise", 0), (b"raise", 1), (b"later", 0), (b"later", 1), (b"later", 2), (b"last", 0)]


async def test_a_message_that_failed_often_enough_rests_in_the_dead_letters(peer: Peer, name: str) -> None:
    tries: list[tuple[bytes, int]] = []

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        tries.append((messages[0].body, messages[0].reconsume_times))
        return ConsumeResult.LATER if messages[0].body == b"bad" else ConsumeResult.SUCCESS

    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        consumer = ordered(peer, name, listener, suspend_s=0.05, max_reconsume_times=2)
        async with consumer:
            await until(lambda: len(consumer.assigned_queues) == 2)  # with the retry topic's
            sent = await producer.send(Message(name, b"bad", tags="T"))
            await producer.send(Message(name, b"good"))
            await until(lambda: (b"good", 0) in tries)
            found: list[MessageExt] = []
            async with asyncio.timeout(WITHIN_S):
                while not found:
                    await asyncio.sleep(0.1)
                    try:
                        found, *_ = await admin.messages.pull_at(peer.broker_address, f"%DLQ%{name}", 0, 0)
                    except GantryError:
                        continue  # the topic is made when the first dead letter comes
    assert tries == [(b"bad", 0), (b"bad", 1), (b"bad", 2), (b"good", 0)]
    assert [(message.body, message.msg_id, message.tags) for message in found] == [(b"bad", sent.msg_id, "T")]


async def test_a_queue_changes_hands_only_when_the_call_in_progress_has_ended(peer: Peer, name: str) -> None:
    gate = asyncio.Event()
    calls_of_first: list[int] = []
    spans: list[tuple[str, int, float, float]] = []

    def member(who: str) -> object:
        async def listener(messages: list[MessageExt]) -> None:
            began = time.monotonic()
            if who == "first":
                calls_of_first.append(messages[0].queue_id)
                await gate.wait()
            spans.append((who, messages[0].queue_id, began, time.monotonic()))

        return listener

    async with topic_at(peer, name, queues=2), Producer(peer.namesrv_address) as producer:
        for queue_id in (0, 1):
            for number in range(3):
                await producer.send(Message(name, b"%d" % number), queue=MessageQueue(name, peer.broker_name, queue_id))
        async with ordered(peer, name, member("first"), instance_name="a") as first:
            await until(lambda: sorted(calls_of_first) == [0, 1])
            async with ordered(peer, name, member("second"), instance_name="b") as second:
                await until(lambda: len([q for q in first.assigned_queues if q.topic == name]) == 1)
                await asyncio.sleep(2.5)  # two tries of the second to get the lock
                assert not [queue for queue in second.assigned_queues if queue.topic == name]
                assert not spans
                gate.set()
                await until(lambda: len(spans) == 6)
    moved = {queue_id for who, queue_id, *_ in spans if who == "second"}
    assert len(moved) == 1  # the other stayed
    of_moved = [(who, began, ended) for who, queue_id, began, ended in spans if queue_id in moved]
    assert [who for who, *_ in of_moved] == ["first", "second", "second"]  # nothing twice, nothing left out
    assert of_moved[0][2] <= of_moved[1][1]


async def test_the_next_consumer_gets_the_queues_of_one_that_left_at_once(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=2) as admin, Producer(peer.namesrv_address) as producer:
        seen = Seen()
        async with ordered(peer, name, seen) as consumer:
            await producer.send(Message(name, b"one"))
            await until(lambda: seen.bodies == [b"one"])
            admin_view = await admin.clients.running_info_at(peer.broker_address, name, consumer.client_id)
            assert admin_view["properties"]["PROP_CONSUMEORDERLY"] == "true"
            assert all(queue["locked"] for queue in admin_view["mqTable"].values())
        again = Seen()
        started = time.monotonic()
        async with ordered(peer, name, again):
            await producer.send(Message(name, b"two"))
            await until(lambda: b"two" in again.bodies)  # Apache may take a late pull's older offset for the newer one
        assert time.monotonic() - started < time_limit(20)  # not the 60 s after which a broker forgets a lock


async def test_a_reset_waits_for_the_call_in_progress(peer: Peer, name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="gantrymq.client.consume.request_handlers")
    gate = asyncio.Event()
    at_once = most = 0
    got: list[bytes] = []

    async def listener(messages: list[MessageExt]) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await gate.wait()
        at_once -= 1
        got.extend(message.body for message in messages)

    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        await producer.send(Message(name, b"zero"))
        async with ordered(peer, name, listener):
            await until(lambda: at_once == 1)
            await admin.offsets.reset_at(peer.broker_address, name, name, 0)
            await until(lambda: any(getattr(record, "event", "") == "offsets_reset" for record in caplog.records))
            await asyncio.sleep(0.5)  # a second call would begin meanwhile
            gate.set()
            await until(lambda: got == [b"zero", b"zero"])
    assert most == 1


async def until_written(admin: AdminClient, peer: Peer, consumer: PushConsumer, name: str, offset: int) -> None:
    """Until the broker knows how far the group is in queue 0: a write that it does not answer in time is left for
    later, and who takes the queue anew would begin before it."""

    async def is_known() -> bool:
        await consumer._assignment.persist()
        with contextlib.suppress(GantryError):
            return await admin.offsets.get_at(peer.broker_address, name, name, 0) == offset
        return False

    await until_it(is_known)


async def test_a_lost_lock_stops_the_queue_until_it_is_taken_anew(
    peer: Peer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_consumer, "RENEW_S", 3600.0)  # a round at the wrong moment would renew the lock
    seen = Seen()
    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        consumer = ordered(peer, name, seen)
        async with consumer:
            await producer.send(Message(name, b"one"))
            await until(lambda: seen.bodies == [b"one"])
            assert consumer._locks is not None
            queue = MessageQueue(name, peer.broker_name, 0)
            await until_written(admin, peer, consumer, name, 1)
            held = consumer._assignment.held[queue]
            consumer._locks._locked_at[queue] = time.monotonic() - 61  # as after a minute without the broker
            await producer.send(Message(name, b"two"))
            await until(lambda: seen.bodies == [b"one", b"two"])
            assert held.is_leaving and consumer._assignment.held[queue] is not held


async def test_without_its_connection_a_queue_is_not_consumed_and_soon_renewed_it_goes_on(
    peer: Peer, name: str
) -> None:
    seen = Seen()
    async with (
        topic_at(peer, name, queues=1),
        Producer(peer.namesrv_address) as producer,
        ordered(peer, name, seen) as consumer,
    ):
        await producer.send(Message(name, b"one"))
        await until(lambda: seen.bodies == [b"one"])
        locks, queue = consumer._locks, MessageQueue(name, peer.broker_name, 0)
        assert locks is not None and locks.holds(queue)
        held = consumer._assignment.held[queue]
        connection = locks._locked_over[queue]
        assert connection is not None
        connection.close("as if the network broke")
        assert not locks.holds(queue)
        await connection.wait_lost()
        connection.lost_at = time.monotonic() + 3600  # however slow this machine: it was away for a moment only
        await until(lambda: locks.holds(queue))  # without a message: the break itself has the lock renewed
        await producer.send(Message(name, b"two"))
        await until(lambda: seen.bodies == [b"one", b"two"])
        assert consumer._assignment.held[queue] is held


async def test_a_queue_whose_connection_was_gone_for_long_is_taken_anew(peer: Peer, name: str) -> None:
    seen = Seen()
    async with (
        topic_at(peer, name, queues=1) as admin,
        Producer(peer.namesrv_address) as producer,
        ordered(peer, name, seen) as consumer,
    ):
        await producer.send(Message(name, b"one"))
        await until(lambda: seen.bodies == [b"one"])
        await until_written(admin, peer, consumer, name, 1)
        locks, queue = consumer._locks, MessageQueue(name, peer.broker_name, 0)
        assert locks is not None
        held = consumer._assignment.held[queue]
        connection = locks._locked_over[queue]
        assert connection is not None
        connection.close("as if the network broke")
        await connection.wait_lost()
        connection.lost_at = time.monotonic() - 10
        await producer.send(Message(name, b"two"))
        await until(lambda: seen.bodies == [b"one", b"two"])
        assert held.is_leaving and consumer._assignment.held[queue] is not held


def test_a_sharding_key_chooses_alone() -> None:
    async def send() -> None:
        async with Producer("127.0.0.1:1") as producer:
            await producer.send(Message("T", b"x"), sharding_key="k", queue=MessageQueue("T", "b", 0))

    with pytest.raises(ConfigError):
        asyncio.run(send())
