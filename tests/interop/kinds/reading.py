"""How Python reads each kind: as java/KindsReading.java does. A reader reads until its block ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from gantrymq import (
    ConsumeFrom,
    ConsumeResult,
    MessageExt,
    MessageModel,
    MessageQueue,
    PullConsumer,
    PushConsumer,
    SyncPushConsumer,
)
from gantrymq.errors import GantryError
from tests.interop.kinds.scene import Scene
from tests.waiting import aside, until

FIRST = ConsumeFrom.FIRST_OFFSET
LOOK_S = 0.05  # how often a reader looks whether what it needs is there


@contextlib.asynccontextmanager
async def push(
    scene: Scene, member: str = "one", *, topic: str = "", expression: str = "*", sql: str | None = None, **options: Any
) -> AsyncIterator[PushConsumer]:
    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        scene.saw(member, messages)
        is_put_off = scene.kind == "retry" and messages[0].reconsume_times == 0
        return ConsumeResult.LATER if is_put_off else ConsumeResult.SUCCESS

    consumer = PushConsumer(scene.namesrv, group=scene.group, listener=listener, consume_from=FIRST, **options)
    consumer.subscribe(topic or scene.topic, expression, sql=sql)
    async with consumer:
        yield consumer


@contextlib.asynccontextmanager
async def blocking(scene: Scene) -> AsyncIterator[None]:
    consumer = SyncPushConsumer(
        scene.namesrv, group=scene.group, listener=lambda messages: scene.saw("one", messages), consume_from=FIRST
    )
    consumer.subscribe(scene.topic)
    await asyncio.to_thread(consumer.start)
    try:
        yield
    finally:
        await asyncio.to_thread(consumer.close)


@contextlib.asynccontextmanager
async def broadcast(scene: Scene) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for member in ("one", "two"):
            mine = {"instance_name": member, "offsets_folder": scene.folder / member}
            await stack.enter_async_context(push(scene, member, model=MessageModel.BROADCASTING, **mine))
        yield


@contextlib.asynccontextmanager
async def dead_letters(scene: Scene) -> AsyncIterator[None]:
    topic = f"%DLQ%{scene.dead_group}"

    async def read() -> None:
        while True:  # the first dead letter makes the topic
            with contextlib.suppress(GantryError):
                await scene.admin.topics.route(topic)
                break
            await asyncio.sleep(LOOK_S)
        async with push(scene, topic=topic):
            await asyncio.Event().wait()

    async with aside(read()):
        yield


@contextlib.asynccontextmanager
async def locks(scene: Scene) -> AsyncIterator[None]:
    """A member takes one message and leaves; another goes on with its queues."""
    has_one = asyncio.Event()

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        if has_one.is_set():
            return ConsumeResult.LATER
        has_one.set()
        scene.saw("one", messages)
        return ConsumeResult.SUCCESS

    first = PushConsumer(scene.namesrv, group=scene.group, listener=listener, consume_from=FIRST, ordered=True)
    first.subscribe(scene.topic)

    async def read() -> None:
        async with first:
            await has_one.wait()
        async with push(scene, "two", ordered=True):
            await asyncio.Event().wait()

    async with aside(read()):
        yield


@contextlib.asynccontextmanager
async def request(scene: Scene) -> AsyncIterator[None]:
    async def listener(messages: list[MessageExt]) -> None:
        scene.saw("one", messages)
        for message in messages:
            await consumer.reply(message, b"re: " + message.body)

    consumer = PushConsumer(scene.namesrv, group=scene.group, listener=listener, consume_from=FIRST)
    consumer.subscribe(scene.topic)
    async with consumer:
        yield


@contextlib.asynccontextmanager
async def pull(scene: Scene) -> AsyncIterator[None]:
    consumer = PullConsumer(scene.namesrv, group=scene.group, consume_from=FIRST, auto_commit=False)

    async def read() -> None:
        consumer.subscribe(scene.topic)
        await keep_polling(scene, consumer)

    async with consumer, aside(read()):
        yield


async def keep_polling(scene: Scene, consumer: PullConsumer) -> None:
    while True:
        messages = await consumer.poll(1.0)
        scene.saw("one", messages)
        if messages:
            await consumer.commit()


@contextlib.asynccontextmanager
async def assign(scene: Scene) -> AsyncIterator[None]:
    """Every queue from its second message on, once that is there."""
    consumer = PullConsumer(scene.namesrv, group=scene.group, auto_commit=False)
    queues: list[MessageQueue] = []

    async def is_known() -> bool:
        with contextlib.suppress(GantryError):
            queues[:] = await consumer.queues(scene.topic)
        return bool(queues)

    async def read() -> None:
        await until(is_known)
        consumer.pause(queues)
        await consumer.assign(queues)
        for queue in queues:
            while True:
                with contextlib.suppress(GantryError):  # it did not answer in time
                    await consumer.seek(queue, 2)  # refused while the queue ends before it
                    await consumer.seek(queue, 1)
                    break
                await asyncio.sleep(LOOK_S)
        consumer.resume(queues)
        await keep_polling(scene, consumer)

    async with consumer, aside(read()):
        yield


@contextlib.asynccontextmanager
async def queries(scene: Scene) -> AsyncIterator[None]:
    """By key and by id, once the index has them."""

    async def by_key() -> bool:
        with contextlib.suppress(GantryError):  # it did not answer in time
            found[:] = await scene.admin.messages.find_by_key(scene.topic, "the-key")
        return bool(found)

    async def by_id() -> bool:
        with contextlib.suppress(GantryError):
            if message := await scene.admin.messages.find_by_id(scene.topic, found[0].msg_id):
                scene.saw("id", [message])
                return True
        return False

    async def read() -> None:
        await until(by_key)
        scene.saw("key", found)
        await until(by_id)

    found: list[MessageExt] = []

    async with aside(read()):
        yield
