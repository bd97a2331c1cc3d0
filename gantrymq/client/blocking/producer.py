"""SyncProducer: Producer for threads. Nothing of consumers is imported: a process that only sends starts sooner."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Unpack

from gantrymq.client.blocking.base import BlockingClient
from gantrymq.client.blocking.shared_loop import LoopClient, shared_loop
from gantrymq.client.blocking.soon import SoonSends
from gantrymq.client.produce.options import DEFAULT_GROUP, ProducerKeywords
from gantrymq.client.produce.producer import Producer
from gantrymq.client.produce.sender import QueueSelector
from gantrymq.client.results import SendResult
from gantrymq.message.headers import HeaderValue
from gantrymq.message.model import Message, MessageExt, MessageQueue


class SyncProducer(BlockingClient):
    """Producer for threads; takes the same arguments. May be shared by threads."""

    _client: Producer
    _soon: SoonSends | None = None

    def __init__(
        self, name_servers: str | Sequence[str], *, group: str = DEFAULT_GROUP, **keywords: Unpack[ProducerKeywords]
    ) -> None:
        super().__init__(lambda: Producer(name_servers, group=group, **keywords))

    def _end(self, end: Callable[[LoopClient], Coroutine[Any, Any, None]]) -> None:
        try:
            super()._end(end)
        finally:
            if self._soon is not None and self._soon.producer is self._client:  # not that of the parent of a fork
                self._soon.end()

    def send(
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
        queue: such a message waits for its queue. Otherwise it goes to the queues in turn, and after a failure that may
        pass to another one. timeout_s: for all of that, instead of delivery_timeout_s.

        An error does not prove that the message is nowhere. ResponseError: the last broker asked did not store it.
        ConnectError, RequestTimeout and ProtocolError: it may have. Tries before the last may have been stored as well.
        """
        if selector is None and sharding_key is None:
            self._require_open()
            first = self._client.first_try(message, queue, timeout_s)
            if first is not None:
                shared_loop.require_beside()
                if not first.at_once():
                    shared_loop.begin(first.begin, first.has_ended)
                result = first.result()
                return self._run(first.go_on()) if result is None else result
        return self._run(
            self._client.send(message, queue=queue, selector=selector, sharding_key=sharding_key, timeout_s=timeout_s)
        )

    def request(
        self,
        message: Message,
        timeout_s: float | None = None,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
    ) -> MessageExt:
        """Send a message and wait for what its consumer answers. RequestTimeout when no answer comes in time, which
        does not say whether the message was consumed."""
        return self._run(self._client.request(message, timeout_s, queue=queue, selector=selector))

    def reply(
        self,
        request: MessageExt,
        body: bytes,
        *,
        headers: Mapping[str, HeaderValue] | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Answer a request that a consumer got, through the broker the requester is connected to. Tried once."""
        return self._run(self._client.reply(request, body, headers=headers, timeout_s=timeout_s))

    def recall(self, recall_handle: str, *, timeout_s: float | None = None) -> str:
        """Have a message for a time (delay_seconds, deliver_at) not be delivered: its send's result has the handle.

        The message's id. On return the broker has stored that it is recalled. MessageRejected when that is no handle;
        ResponseError when it is too late, or the broker can't recall messages. Tried once; again does no harm.
        """
        return self._run(self._client.recall(recall_handle, timeout_s=timeout_s))

    def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> SendResult:
        """Send messages of one topic as one request into one queue: all are stored, or none. 4 MiB at most."""
        return self._run(self._client.send_batch(messages, queue=queue, timeout_s=timeout_s))

    def send_oneway(
        self, message: Message, *, queue: MessageQueue | None = None, selector: QueueSelector | None = None
    ) -> None:
        """Send one message without asking for an answer: fast, and lost in silence when anything goes wrong."""
        self._run(self._client.send_oneway(message, queue=queue, selector=selector))

    def send_soon(
        self, message: Message, *, queue: MessageQueue | None = None, sharding_key: str | None = None
    ) -> concurrent.futures.Future[SendResult]:
        """Have a message sent in a batch with others, and return the future of its result or failure.

        Fast: many messages make one request. Batches leave when they have `batch_bytes`, waited for `linger_s`, or when
        others have been answered. The messages of a chosen queue keep their order. Waits only while the producer holds
        `buffer_bytes`. delivery_timeout_s counts from here on. `flush` and `close` wait for everything.

        It can't be cancelled. Callbacks of the future run on the event loop's thread: while one blocks, all blocking
        clients of the process wait. One that calls sys.exit() ends neither the loop nor the process, which the log
        says, and other messages keep their outcomes; but callbacks added to the same future after it are not called.
        With `close` they may run in the thread that closes, and an exit is raised there once every future is done.
        """
        self._require_open()
        self._client.collect(message)
        if self._soon is None or self._soon.producer is not self._client:  # a fork has made a new client
            self._soon = SoonSends(self._client)
        return self._soon.submit(message, queue, sharding_key, shared_loop.call_soon)

    def flush(self) -> None:
        """Wait until every message of send_soon has its result or failure."""
        self._run(self._client.flush())

    def send_many(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        sharding_key: str | Callable[[Message], str] | None = None,
        in_flight: int = 256,
        timeout_s: float | None = None,
    ) -> list[SendResult]:
        """Send messages, many at a time, and return their results in order.

        Without a chosen queue they are sent one by one, `in_flight` of them at once. With `queue`, `selector` or
        `sharding_key` (one for all, or a function that says each message's) the messages of a queue travel in batches
        and keep their order. timeout_s is for each message. Those that fail are tried again as `send` would; when some
        still fail, SendIncomplete has their failures and the others' results, after all others were sent.

        The iterable is read on the loop's thread: it should not block.
        """
        return self._run(
            self._client.send_many(
                messages,
                queue=queue,
                selector=selector,
                sharding_key=sharding_key,
                in_flight=in_flight,
                timeout_s=timeout_s,
            )
        )

    def queues(self, topic: str) -> Sequence[MessageQueue]:
        """The queues that take messages of the topic; for a topic that does not exist, those it will be made with."""
        return self._run(self._client.queues(topic))
