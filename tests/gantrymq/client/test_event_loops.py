"""A client lives in one event loop: used in another it says so at once, where it would wait for ever."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from appliance.bench.peer import Peer
from gantrymq import (
    AdminClient,
    App,
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    TransactionProducer,
    TransactionState,
)
from gantrymq.errors import ClientClosed, GantryError
from gantrymq.message.model import MessageQueue
from tests.waiting import WITHIN_S

TOPIC = "Loops"
QUEUE = MessageQueue(TOPIC, "broker-a", 0)
FORK = multiprocessing.get_context("fork")
AT_ONCE_S = 5.0  # of the loop's own time: no call waits for anything

Loop = asyncio.Runner
Calls = dict[str, Callable[[Any], Awaitable[object]]]

PRODUCER: Calls = {
    "send": lambda producer: producer.send(Message(TOPIC, b"x")),
    "send in order": lambda producer: producer.send(Message(TOPIC, b"x"), sharding_key="k"),
    "batch": lambda producer: producer.send_batch([Message(TOPIC, b"x"), Message(TOPIC, b"y")]),
    "oneway": lambda producer: producer.send_oneway(Message(TOPIC, b"x")),
    "soon": lambda producer: producer.send_soon(Message(TOPIC, b"x")),
    "many": lambda producer: producer.send_many([Message(TOPIC, b"x")]),
    "request": lambda producer: producer.request(Message(TOPIC, b"x"), 60),
    "queues": lambda producer: producer.queues(TOPIC),
    "flush": lambda producer: producer.flush(),
    "start": lambda producer: producer.start(),
    "close": lambda producer: producer.close(),
}
TRANSACTIONS: Calls = {
    "transaction": lambda producer: producer.send_in_transaction(Message(TOPIC, b"x")),
    "prepare": lambda producer: producer.prepare(Message(TOPIC, b"x")),
    "close": lambda producer: producer.close(),
}
PULL: Calls = {
    "poll": lambda consumer: consumer.poll(60),
    "queues": lambda consumer: consumer.queues(TOPIC),
    "commit": lambda consumer: consumer.commit(),
    "committed": lambda consumer: consumer.committed(QUEUE),
    "seek": lambda consumer: consumer.seek(QUEUE, 0),
    "next": lambda consumer: anext(aiter(consumer)),
    "close": lambda consumer: consumer.close(),
}
PUSH: Calls = {"start": lambda consumer: consumer.start(), "close": lambda consumer: consumer.close()}
ADMIN: Calls = {
    "topics": lambda admin: admin.topics.names(),
    "masters": lambda admin: admin.cluster.masters(),
    "close": lambda admin: admin.close(),
}


class Commits:
    def execute(self, message: object, argument: object, /) -> TransactionState:
        return TransactionState.COMMIT

    def check(self, message: object, /) -> TransactionState:
        return TransactionState.COMMIT


@pytest.fixture(scope="module")
def address(peer_of: Callable[[str], Peer]) -> str:
    return peer_of("gantry").namesrv_address


@pytest.fixture
def loops() -> Iterator[Callable[[], Loop]]:
    """Makes loops that stand still, and are not closed, while another one runs."""
    made: list[Loop] = []

    def make() -> Loop:
        made.append(asyncio.Runner())
        return made[-1]

    yield make
    for each in made:
        each.close()


async def consuming(address: str) -> PushConsumer:
    consumer = PushConsumer(address, group="loops-push", listener=lambda messages: None)
    consumer.subscribe(TOPIC)
    await consumer.start()
    return consumer


async def pulling(address: str) -> PullConsumer:
    consumer = PullConsumer(address, group="loops-pull")
    await consumer.start()
    await consumer.assign(await consumer.queues(TOPIC))
    return consumer


async def producing(address: str) -> Producer:
    producer = Producer(address)
    await producer.start()
    await producer.send(Message(TOPIC, b"first"))
    return producer


async def in_transactions(address: str) -> TransactionProducer:
    producer = TransactionProducer(address, listener=Commits(), group="loops")
    await producer.start()
    await producer.send(Message(TOPIC, b"first"))
    return producer


async def administering(address: str) -> AdminClient:
    admin = AdminClient(address)
    await admin.cluster.masters()
    return admin


CLIENTS: dict[str, tuple[Callable[[str], Awaitable[Any]], Calls]] = {
    "producer": (producing, PRODUCER), "transaction producer": (in_transactions, TRANSACTIONS),
    "pull consumer": (pulling, PULL), "push consumer": (consuming, PUSH), "admin": (administering, ADMIN),
}  # fmt: skip
EACH = [pytest.param(make, call, id=f"{name}: {what}") for name, (make, calls) in CLIENTS.items()
        for what, call in calls.items()]  # fmt: skip


async def made(make: Callable[[str], Awaitable[Any]], address: str) -> Any:
    async with Producer(address) as producer:
        await producer.send(Message(TOPIC, b"the topic is made"))
    return await make(address)


async def limited(call: Awaitable[Any]) -> Any:
    async with asyncio.timeout(WITHIN_S):
        return await call


def refused_at_once(loop: Loop, call: Callable[[Any], Awaitable[object]], client: Any, why: str) -> None:
    async def called() -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(ClientClosed, match=why):
            await limited(call(client))
        return asyncio.get_running_loop().time() - began

    assert loop.run(called()) < AT_ONCE_S


@pytest.mark.parametrize(("make", "call"), EACH)
def test_a_call_in_another_event_loop_is_refused_at_once(
    address: str, loops: Callable[[], Loop], make: Callable[[str], Awaitable[Any]], call: Callable[[Any], Any]
) -> None:
    first, second = loops(), loops()
    client = first.run(made(make, address))
    refused_at_once(second, call, client, "started in another event loop")
    first.run(limited(client.close()))  # it is as it was


@pytest.mark.parametrize(("make", "call"), EACH)
def test_a_call_after_the_loop_was_closed_says_that(
    address: str, loops: Callable[[], Loop], make: Callable[[str], Awaitable[Any]], call: Callable[[Any], Any]
) -> None:
    first, second = asyncio.Runner(), loops()
    client = first.run(made(make, address))
    first.close()  # under the client, as pytest-asyncio does
    refused_at_once(second, call, client, "started in an event loop that is closed")
    client.abandon()


def test_clients_that_were_never_started_are_at_home_in_any_loop(address: str, loops: Callable[[], Loop]) -> None:
    first, second = loops(), loops()
    producer, admin = first.run(new(Producer, address)), first.run(new(AdminClient, address))
    first.close()
    second.run(limited(producer.close()))
    second.run(limited(producing_with(producer)))
    second.run(limited(admin.cluster.masters()))
    second.run(limited(admin.close()))


async def new(kind: Callable[[str], Any], address: str) -> Any:
    return kind(address)


async def producing_with(producer: Producer) -> None:
    async with producer:
        await producer.send(Message(TOPIC, b"x"))


def test_sockets_of_a_client_whose_loop_was_closed_are_let_go(address: str, loops: Callable[[], Loop]) -> None:
    first, second = asyncio.Runner(), loops()
    producer = first.run(made(producing, address))
    first.close()
    with pytest.raises(ClientClosed, match="is closed"):
        second.run(producer.close())
    second.run(limited(producer.close()))  # it counts as closed now
    with pytest.raises(ClientClosed, match="is closed"):
        second.run(producer.start())


def sending_in_the_child(producer: Producer, told: multiprocessing.Queue[str]) -> None:
    try:
        asyncio.run(limited(producer.send(Message(TOPIC, b"child"))))
    except GantryError as exc:
        told.put(str(exc))


def test_a_client_of_before_a_fork_says_so_in_the_child(address: str, loops: Callable[[], Loop]) -> None:
    loop = loops()
    producer = loop.run(made(producing, address))
    told: multiprocessing.Queue[str] = FORK.Queue()
    child = FORK.Process(target=sending_in_the_child, args=(producer, told))
    child.start()
    assert "started before a fork" in told.get(timeout=WITHIN_S)
    child.join()
    loop.run(limited(producer.send(Message(TOPIC, b"parent"))))
    loop.run(limited(producer.close()))


def test_an_applications_publisher_in_another_loop_says_so(address: str, loops: Callable[[], Loop]) -> None:
    first, second = loops(), loops()
    app = App(address)
    words = app.publisher(TOPIC, str)
    first.run(app.start())
    refused_at_once(second, lambda _: words.send("x"), app, "started in another event loop")
    first.run(limited(app.close()))


def test_a_blocking_publisher_whose_loop_was_closed_says_so(address: str) -> None:
    app = App(address)
    words = app.publisher(TOPIC, str)
    with asyncio.Runner() as loop:
        loop.run(app.start())
    with pytest.raises(ClientClosed, match="event loop that is closed"):
        words.send_blocking("x")


def test_a_subscription_may_be_changed_from_a_thread_without_a_loop(address: str, loops: Callable[[], Loop]) -> None:
    first, second = loops(), loops()
    consumer = first.run(made(consuming, address))
    with pytest.raises(ClientClosed, match="started in another event loop"):
        second.run(subscribing(consumer))
    thread = threading.Thread(target=consumer.subscribe, args=("FromAThread",))
    thread.start()
    thread.join()
    first.run(limited(consumer.close()))


async def subscribing(consumer: PushConsumer) -> None:
    consumer.subscribe("FromALoop")
