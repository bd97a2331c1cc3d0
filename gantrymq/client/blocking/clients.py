"""The SDK for threads: the async one, run on one event loop in one background thread.

Every call is handed to that loop and waited for; nothing is decided here. Listeners of a SyncPushConsumer are plain
functions; they run in the consumer's own threads and may use blocking clients.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Unpack

from gantrymq.client.blocking.base import BlockingClient
from gantrymq.client.blocking.shared_loop import shared_loop
from gantrymq.client.blocking.soon import SoonSends
from gantrymq.client.consume.listener_calls import Listener
from gantrymq.client.consume.options import PullConsumerKeywords, PushConsumerKeywords
from gantrymq.client.consume.pull_consumer import POLL_S, PullConsumer
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.client.produce.options import DEFAULT_GROUP, ProducerKeywords
from gantrymq.client.produce.producer import Producer
from gantrymq.client.produce.sender import QueueSelector
from gantrymq.client.results import SendResult
from gantrymq.message.model import Message, MessageExt, MessageQueue


async def _on_loop(act: Callable[[], None]) -> None:
    act()


class SyncProducer(BlockingClient):
    """Producer for threads; takes the same arguments. May be shared by threads."""

    _client: Producer
    _soon: SoonSends | None = None

    def __init__(
        self, name_servers: str | Sequence[str], *, group: str = DEFAULT_GROUP, **keywords: Unpack[ProducerKeywords]
    ) -> None:
        super().__init__(lambda: Producer(name_servers, group=group, **keywords))

    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        sharding_key: str | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """See Producer.send."""
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
        """See Producer.request."""
        return self._run(self._client.request(message, timeout_s, queue=queue, selector=selector))

    def reply(self, request: MessageExt, body: bytes, *, timeout_s: float | None = None) -> SendResult:
        """See Producer.reply."""
        return self._run(self._client.reply(request, body, timeout_s=timeout_s))

    def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> SendResult:
        """See Producer.send_batch."""
        return self._run(self._client.send_batch(messages, queue=queue, timeout_s=timeout_s))

    def send_oneway(
        self, message: Message, *, queue: MessageQueue | None = None, selector: QueueSelector | None = None
    ) -> None:
        """See Producer.send_oneway."""
        self._run(self._client.send_oneway(message, queue=queue, selector=selector))

    def send_soon(
        self, message: Message, *, queue: MessageQueue | None = None, sharding_key: str | None = None
    ) -> concurrent.futures.Future[SendResult]:
        """See Producer.send_soon. Callbacks of the future run on the event loop's thread: they should not block."""
        self._require_open()
        if self._soon is None or self._soon.producer is not self._client:  # a fork has made a new client
            self._soon = SoonSends(self._client)
        return self._soon.submit(message, queue, sharding_key, shared_loop.call_soon)

    def flush(self) -> None:
        """See Producer.flush."""
        self._run(self._client.flush())

    def send_many(
        self, messages: Iterable[Message], *, in_flight: int = 256, timeout_s: float | None = None
    ) -> list[SendResult]:
        """See Producer.send_many. The iterable is read on the loop's thread: it should not block."""
        return self._run(self._client.send_many(messages, in_flight=in_flight, timeout_s=timeout_s))

    def queues(self, topic: str) -> Sequence[MessageQueue]:
        """See Producer.queues."""
        return self._run(self._client.queues(topic))


class SyncPushConsumer(BlockingClient):
    """PushConsumer for threads; takes the same arguments, with a plain function as listener."""

    reopens_after_fork = False
    _client: PushConsumer

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        listener: Listener,
        **keywords: Unpack[PushConsumerKeywords],
    ) -> None:
        super().__init__(lambda: PushConsumer(name_servers, group=group, listener=listener, **keywords))

    def subscribe(self, topic: str, expression: str = "*", *, sql: str | None = None) -> None:
        """See PushConsumer.subscribe."""
        if self._is_open:
            self._run(_on_loop(lambda: self._client.subscribe(topic, expression, sql=sql)))
        else:
            self._client.subscribe(topic, expression, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """See PushConsumer.unsubscribe."""
        if self._is_open:
            self._run(_on_loop(lambda: self._client.unsubscribe(topic)))
        else:
            self._client.unsubscribe(topic)

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return self._client.assigned_queues


class SyncPullConsumer(BlockingClient):
    """PullConsumer for threads; takes the same arguments. Used by one thread at a time."""

    reopens_after_fork = False
    _client: PullConsumer

    def __init__(
        self, name_servers: str | Sequence[str], *, group: str, **keywords: Unpack[PullConsumerKeywords]
    ) -> None:
        super().__init__(lambda: PullConsumer(name_servers, group=group, **keywords))

    def subscribe(self, topic: str, expression: str = "*", *, sql: str | None = None) -> None:
        """See PullConsumer.subscribe."""
        self._run(self._client.subscribe(topic, expression, sql=sql))

    def unsubscribe(self, topic: str) -> None:
        """See PullConsumer.unsubscribe."""
        self._run(self._client.unsubscribe(topic))

    def assign(self, queues: Iterable[MessageQueue], expression: str = "*") -> None:
        """See PullConsumer.assign."""
        self._run(self._client.assign(list(queues), expression))

    def queues(self, topic: str) -> list[MessageQueue]:
        """See PullConsumer.queues."""
        return self._run(self._client.queues(topic))

    def poll(self, timeout_s: float = POLL_S) -> list[MessageExt]:
        """See PullConsumer.poll."""
        return self._run(self._client.poll(timeout_s))

    def __iter__(self) -> Iterator[MessageExt]:
        """Message by message, for ever. See PullConsumer.__aiter__."""
        while True:
            batch = self._run(self._client.poll_one_by_one())
            if batch is not None:
                yield from batch.one_by_one()

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """See PullConsumer.pause."""
        paused = list(queues)
        self._run(_on_loop(lambda: self._client.pause(paused)))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """See PullConsumer.resume."""
        resumed = list(queues)
        self._run(_on_loop(lambda: self._client.resume(resumed)))

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """See PullConsumer.commit."""
        self._run(self._client.commit(offsets))

    def committed(self, queue: MessageQueue) -> int | None:
        """See PullConsumer.committed."""
        return self._run(self._client.committed(queue))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """See PullConsumer.seek."""
        self._run(self._client.seek(queue, offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """See PullConsumer.seek_to_begin."""
        self._run(self._client.seek_to_begin(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """See PullConsumer.seek_to_end."""
        self._run(self._client.seek_to_end(queue))

    def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """See PullConsumer.offset_at."""
        return self._run(self._client.offset_at(queue, timestamp_ms))

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return self._client.assigned_queues
