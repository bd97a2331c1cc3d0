"""New, open, closed: the life that producers and consumers share."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest

from gantrymq import Message, Producer, PullConsumer, PushConsumer, TransactionProducer, TransactionState
from gantrymq.client.connection.lifecycle import Client
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.connection.session import ClientSession
from gantrymq.errors import ClientClosed, ConnectError
from gantrymq.remoting.bodies import HeartbeatData
from tests.gantrymq.client.ports import closed_port


class Answers:
    def execute(self, message: object, argument: object, /) -> TransactionState:
        return TransactionState.COMMIT

    def check(self, message: object, /) -> TransactionState:
        return TransactionState.COMMIT


def push_consumer() -> PushConsumer:
    consumer = PushConsumer(closed_port(), group="g", listener=lambda messages: None)
    consumer.subscribe("T")
    return consumer


MAKES: dict[str, Callable[[], Client]] = {
    "producer": lambda: Producer(closed_port()),
    "transaction producer": lambda: TransactionProducer(closed_port(), listener=Answers(), group="g"),
    "push consumer": push_consumer,
    "pull consumer": lambda: PullConsumer(closed_port(), group="g"),
}


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
async def test_a_client_may_be_started_and_closed_twice_but_not_started_again(make: Callable[[], Client]) -> None:
    client = make()
    await client.close()  # never started: nothing to close
    await client.start()
    await client.start()
    await client.close()
    await client.close()
    with pytest.raises(ClientClosed, match="closed already"):
        await client.start()


async def test_calls_outside_of_a_clients_life_say_so() -> None:
    producer, consumer = Producer(closed_port()), PullConsumer(closed_port(), group="g")
    await refuses_calls(producer, consumer)
    async with producer, consumer:
        consumer.subscribe("T")
        assert await consumer.poll(timeout_s=0.01) == []
    await refuses_calls(producer, consumer)


async def refuses_calls(producer: Producer, consumer: PullConsumer) -> None:
    with pytest.raises(ClientClosed, match="not started, or closed already"):
        await producer.send(Message("T", b"x"))
    with pytest.raises(ClientClosed, match="not started, or closed already"):
        await consumer.poll()


class Slow(Client):
    """Its work ends when `may_end` is set."""

    def __init__(self) -> None:
        super().__init__(ClientSession(ClientOptions(name_servers=closed_port()), heartbeat=HeartbeatData))
        self.may_end = asyncio.Event()
        self.closings = 0

    async def _open(self) -> None:
        self._session.open()

    async def _shut_down(self) -> None:
        self.closings += 1
        await self.may_end.wait()
        await self._session.close()


async def test_a_client_that_is_closing_is_not_closed_a_second_time() -> None:
    client = Slow()
    await client.start()
    first = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    await client.close()
    client.may_end.set()
    await first
    assert client.closings == 1


async def test_two_starts_at_once_wait_for_the_same_opening() -> None:
    consumer = push_consumer()
    consumer.subscribe("SQL", sql="a > 1")  # `start` asks a name server about it, in vain
    outcomes = await asyncio.gather(consumer.start(), consumer.start(), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ConnectError, ClientClosed]


def test_a_client_that_is_forgotten_while_open_is_warned_of() -> None:
    async def forget() -> None:
        await PullConsumer(closed_port(), group="g").start()

    with pytest.warns(ResourceWarning, match="PullConsumer was not closed"):
        asyncio.run(forget())
        gc.collect()


async def test_a_close_that_was_interrupted_can_be_repeated() -> None:
    client = Slow()
    await client.start()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await client.close()
    client.may_end.set()
    await client.close()
    assert client.closings == 2
    with pytest.raises(ClientClosed):
        await client.start()
