"""Producer: sends messages, and sends them again elsewhere when that may help.

A message goes to the topic's queues in turn. When a broker can't be reached, does not answer or says that it can't
store now, the next try takes another broker if the topic has one; all tries share the call's timeout. A message sent to
an explicit queue, one-way messages and answers such as "busy" are never tried again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self, Unpack

from gantrymq.client.connection.send_codec import (
    COMPRESS_FROM_BYTES,
    Outgoing,
    pack,
    pack_batch,
    send_request,
    send_result,
)
from gantrymq.client.connection.session import ClientSession, ConnectionOptions
from gantrymq.client.produce.request_reply import WaitingRequests, reply_to
from gantrymq.client.produce.sender import QueueSelector, Sender, queue_by_hash
from gantrymq.client.produce.trace import SendTracer, TraceDispatcher
from gantrymq.client.results import SendResult
from gantrymq.errors import ConfigError, GantryError, SendIncomplete
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.message.topics import TRACE_TOPIC, check_group
from gantrymq.remoting.bodies import HeartbeatData, ProducerData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

DEFAULT_GROUP = "DEFAULT_PRODUCER"


# a message on its way: index, message, queue, broker's address, answer; for the trace the message and when it was sent
_Sent = tuple[int, Outgoing, MessageQueue, str, asyncio.Future[RemotingCommand], Message | None, float]


class Producer:
    """Sends messages: `async with Producer("host:port") as producer: await producer.send(Message("topic", b"body"))`.

    retries: further tries after the first. timeout_s: for a whole call. compress_from_bytes: smaller bodies travel as
    they are. trace: tell `trace_topic` of every message sent.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str = DEFAULT_GROUP,
        timeout_s: float = 3.0,
        retries: int = 2,
        compress_from_bytes: int = COMPRESS_FROM_BYTES,
        trace: bool = False,
        trace_topic: str = TRACE_TOPIC,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        check_group(group)
        self.group = group
        self._timeout_s = timeout_s
        self._compress_from_bytes = compress_from_bytes
        self._session = ClientSession(name_servers, heartbeat=self._heartbeat, **options)
        self._sender = Sender(self._session, group, retries=retries)
        self._requests = WaitingRequests()
        self._session.answer_requests({RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._requests.reply_pushed})
        self._traces = TraceDispatcher(self._session, group, topic=trace_topic) if trace else None
        self._tracer = None if self._traces is None else SendTracer(self._traces, group)

    @property
    def client_id(self) -> str:
        """The name under which brokers list this client."""
        return self._session.client_id

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Make the producer usable. Nothing is connected yet: the first message does that."""
        if self._traces is not None and not self._session.is_open:
            self._session.background.start(self._traces.run(), "send traces")
        self._session.open()

    async def close(self) -> None:
        """Leave the brokers and close the connections. Calls in flight fail: await them first."""
        if self._traces is not None and self._session.is_open:
            await self._traces.flush()
        await self._session.close(producer_group=self.group)

    # -- sending ------------------------------------------------------------------------------------------------------

    async def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        sharding_key: str | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Send one message and wait until the broker stored it.

        `queue`, `selector` or `sharding_key` (equal keys: same queue, so ordered consumers see their order) choose the
        queue: such a message is tried once. Otherwise it goes to the queues in turn and is tried again after failures
        that may pass.
        """
        outgoing = pack(message, compress_from_bytes=self._compress_from_bytes)
        if sharding_key is not None:
            _check_only_choice(queue, selector)
            selector = queue_by_hash(sharding_key)
        if selector is not None:
            queue = selector(await self.queues(message.topic), message)
        return await self._send([message], outgoing, queue, timeout_s)

    async def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> SendResult:
        """Send messages of one topic as one request into one queue: all are stored, or none. 4 MiB at most."""
        return await self._send(messages, pack_batch(messages), queue, timeout_s)

    async def _send(
        self, messages: Sequence[Message], outgoing: Outgoing, queue: MessageQueue | None, timeout_s: float | None
    ) -> SendResult:
        started = time.monotonic()
        if queue is None:
            result = await self._sender.send_anywhere(outgoing, timeout_s or self._timeout_s)
        else:
            await self._sender.routes_known(queue.topic)
            result = await self._sender.send_to(queue, outgoing, timeout_s or self._timeout_s)
        if self._tracer is not None:
            self._trace(messages, result, started)
        return result

    def _trace(self, messages: Sequence[Message], result: SendResult, started: float) -> None:
        assert self._tracer is not None
        address = self._session.routes.address(result.queue.broker_name) or ""
        self._tracer.sent(messages, result, address, time.monotonic() - started)

    async def request(
        self,
        message: Message,
        timeout_s: float | None = None,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
    ) -> MessageExt:
        """Send a message and wait for what its consumer answers. RequestTimeout when no answer comes in time, which
        does not say whether the message was consumed."""
        timeout = timeout_s or self._timeout_s
        deadline = time.monotonic() + timeout
        self._session.require_open()
        correlation_id, request = self._requests.begin(message, self.client_id, timeout)
        try:
            await self._sender.routes_known(request.topic)
            await self._session.greet_new_brokers()
            await self.send(request, queue=queue, selector=selector, timeout_s=timeout)
            return await self._requests.answer(correlation_id, request.topic, max(deadline - time.monotonic(), 0))
        finally:
            self._requests.end(correlation_id)

    async def reply(self, request: MessageExt, body: bytes, *, timeout_s: float | None = None) -> SendResult:
        """Answer a request that a consumer got, through the broker the requester is connected to."""
        return await self._sender.reply(request, reply_to(request, body), timeout_s or self._timeout_s)

    async def send_oneway(
        self, message: Message, *, queue: MessageQueue | None = None, selector: QueueSelector | None = None
    ) -> None:
        """Send one message without asking for an answer: fast, and lost in silence when anything goes wrong."""
        outgoing = pack(message, compress_from_bytes=self._compress_from_bytes)
        queues = await self.queues(message.topic)
        if selector is not None:
            queue = selector(queues, message)
        elif queue is None:
            queue = self._sender.pick(queues)
        request = send_request(outgoing, self.group, queue.queue_id)
        await self._session.remoting.invoke_oneway(self._sender.address_of(queue), request, timeout_s=self._timeout_s)

    async def send_many(
        self, messages: Iterable[Message], *, in_flight: int = 256, timeout_s: float | None = None
    ) -> list[SendResult]:
        """Send messages one by one, many at a time, and return their results in order.

        At most `in_flight` wait for their answers at once. Those that fail are tried again as `send` would; when some
        still fail, SendIncomplete says which, after all others were sent.
        """
        timeout = timeout_s or self._timeout_s
        window: deque[_Sent] = deque()
        results: list[SendResult | None] = []
        failures: dict[int, GantryError] = {}

        again: list[tuple[int, Outgoing, MessageQueue, GantryError, Message | None, float]] = []

        async def settle_oldest() -> None:
            index, outgoing, queue, address, future, traced, started = window.popleft()
            try:
                results[index] = result = send_result(await future, outgoing, queue.broker_name, address)
                if traced is not None:
                    self._trace([traced], result, started)
            except GantryError as exc:
                again.append((index, outgoing, queue, exc, traced, started))
                if len(again) >= in_flight:
                    await try_again()

        async def try_again() -> None:
            failed = again.copy()
            again.clear()
            tries = (self._sender.send_again(outgoing, queue, exc, timeout) for _, outgoing, queue, exc, *_ in failed)
            for (index, *_, traced, started), outcome in zip(
                failed, await asyncio.gather(*tries, return_exceptions=True), strict=True
            ):
                if isinstance(outcome, GantryError):
                    failures[index] = outcome
                elif isinstance(outcome, BaseException):
                    raise outcome
                else:
                    results[index] = outcome
                    if traced is not None:
                        self._trace([traced], outcome, started)

        remoting = self._session.remoting
        for index, message in enumerate(messages):
            results.append(None)
            if len(window) >= in_flight:
                await settle_oldest()
            try:
                outgoing = pack(message, compress_from_bytes=self._compress_from_bytes)
                queue = self._sender.pick(await self._sender.queues(message.topic))
            except GantryError as exc:
                failures[index] = exc
                continue
            traced, started = None if self._tracer is None else message, time.monotonic()
            try:
                address = self._sender.address_of(queue)
                request = send_request(outgoing, self.group, queue.queue_id)
                connection = await remoting.connection(address, request, timeout)
                future = remoting.submit(connection, request, timeout)
                window.append((index, outgoing, queue, address, future, traced, started))
            except GantryError as exc:
                again.append((index, outgoing, queue, exc, traced, started))
                if len(again) >= in_flight:
                    await try_again()
        while window:
            await settle_oldest()
        if again:
            await try_again()
        if failures:
            raise SendIncomplete(failures, len(results) - len(failures))
        return [result for result in results if result is not None]

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        """The queues that take messages of the topic; for a topic that does not exist, those it will be made with."""
        return await self._sender.queues(topic)

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        return HeartbeatData(client_id, [ProducerData(self.group)])


def _check_only_choice(queue: MessageQueue | None, selector: QueueSelector | None) -> None:
    """ConfigError when a sharding key comes with another way to choose the queue."""
    if queue is not None or selector is not None:
        raise ConfigError("a sharding_key chooses the queue: give neither queue nor selector with it")
