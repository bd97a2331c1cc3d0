"""Interceptors around sends and listener calls, at a running broker."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path

import pytest

from gantrymq import (
    ConsumeCall,
    ConsumeFrom,
    ConsumeResult,
    Interceptor,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    RetryLater,
    SendCall,
    SendResult,
    SyncProducer,
    TransactionProducer,
    TransactionState,
)
from gantrymq.client.interceptors import ConsumeProceed, SendProceed
from gantrymq.errors import MessageRejected, WrongType
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.client.seen import until
from tests.harness import ServingCluster, serving

current: ContextVar[str] = ContextVar("current", default="")


class Noting(Interceptor):
    """Notes what passes, and marks each message that goes out."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self.notes = notes

    def collect(self, message: Message) -> None:
        self.notes.append(f"{self.name} collects in {threading.current_thread().name}")
        message.properties["collected"] = "yes"

    async def send(self, call: SendCall, proceed: SendProceed) -> SendResult:
        self.notes.append(f"{self.name} sends {len(call.messages)} of {call.group}")
        for message in call.messages:
            message.properties[self.name] = "seen"
        try:
            return await proceed()
        finally:
            self.notes.append(f"{self.name} sent")

    async def consume(self, call: ConsumeCall, proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        token = current.set(self.name)
        try:
            return await proceed()
        finally:
            current.reset(token)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[ServingCluster]:
    async with serving(tmp_path) as cluster:
        yield cluster


class Bookings:
    def execute(self, message: Message, argument: object) -> TransactionState:
        return TransactionState.COMMIT

    def check(self, message: MessageExt) -> TransactionState:
        return TransactionState.COMMIT


async def test_every_way_to_send_goes_through_the_interceptors(broker: ServingCluster) -> None:
    notes: list[str] = []
    outer, inner = Noting("outer", notes), Noting("inner", notes)
    received: list[MessageExt] = []
    producer = TransactionProducer(broker.namesrv_address, group="PG", listener=Bookings(), interceptors=[outer, inner])
    consumer = PushConsumer(
        broker.namesrv_address, group="G", listener=received.extend, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    consumer.subscribe("T")
    async with producer:
        await producer.send(Message("T", b"one"))
        assert notes == ["outer sends 1 of PG", "inner sends 1 of PG", "inner sent", "outer sent"]
        await producer.send_batch([Message("T", b"two"), Message("T", b"three")])
        await producer.send_in_transaction(Message("T", b"four"))
        assert not any("collects" in note for note in notes)
        await (await producer.send_soon(Message("T", b"five")))
        assert len(await producer.send_many([Message("T", b"six"), Message("T", b"seven")])) == 2
        assert len(await producer.send_many([Message("T", b"eight")], sharding_key="k")) == 1
        await producer.send_oneway(Message("T", b"nine"))
        async with consumer:
            await until(lambda: len(received) == 9)
    marks = {message.body: message.properties.keys() & {"outer", "inner", "collected"} for message in received}
    assert [marks[body] for body in (b"one", b"two", b"three", b"four")] == [{"outer", "inner"}] * 4
    assert [marks[body] for body in (b"five", b"six", b"seven", b"eight")] == [{"outer", "inner", "collected"}] * 4
    assert marks[b"nine"] == {"collected"}


async def test_a_plain_listener_sees_in_its_thread_what_an_interceptor_made_current(broker: ServingCluster) -> None:
    seen: list[str] = []

    def listener(messages: list[MessageExt]) -> None:
        seen.append(current.get())

    consumer = PushConsumer(
        broker.namesrv_address, group="G", listener=listener, interceptors=[Noting("outer", []), Noting("inner", [])],
        consume_from=ConsumeFrom.FIRST_OFFSET,
    )  # fmt: skip
    consumer.subscribe("T")
    async with Producer(broker.namesrv_address) as producer:
        await producer.send(Message("T", b"x"))
        async with consumer:
            await until(lambda: seen == ["inner"])
    assert current.get() == ""


def test_a_thread_that_sends_soon_collects_where_it_calls() -> None:
    notes: list[str] = []
    with SyncProducer(closed_port(), delivery_timeout_s=0.1, interceptors=[Noting("one", notes)]) as producer:
        assert producer.send_soon(Message("T", b"x")).exception() is not None
    assert notes[0] == f"one collects in {threading.current_thread().name}"


async def test_what_an_interceptor_raises_is_raised_by_the_send() -> None:
    class Refusing(Interceptor):
        async def send(self, call: SendCall, proceed: SendProceed) -> SendResult:
            raise MessageRejected("not today")

    async with Producer(closed_port(), interceptors=[Refusing()]) as producer:
        with pytest.raises(MessageRejected, match="not today"):
            await producer.send(Message("T", b"x"))


@pytest.mark.parametrize("wrong", [[print], print, [Interceptor]])
def test_what_is_no_interceptor_is_refused_at_once(wrong: object) -> None:
    with pytest.raises(WrongType, match="interceptors"):
        Producer(closed_port(), interceptors=wrong)  # type: ignore[arg-type]
