"""SyncProducer: Producer for threads. Nothing of consumers is imported: a process that only sends starts sooner."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Unpack

from gantrymq.client.blocking.base import BlockingClient, waited_for
from gantrymq.client.blocking.shared_loop import LoopClient, shared_loop
from gantrymq.client.blocking.soon import SoonSends
from gantrymq.client.produce.options import DEFAULT_GROUP, ProducerKeywords
from gantrymq.client.produce.producer import Producer
from gantrymq.client.produce.sender import QueueSelector
from gantrymq.client.results import SendResult
from gantrymq.message.model import Message, MessageQueue


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

    request: Final = waited_for(Producer.request)
    reply: Final = waited_for(Producer.reply)
    recall: Final = waited_for(Producer.recall)
    send_batch: Final = waited_for(Producer.send_batch)
    send_oneway: Final = waited_for(Producer.send_oneway)

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

    flush: Final = waited_for(Producer.flush)
    send_many: Final = waited_for(Producer.send_many)
    queues: Final = waited_for(Producer.queues)
