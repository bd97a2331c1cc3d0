"""PullConsumer against our broker and Apache's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import ConsumeFrom, Message, MessageExt, MessageQueue, Producer, SyncProducer, SyncPullConsumer
from gantrymq.client.consume.pull_consumer import PullConsumer
from gantrymq.errors import ClientClosed, ConfigError
from tests.gantrymq.client.peers import topic_at
from tests.gantrymq.client.seen import numbers, polled, until
from tests.peers.dispatch import until_dispatched, wait_dispatched


@pytest.fixture
def name() -> str:
    return f"pull_{next(numbers)}"


async def send_in_order(producer: Producer, peer: Peer, name: str, count: int) -> None:
    """To a topic of one queue, until all can be read."""
    for number in range(count):
        await producer.send(Message(name, b"%d" % number))
    await until_dispatched(peer)


def consumer_of(peer: Peer, name: str, **options: object) -> PullConsumer:
    return PullConsumer(
        peer.namesrv_address,
        group=name,
        consume_from=ConsumeFrom.FIRST_OFFSET,
        **options,  # type: ignore[arg-type]
    )


async def test_members_of_a_group_share_a_topic_and_go_on_where_it_was(peer: Peer, name: str) -> None:
    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address) as producer:
        await producer.send_many(Message(name, b"%d" % n, tags="AB"[n % 2]) for n in range(100))
        await until_dispatched(peer)
        async with consumer_of(peer, name) as one, consumer_of(peer, name) as two:
            one.subscribe(name, "A")
            two.subscribe(name, "A")
            await until(lambda: len(one.assigned_queues) == len(two.assigned_queues) == 2)
            found = await polled(one, 1)
            while len(found) < 50:
                found += await one.poll(0.2) + await two.poll(0.2)
            assert max(len(await one.poll(0.05)), len(await two.poll(0.05))) == 0
            connections = await admin.clients.consumers_at(peer.broker_address, name)
            assert connections.consume_type == "CONSUME_ACTIVELY"
        assert {int(message.body) for message in found} == set(range(0, 100, 2))
        async with consumer_of(peer, name) as later:
            later.subscribe(name, "A")
            await producer.send(Message(name, b"new", tags="A"))
            assert [message.body for message in await polled(later, 1)] == [b"new"]


async def test_messages_that_were_taken_out_of_the_list_are_finished_too(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        await send_in_order(producer, peer, name, 3)
        async with consumer_of(peer, name, auto_commit=False) as consumer:
            consumer.subscribe(name)
            count = 0
            while count < 3:
                messages = await consumer.poll()
                while messages:
                    messages.pop()
                    count += 1
            await consumer.commit()
            (queue,) = consumer.assigned_queues
            assert await consumer.committed(queue) == 3


async def test_queues_of_ones_own_choice_are_read_without_a_group_sharing_them(peer: Peer, name: str) -> None:
    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address) as producer:
        first, second = (MessageQueue(name, peer.broker_name, queue_id) for queue_id in (0, 1))
        for n in range(25):
            await producer.send(Message(name, b"%d" % n), queue=first)
            await producer.send(Message(name, b"other"), queue=second)
        async with consumer_of(peer, name) as consumer:
            assert first in await consumer.queues(name)
            await consumer.assign([first])
            assert consumer.assigned_queues == [first]
            found = await polled(consumer, 25)
            assert [message.body for message in found] == [b"%d" % n for n in range(25)]
            with pytest.raises(ConfigError):
                consumer.subscribe(name)
            with pytest.raises(ConfigError):
                await consumer.seek(second, 0)
            await consumer.assign([second])
            assert {message.body for message in await polled(consumer, 25)} == {b"other"}
        assert await admin.offsets.get_at(peer.broker_address, name, name, 0) == 25
    with pytest.raises(ClientClosed):
        await consumer.poll()


async def test_seeking_goes_anywhere_inside_the_queue(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        queue = MessageQueue(name, peer.broker_name, 0)
        await send_in_order(producer, peer, name, 10)
        async with consumer_of(peer, name, batch_size=3) as consumer:
            await consumer.assign([queue])
            assert [message.body for message in await polled(consumer, 3)] == [b"0", b"1", b"2"]
            await consumer.seek(queue, 8)
            assert [message.body for message in await polled(consumer, 2)] == [b"8", b"9"]
            await consumer.seek_to_begin(queue)
            assert [message.body for message in await polled(consumer, 3)] == [b"0", b"1", b"2"]
            await consumer.seek_to_end(queue)
            assert await consumer.poll(0.3) == []
            for outside in (-1, 11):
                with pytest.raises(ConfigError):
                    await consumer.seek(queue, outside)
            assert await consumer.offset_at(queue, 0) == 0


async def test_a_corrected_offset_is_not_committed_where_the_application_commits(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        queue = MessageQueue(name, peer.broker_name, 0)
        await admin.offsets.set_at(peer.broker_address, name, name, 0, 1000)
        async with consumer_of(peer, name, auto_commit=False) as consumer:
            await consumer.assign([queue])
            while not await consumer.poll(0.1):  # it goes on inside of the queue
                await producer.send(Message(name, b"new"))
        assert await admin.offsets.get_at(peer.broker_address, name, name, 0) == 1000


async def test_an_offset_of_before_another_member_had_the_queue_is_not_committed_again(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        queue = MessageQueue(name, peer.broker_name, 0)
        await send_in_order(producer, peer, name, 4)
        options = {"batch_size": 2, "auto_commit": False}
        async with consumer_of(peer, name, **options) as one, consumer_of(peer, name, **options) as other:
            for member in (one, other):
                await member.assign([queue])
                await polled(member, 2)
                await member.commit()
                await member.assign([])
            await one.assign([queue])
        assert await admin.offsets.get_at(peer.broker_address, name, name, 0) == 4


async def test_nothing_is_written_before_commit_when_that_is_up_to_the_application(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        queue = MessageQueue(name, peer.broker_name, 0)
        await send_in_order(producer, peer, name, 6)
        async with consumer_of(peer, name, batch_size=2, auto_commit=False) as consumer:
            await consumer.assign([queue])
            await polled(consumer, 2)
            await consumer.commit()
            assert await consumer.committed(queue) == 2
            await polled(consumer, 2)  # polled, not committed
        async with consumer_of(peer, name, batch_size=6) as again:
            await again.assign([queue])
            assert [message.body for message in await polled(again, 4)] == [b"2", b"3", b"4", b"5"]


async def test_a_paused_queue_is_silent_until_it_is_resumed(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=2), Producer(peer.namesrv_address) as producer:
        first, second = (MessageQueue(name, peer.broker_name, queue_id) for queue_id in (0, 1))
        async with consumer_of(peer, name) as consumer:
            await consumer.assign([first, second])
            consumer.pause([first])
            await producer.send(Message(name, b"silent"), queue=first)
            await producer.send(Message(name, b"heard"), queue=second)
            assert [message.body for message in await polled(consumer, 1)] == [b"heard"]
            assert await consumer.poll(0.3) == []
            consumer.resume([first])
            assert [message.body for message in await polled(consumer, 1)] == [b"silent"]


async def test_the_consumer_is_an_endless_iterator_too(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        await send_in_order(producer, peer, name, 30)
        got: list[bytes] = []
        async with consumer_of(peer, name) as consumer:
            consumer.subscribe(name)
            async for message in consumer:
                got.append(message.body)
                if len(got) == 30:
                    break
        assert got == [b"%d" % n for n in range(30)]


class Unhandled(Exception):
    """The application could not handle a message."""


async def test_after_an_exception_in_the_loop_the_message_and_those_behind_it_come_again(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        await producer.send_batch([Message(name, b"%d" % n) for n in range(10)])
        await until_dispatched(peer)
        queue = MessageQueue(name, peer.broker_name, 0)
        with pytest.raises(Unhandled):
            async with consumer_of(peer, name) as consumer:
                await consumer.assign([queue])
                async for message in consumer:
                    if message.body == b"3":
                        raise Unhandled
        with pytest.raises(Unhandled):
            async with consumer_of(peer, name) as consumer:
                await consumer.assign([queue])
                assert (await polled(consumer, 7))[0].body == b"3"
                raise Unhandled  # how many of the seven were handled is not known
        async with consumer_of(peer, name, batch_size=4) as consumer:
            await consumer.assign([queue])
            async for message in consumer:
                if message.body == b"5":
                    break  # leaves the block without an error: handled
        async with consumer_of(peer, name) as consumer:
            await consumer.assign([queue])
            assert [message.body for message in await polled(consumer, 4)] == [b"6", b"7", b"8", b"9"]


async def test_what_an_iterator_was_not_asked_for_is_polled_next(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        await producer.send_batch([Message(name, b"%d" % n) for n in range(6)])
        await until_dispatched(peer)
        queue = MessageQueue(name, peer.broker_name, 0)
        async with consumer_of(peer, name, auto_commit=False) as consumer:
            await consumer.assign([queue])
            async for message in consumer:
                await consumer.commit()  # in the middle of a batch, which goes on behind it
                if message.body == b"2":
                    break
            assert await consumer.committed(queue) == 3
            assert [message.body for message in await polled(consumer, 3)] == [b"3", b"4", b"5"]
            await consumer.seek(queue, 4)
            assert [message.body async for _, message in countdown(consumer, 2)] == [b"4", b"5"]
            await consumer.commit({queue: 5})
            assert await consumer.committed(queue) == 5
            for offset in (-1, 7):
                with pytest.raises(ConfigError, match="read so far"):
                    await consumer.commit({queue: offset})
            with pytest.raises(ConfigError, match="not assigned"):
                await consumer.commit({queue._replace(queue_id=9): 0})
        async with consumer_of(peer, name) as again:
            await again.assign([queue])
            assert [message.body for message in await polled(again, 1)] == [b"5"]


async def countdown(consumer: PullConsumer, count: int) -> AsyncIterator[tuple[int, MessageExt]]:
    async for message in consumer:
        count -= 1
        yield count, message
        if not count:
            return


def test_threads_keep_a_position_for_each_message_too(peer: Peer, name: str) -> None:
    rpc.create_topic(peer.broker_address, name, 1)
    queue = MessageQueue(name, peer.broker_name, 0)

    def consumer() -> SyncPullConsumer:
        return SyncPullConsumer(peer.namesrv_address, group=name, consume_from=ConsumeFrom.FIRST_OFFSET)

    with SyncProducer(peer.namesrv_address) as producer:
        producer.send_batch([Message(name, b"%d" % n) for n in range(10)])
    wait_dispatched(peer.broker_address)
    with pytest.raises(Unhandled), consumer() as first:
        first.assign([queue])
        for message in first:
            if message.body == b"3":
                raise Unhandled
    with consumer() as second:
        second.assign([queue])
        assert next(iter(second)).body == b"3"


def test_threads_poll_as_well(peer: Peer, name: str) -> None:
    rpc.create_topic(peer.broker_address, name, 4)
    with SyncProducer(peer.namesrv_address) as producer:
        for number in range(5):
            producer.send(Message(name, b"%d" % number), queue=MessageQueue(name, peer.broker_name, 0))
        wait_dispatched(peer.broker_address)
        with SyncPullConsumer(
            peer.namesrv_address, group=name, consume_from=ConsumeFrom.FIRST_OFFSET, auto_commit=False
        ) as consumer:
            queue = MessageQueue(name, peer.broker_name, 0)
            assert queue in consumer.queues(name)
            consumer.assign([queue])
            got = [message.body for _, message in zip(range(5), consumer, strict=False)]
            consumer.commit()
            assert consumer.committed(queue) == 5
            consumer.seek_to_begin(queue)
            assert consumer.poll(10)[0].body == b"0"
        assert got == [b"%d" % number for number in range(5)]
    with pytest.raises(ClientClosed):
        consumer.poll()


async def test_the_application_is_told_of_queues_before_their_messages_and_their_end(peer: Peer, name: str) -> None:
    told: list[tuple[str, int]] = []

    async def assigned(queues: list[MessageQueue]) -> None:
        told.append(("assigned", len(queues)))
        for queue in queues:
            await one.seek(queue, 3)

    async def revoked(queues: list[MessageQueue]) -> None:
        told.append(("revoked", len(queues)))
        await one.commit(dict.fromkeys(queues, 5))

    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        for queue in await producer.queues(name):
            await producer.send_many([Message(name, b"%d" % number) for number in range(10)], queue=queue)
        await until_dispatched(peer)
        one = consumer_of(peer, name, auto_commit=False, on_assigned=assigned, on_revoked=revoked)
        async with one:
            one.subscribe(name)
            found = await polled(one, 4)
            assert min(message.queue_offset for message in found) == 3
            assert told == [("assigned", 4)]
            # It may take queues before the other has written their offsets: it must not write what it read then.
            async with consumer_of(peer, name, auto_commit=False) as two:
                two.subscribe(name)
                await until(lambda: len(two.assigned_queues) == len(one.assigned_queues) == 2)
                assert told == [("assigned", 4), ("revoked", 2)]
                assert [await two.committed(queue) for queue in two.assigned_queues] == [5, 5]
            await until(lambda: told[-1] == ("assigned", 2))  # those of the member that left
        assert told[-1] == ("revoked", 4)


def test_blocking_consumers_may_be_used_in_what_they_tell(peer: Peer, name: str) -> None:
    seen: list[int] = []

    def assigned(queues: list[MessageQueue]) -> None:
        for queue in queues:
            consumer.seek(queue, 7)
        raise ValueError("the queues are ours all the same")

    def revoked(queues: list[MessageQueue]) -> None:
        consumer.commit(dict.fromkeys(queues, 8))
        seen.extend(consumer.committed(queue) or 0 for queue in queues)

    rpc.create_topic(peer.broker_address, name, 1)
    with SyncProducer(peer.namesrv_address) as producer:
        producer.send_many([Message(name, b"%d" % number) for number in range(10)])
    wait_dispatched(peer.broker_address)
    consumer = SyncPullConsumer(
        peer.namesrv_address, group=name, auto_commit=False, on_assigned=assigned, on_revoked=revoked
    )
    with consumer:
        consumer.subscribe(name)
        messages: list[MessageExt] = []
        while not messages:
            messages = consumer.poll(1.0)
        assert messages[0].queue_offset == 7
    assert seen == [8]
