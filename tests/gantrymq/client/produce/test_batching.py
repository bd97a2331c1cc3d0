"""Messages sent soon: in batches, in order where a queue was chosen, bounded, and all settled by flush and close."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import Message, MessageQueue, Producer, SendResult, SendStatus, SyncProducer, errors
from gantrymq.client.connection.background import Background
from gantrymq.client.connection.send_codec import Outgoing
from gantrymq.client.interceptors import SendProceed
from gantrymq.client.produce.batching import Around, Batches
from gantrymq.client.produce.options import ProducerOptions
from tests.gantrymq.client.peers import topic_at
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.remoting.scripted import scripted_server, silence

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    return f"soon_{next(_numbers)}"


async def test_each_message_of_a_batch_gets_its_own_result(peer: Peer, name: str) -> None:
    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address) as producer:
        futures = [await producer.send_soon(Message(name, b"%d" % number, tags="t")) for number in range(2000)]
        await producer.flush()
        results = [future.result() for future in futures]
        assert {result.status for result in results} == {SendStatus.SEND_OK}
        assert len({result.msg_id for result in results}) == 2000
        for number in (0, 1234, 1999):
            found = await admin.messages.view_at(peer.broker_address, int(results[number].offset_msg_id[16:], 16))
            assert (found.body, found.msg_id) == (b"%d" % number, results[number].msg_id)
            assert (found.queue_id, found.queue_offset) == (
                results[number].queue.queue_id,
                results[number].queue_offset,
            )


async def test_messages_of_one_key_keep_their_order_whatever_travels_alone(peer: Peer, name: str) -> None:
    async with topic_at(peer, name), Producer(peer.namesrv_address, batch_bytes=2000) as producer:
        futures = []
        for number in range(300):
            body = b"%d" % number * (1000 if number % 50 == 0 else 1)  # those do not fit into a batch
            futures.append(await producer.send_soon(Message(name, body), sharding_key="k"))
        await producer.flush()
        results = [future.result() for future in futures]
        assert len({result.queue for result in results}) == 1
        assert [result.queue_offset for result in results] == list(range(300))


async def test_a_message_that_no_broker_takes_fails_alone(peer: Peer, name: str) -> None:
    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        good = await producer.send_soon(Message(name, b"good"))
        delayed = await producer.send_soon(Message(name, b"later", delay_level=1))
        with pytest.raises(errors.MessageRejected):
            await producer.send_soon(Message(name, b""))
        wrong = await producer.send_soon(Message(name, b"x"), queue=MessageQueue(name, peer.broker_name, 99))
        await producer.flush()
        assert good.result().status is delayed.result().status is SendStatus.SEND_OK
        assert isinstance(wrong.exception(), errors.GantryError)


class Stores:
    """Stands for a sender: it stores whatever could be packed."""

    def __init__(self) -> None:
        self.stored: list[Outgoing] = []

    async def deliver(self, outgoing: Outgoing, timeout_s: float, queue: MessageQueue | None) -> SendResult:
        self.stored.append(outgoing)
        return SendResult(SendStatus.SEND_OK, outgoing.msg_id, "offset id", MessageQueue("T", "b", 0), 0, "", True)


def batches_over(sender: Stores, background: Background, around: Around | None = None) -> Batches:
    options = ProducerOptions(name_servers="127.0.0.1:1", group="g")
    return Batches(sender, background, options, on_stored=None, around=around)  # type: ignore[arg-type]


async def test_a_message_whose_properties_are_too_long_fails_alone_in_its_batch() -> None:
    sender, background = Stores(), Background()
    batches = batches_over(sender, background)
    bodies = [b"first", b"bad", b"last"]
    futures = [
        await batches.add(Message("T", body, headers={"much": "x" * 40_000} if body == b"bad" else {}), None)
        for body in bodies
    ]
    await batches.flush()
    await background.close()
    assert [outgoing.body for outgoing in sender.stored] == [b"first", b"last"]
    assert [type(future.exception()) for future in futures] == [type(None), errors.MessageRejected, type(None)]


async def test_what_an_interceptor_raises_is_the_outcome_of_its_batch() -> None:
    async def fails(messages: Sequence[Message], proceed: SendProceed) -> SendResult:
        raise ZeroDivisionError("the application's own mistake")

    sender, background = Stores(), Background()
    batches = batches_over(sender, background, fails)
    future = await batches.add(Message("T", b"body"), None)
    await batches.flush()
    await background.close()
    assert isinstance(future.exception(), ZeroDivisionError)


async def test_a_full_buffer_makes_the_sender_wait_and_then_give_up() -> None:
    async with scripted_server(silence) as server:
        async with Producer(server.address, delivery_timeout_s=0.3, buffer_bytes=1000) as producer:
            first = await producer.send_soon(Message("T", b"x" * 700))
            with pytest.raises(errors.RequestTimeout, match="room for"):
                while True:  # the first message's time ends at about the same moment
                    await producer.send_soon(Message("T", b"x" * 700))
            await producer.flush()
            assert isinstance(first.exception(), errors.GantryError)
        with pytest.raises(errors.ClientClosed):
            await producer.send_soon(Message("T", b"x"))


async def test_what_lingers_is_sent_by_flush_and_close_at_once(peer: Peer, name: str) -> None:
    async with topic_at(peer, name):
        async with Producer(peer.namesrv_address, linger_s=3600) as producer:
            lingering = [await producer.send_soon(Message(name, b"x")) for _ in range(3)]
            await producer.flush()
            assert len({future.result().queue for future in lingering}) == 1, "one batch"
            last = await producer.send_soon(Message(name, b"x"))
            await asyncio.sleep(0)
            assert not last.done()
        assert last.result().status is SendStatus.SEND_OK


def test_threads_send_soon_and_get_futures(peer: Peer, name: str) -> None:
    rpc.create_topic(peer.broker_address, name, 4)
    with SyncProducer(peer.namesrv_address) as producer:
        futures = [producer.send_soon(Message(name, b"%d" % number), sharding_key="k") for number in range(500)]
        called: Counter[bool] = Counter()
        for future in futures:
            future.add_done_callback(lambda done: called.update([done.exception() is None]))
        assert [future.result(60).queue_offset for future in futures] == list(range(500))
        last = producer.send_soon(Message(name, b"last"))
    assert last.result(0).status is SendStatus.SEND_OK, "close waits for it"
    assert called == {True: 500}
    with pytest.raises(errors.ClientClosed):
        producer.send_soon(Message(name, b"x"))


def test_a_thread_that_sends_soon_sees_failures_in_its_futures() -> None:
    with SyncProducer(closed_port(), delivery_timeout_s=0.2) as producer:
        future = producer.send_soon(Message("T", b"x"))
        producer.flush()
        assert isinstance(future.exception(0), errors.ConnectError | errors.RequestTimeout)


async def test_many_messages_keep_the_order_of_their_keys(peer: Peer, name: str) -> None:
    messages = [Message(name, b"%d" % number, keys=str(number % 7)) for number in range(700)]
    async with topic_at(peer, name), Producer(peer.namesrv_address, batch_bytes=4000) as producer:
        results = await producer.send_many(messages, sharding_key=lambda message: str(message.keys))
        for key in range(7):
            own = results[key::7]
            assert len({result.queue for result in own}) == 1
            offsets = [result.queue_offset for result in own]
            assert offsets == sorted(offsets)
        (queue,) = {result.queue for result in await producer.send_many(messages, queue=results[0].queue)}
        assert queue == results[0].queue
        last = (await producer.queues(name))[-1]
        results = await producer.send_many(messages[:3], selector=lambda queues, message: queues[-1])
        assert {result.queue for result in results} == {last}
        with pytest.raises(errors.ConfigError):
            await producer.send_many(messages, queue=queue, sharding_key="k")


async def test_of_many_ordered_messages_those_not_sent_are_named(peer: Peer, name: str) -> None:
    messages = [Message(name, b"good"), Message(name, b""), Message(f"{name}/", b"x"), Message(name, b"good")]
    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        with pytest.raises(errors.SendIncomplete) as caught:
            await producer.send_many(messages, sharding_key="k")
    assert sorted(caught.value.failures) == [1, 2]
    assert [result is not None for result in caught.value.results] == [True, False, False, True]
    assert caught.value.results[3].queue_offset == caught.value.results[0].queue_offset + 1


def test_a_thread_sends_many_in_order(peer: Peer, name: str) -> None:
    rpc.create_topic(peer.broker_address, name, 4)
    with SyncProducer(peer.namesrv_address) as producer:
        results = producer.send_many([Message(name, b"%d" % number) for number in range(100)], sharding_key="k")
    assert [result.queue_offset for result in results] == list(range(100))
    assert len({result.queue for result in results}) == 1
