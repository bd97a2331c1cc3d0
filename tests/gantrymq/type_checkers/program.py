"""What an application writes, for type checkers only: each line marked `rejected` has to be an error for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import gantrymq
import gantrymq.contrib.django
from gantrymq import (
    ConsumeResult,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    SyncAdminClient,
    SyncPushConsumer,
    SyncTransactionProducer,
    TransactionProducer,
    TransactionState,
)


async def takes_a_list(messages: list[MessageExt]) -> None: ...


async def takes_a_sequence(messages: Sequence[MessageExt]) -> ConsumeResult:
    return ConsumeResult.SUCCESS


def takes_an_iterable(messages: Iterable[MessageExt]) -> ConsumeResult:
    return ConsumeResult.LATER


def takes_bodies(messages: Sequence[bytes]) -> None: ...


class Checks:
    def check(self, message: MessageExt) -> TransactionState:
        return TransactionState.COMMIT


class Nothing: ...


SERVER = "127.0.0.1:9876"
PushConsumer(SERVER, group="g", listener=takes_a_list)
PushConsumer(SERVER, group="g", listener=takes_a_sequence)
SyncPushConsumer(SERVER, group="g", listener=takes_a_sequence)
SyncPushConsumer(SERVER, group="g", listener=takes_an_iterable)
PushConsumer(SERVER, group="g", listener=takes_bodies)  # rejected
SyncPushConsumer(SERVER, group="g", listener=takes_bodies)  # rejected
PushConsumer(SERVER, group="g", listener=takes_a_list, batch_sise=3)  # rejected


async def sends(producer: Producer) -> int:
    await producer.send(Message("t", b"x"), queue=3)  # rejected
    return (await producer.send(Message("t", b"x"))).queue_offset


async def in_a_block(order: Message) -> None:
    async with (
        TransactionProducer(SERVER, listener=Checks(), group="g") as producer,
        producer.transaction(order) as prepared,
    ):
        print(prepared.queue_offset)


SyncTransactionProducer(SERVER, listener=Checks(), group="g")
TransactionProducer(SERVER, listener=Nothing(), group="g")  # rejected

with SyncAdminClient(SERVER) as admin:
    names: list[str] = admin.topics.names()
    admin.topics.delete(1)  # rejected
    admin.topics.no_such_method()  # rejected

gantrymq.Producer(SERVER)
gantrymq.Producr(SERVER)  # rejected
gantrymq.contrib.django.get_producer()
gantrymq.contrib.django.get_producr()  # rejected
