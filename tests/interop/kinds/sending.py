"""What Python sends of each kind: the same as java/KindsSending.java."""

from __future__ import annotations

import asyncio
from typing import Any

from gantrymq import (
    ConsumeFrom,
    ConsumeResult,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    SyncProducer,
    TransactionProducer,
    TransactionState,
)
from gantrymq.message.compression import CompressType
from tests.interop.kinds.scene import Scene
from tests.waiting import WITHIN_S

MANY = 100
QUESTIONS = ("one", "grüße", "long " * 2000)


def message(scene: Scene, body: str, **more: Any) -> Message:
    more = {"tags": "T", "keys": f"k-{body if len(body) < 20 else 'long'}", **more}
    return Message(scene.topic, body.encode(), **{"properties": {"p": "ü"}, **more})


async def producer_of(scene: Scene, **options: Any) -> Producer:
    return await scene.running(Producer(scene.namesrv, group=f"{scene.topic}-producer", **options))


async def plain(scene: Scene, *bodies: str, **options: Any) -> None:
    producer = await producer_of(scene, **options)
    for body in bodies:
        await producer.send(message(scene, body))


async def single(scene: Scene) -> None:
    producer = await producer_of(scene)
    queues = await producer.queues(scene.topic)
    await producer.send(message(scene, "sync"))
    await asyncio.gather(producer.send(message(scene, "async")))
    await producer.send_oneway(message(scene, "oneway"))
    await producer.send(message(scene, "queue"), queue=queues[3])
    await producer.send(message(scene, "selector"), selector=lambda all_queues, _: all_queues[1])


async def many(scene: Scene) -> None:
    producer = await producer_of(scene, linger_s=0.005)
    await producer.send_many(message(scene, f"{number:03}") for number in range(MANY))
    soon = [await producer.send_soon(message(scene, f"{MANY + number}")) for number in range(MANY)]
    await asyncio.gather(*soon)


async def blocking(scene: Scene) -> None:
    def send() -> None:
        with SyncProducer(scene.namesrv, group=f"{scene.topic}-producer") as producer:
            producer.send(message(scene, "one"))
            producer.send_soon(message(scene, "two")).result(WITHIN_S)

    await asyncio.to_thread(send)


async def batch(scene: Scene) -> None:
    await (await producer_of(scene)).send_batch([message(scene, f"b{number}") for number in range(5)])


async def properties(scene: Scene) -> None:
    producer = await producer_of(scene)
    rich = {"tags": "Tagä", "keys": ["k1", "k2"], "properties": {"p": "ü🚀"}, "flag": 7}
    await producer.send(message(scene, "ä消息🚀", **rich))
    await producer.send(Message(scene.topic, b"-"))


async def packed(scene: Scene, *codecs: CompressType) -> None:
    for codec in codecs:
        await plain(scene, f"{codec} " * 2000, compress_type=codec, compress_from_bytes=1000)


async def delayed(scene: Scene) -> None:
    await (await producer_of(scene)).send(message(scene, "later", delay_level=2))


class Books:
    """A message's argument is what its local transaction comes to; when asked, "asked" was committed."""

    async def execute(self, message: Message, state: Any, /) -> TransactionState:
        outcome: TransactionState = state
        return outcome

    async def check(self, message: MessageExt, /) -> TransactionState:
        return TransactionState.COMMIT if message.body == b"asked" else TransactionState.ROLLBACK


async def transaction(scene: Scene) -> None:
    producer = await scene.running(
        TransactionProducer(scene.namesrv, group=f"{scene.topic}-producer", listener=Books())
    )
    await producer.send_in_transaction(message(scene, "rollback"), TransactionState.ROLLBACK)
    await producer.send_in_transaction(message(scene, "commit"), TransactionState.COMMIT)
    await producer.send_in_transaction(message(scene, "asked"), TransactionState.UNKNOWN)


async def keyed(scene: Scene) -> None:
    producer = await producer_of(scene)
    for number in range(24):
        key = "abc"[number % 3]
        await producer.send(message(scene, f"{key}-{number // 3}"), sharding_key=key)


async def tags(scene: Scene) -> None:
    producer = await producer_of(scene)
    for body in ("A0", "B0", "C0", "A1", "B1", "C1"):
        await producer.send(message(scene, body, tags=body[0]))


async def sql(scene: Scene) -> None:
    producer = await producer_of(scene)
    for price in ("5", "15", "25"):
        await producer.send(message(scene, price, properties={"price": price, "p": "ü"}))


async def dead_letters(scene: Scene) -> None:
    async def fail(messages: list[MessageExt]) -> ConsumeResult:
        return ConsumeResult.LATER

    consumer = PushConsumer(
        scene.namesrv,
        group=scene.dead_group,
        listener=fail,
        max_reconsume_times=0,
        consume_from=ConsumeFrom.FIRST_OFFSET,
    )
    consumer.subscribe(scene.topic)
    await scene.running(consumer)
    await plain(scene, "dead")


async def assign(scene: Scene) -> None:
    producer = await producer_of(scene)
    for queue in await producer.queues(scene.topic):
        for body in ("first", "second"):
            await producer.send(message(scene, body), queue=queue)


async def request(scene: Scene) -> None:
    producer = await producer_of(scene)
    for question in QUESTIONS:
        reply = await producer.request(message(scene, question), WITHIN_S)
        assert reply.body.decode() == f"re: {question}"


async def queries(scene: Scene) -> None:
    await (await producer_of(scene)).send(message(scene, "found", keys="the-key"))
