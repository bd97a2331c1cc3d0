"""An application without a broker, for unit tests: what is published reaches its handlers in the same process.

Payloads are written and read, results counted and failures tried again as with a broker; what is different:

- a message that comes again, and one with a delay, comes at once;
- a group's messages come one after the other, in the order they were sent;
- tries have an end for ordered groups too, after RetryLater as well;
- SQL conditions are refused: only brokers know the language;
- nothing is kept: messages without a handler are only in `published`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from gantrymq.app.application import App
from gantrymq.app.handlers import Handler, HandlerGroup
from gantrymq.client.connection.send_codec import MESSAGE_BYTES_MAX, pack
from gantrymq.client.consume.listener_calls import ListenerCalls
from gantrymq.client.consume.options import MAX_RECONSUME_TIMES
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.client.consume.subscription import is_wanted, parse_subscription
from gantrymq.client.interceptors import ConsumeCall, ConsumeProceed, SendCall, around_consume, around_send
from gantrymq.client.results import ConsumeResult, DeadLetter, RetryLater, SendResult, SendStatus
from gantrymq.errors import ConfigError
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.message.properties import decode_properties
from gantrymq.message.topics import dlq_topic

HOST = ("127.0.0.1", 0)
NAME = "memory"


class _MemberOfGroup:
    """A group's listener, and what waits for it."""

    def __init__(self, app: App, group: HandlerGroup) -> None:
        self.group = group
        limit = group.options.get("max_reconsume_times")
        self.tries_max = 1 + (MAX_RECONSUME_TIMES if limit is None else limit)
        self.waiting: asyncio.Queue[MessageExt] = asyncio.Queue()
        self._app = app
        around = self._around if app.options.interceptors else None
        self.calls = ListenerCalls(group.listener(), ConsumeCounters(), concurrency=1, around=around)

    async def _around(self, messages: list[MessageExt], proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        call = ConsumeCall(messages, self.group.name, NAME)
        return await around_consume(self._app.options.interceptors, call, proceed)

    def wants(self, message: MessageExt) -> bool:
        """Whether a handler has subscribed to it."""
        return any(_selects(handler, message) for handler in self.group)


class Memory:
    """What the application did: `published`, `dead_letters`; `settled` waits until everything is consumed."""

    def __init__(self, app: App) -> None:
        self.published: list[MessageExt] = []
        self._app = app
        self._dead: dict[str, list[MessageExt]] = {}
        self._members = [_MemberOfGroup(app, group) for group in app.groups.values()]
        self._offsets: dict[str, int] = {}
        self._unsettled = 0
        self._changed = asyncio.Event()

    def bodies(self, topic: str) -> list[bytes]:
        """The bodies that were published to the topic."""
        return [message.body for message in self.published if message.topic == topic]

    def dead_letters(self, group: str) -> list[MessageExt]:
        """What the group could not consume; the properties CONSUME_ERROR and CONSUME_ERROR_TEXT say why."""
        return list(self._dead.get(group, ()))

    async def settled(self) -> None:
        """Wait until every message so far is consumed or a dead letter, and what these published, too."""
        while self._unsettled:
            self._changed.clear()
            await self._changed.wait()

    async def send(
        self, message: Message, *, sharding_key: str | None = None, timeout_s: float | None = None
    ) -> SendResult:
        """Publish a message, as if it came from elsewhere."""

        async def proceed() -> SendResult:
            return self._store(message)

        call = SendCall([message], self._app.options.group, NAME)
        return await around_send(self._app.options.interceptors, call, proceed)

    async def send_soon(self, message: Message, *, sharding_key: str | None = None) -> asyncio.Future[SendResult]:
        """As `send`; the future has its result already."""
        future: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
        future.set_result(await self.send(message, sharding_key=sharding_key))
        return future

    def _store(self, message: Message) -> SendResult:
        offset = self._offsets[message.topic] = self._offsets.get(message.topic, -1) + 1
        stored = stored_message(message, offset, self._app.options.message_bytes_max)
        self.published.append(stored)
        self._deliver(stored)
        queue = MessageQueue(stored.topic, NAME, 0)
        return SendResult(SendStatus.SEND_OK, stored.msg_id, stored.offset_msg_id, queue, offset)

    def _deliver(self, message: MessageExt) -> None:
        for member in self._members:
            if member.wants(message):
                self._unsettled += 1
                member.waiting.put_nowait(dataclasses.replace(message, properties=dict(message.properties)))

    async def open(self, stack: AsyncExitStack) -> None:
        """Begin to consume, until the stack is closed."""
        self._app.send_through(self)
        for member in self._members:
            member.calls.start()
            stack.callback(member.calls.close)
            task = asyncio.get_running_loop().create_task(self._consume(member), name=f"memory {member.group.name}")
            stack.push_async_callback(_cancelled, task)

    async def _consume(self, member: _MemberOfGroup) -> None:
        while True:
            message = await member.waiting.get()
            try:
                await self._try(member, message)
            finally:
                self._unsettled -= 1
                self._changed.set()

    async def _try(self, member: _MemberOfGroup, message: MessageExt) -> None:
        """Give it to the listener until that is done with it, or it is a dead letter."""
        while True:
            result = await member.calls.consume(message.topic, [message])
            if result is ConsumeResult.SUCCESS or (isinstance(result, RetryLater) and not result.again([message])):
                return
            if isinstance(result, DeadLetter) or message.tries >= member.tries_max:
                break
            message.reconsume_times += 1
        group = member.group.name
        dead = dataclasses.replace(message, topic=dlq_topic(group), reconsume_times=0)
        self._dead.setdefault(group, []).append(dead)
        self._deliver(dead)


def stored_message(message: Message, offset: int = 0, bytes_max: int = MESSAGE_BYTES_MAX) -> MessageExt:
    """What a consumer would get of it: checked, with an id, and its properties as on the wire."""
    packed = pack(message, bytes_max=bytes_max)
    now_ms = time.time_ns() // 1_000_000
    return MessageExt(
        topic=packed.topic,
        body=message.body,
        flag=packed.flag,
        properties=decode_properties(packed.properties),
        queue_id=0,
        queue_offset=offset,
        physical_offset=offset,
        store_size=len(packed.body),
        sys_flag=0,
        born_timestamp=now_ms,
        born_host=HOST,
        store_timestamp=now_ms,
        store_host=HOST,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
        broker_name=NAME,
    )


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


def _selects(handler: Handler[..., object], message: MessageExt) -> bool:
    subscription = parse_subscription(handler.topic, handler.expression, 0)
    return handler.topic == message.topic and is_wanted(subscription, message)


@contextlib.asynccontextmanager
async def in_memory(app: App) -> AsyncIterator[Memory]:
    """Run the application without a broker while the block runs, its lifespan included."""
    for group in app.groups.values():
        for handler in group:
            if handler.sql is not None:
                raise ConfigError(f"{handler.topic}: only a broker knows SQL conditions: use gantrymq.testing's")
    memory = Memory(app)
    await app.start_with(memory.open)
    try:
        yield memory
    finally:
        await app.close()
