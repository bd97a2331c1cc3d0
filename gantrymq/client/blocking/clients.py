"""The SDK for threads: the async one, run on one event loop in one background thread.

Every call is handed to that loop and waited for; nothing is decided here. Listeners of a SyncPushConsumer are plain
functions; they run in the consumer's own threads and may use blocking clients.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Unpack

from gantrymq.client.blocking.base import BlockingClient
from gantrymq.client.blocking.shared_loop import shared_loop
from gantrymq.client.blocking.soon import SoonSends
from gantrymq.client.connection.stop_signals import StopSignals
from gantrymq.client.consume.listener_calls import Listener
from gantrymq.client.consume.options import PullConsumerKeywords, PushConsumerKeywords
from gantrymq.client.consume.pull_consumer import POLL_S, PullConsumer
from gantrymq.client.consume.push_consumer import REPLY_TIMEOUT_S, PushConsumer
from gantrymq.client.produce.options import DEFAULT_GROUP, ProducerKeywords
from gantrymq.client.produce.producer import Producer
from gantrymq.client.produce.sender import QueueSelector
from gantrymq.client.results import SendResult
from gantrymq.message.headers import HeaderValue
from gantrymq.message.model import Message, MessageExt, MessageQueue


async def _until(event: asyncio.Event) -> None:
    await event.wait()


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

        Callbacks of the future run on the event loop's thread: they should not block.
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
        """Consume a topic: "*", "TagA || TagB", or sql="price > 5 AND region = 'eu'". Also while running."""
        self._change(lambda: self._client.subscribe(topic, expression, sql=sql))

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; its queues are released in a moment."""
        self._change(lambda: self._client.unsubscribe(topic))

    def run(self) -> int:
        """Consume until SIGTERM or SIGINT, then close; in the main thread: `sys.exit(consumer.run())`.

        Listener calls in progress may end (close_wait_s), and what was handled is committed. Returns the exit code: 0,
        or 1 when some call did not end in time; its messages come again. A second signal ends the process at once.
        """
        with self:
            stopped = asyncio.Event()
            with StopSignals(lambda: shared_loop.call_soon(stopped.set)):
                self._run(_until(stopped))
        return self._client.exit_code

    @property
    def exit_code(self) -> int:
        """What `run` returns, once the consumer is closed."""
        return self._client.exit_code

    def reply(self, request: MessageExt, body: bytes, *, timeout_s: float = REPLY_TIMEOUT_S) -> SendResult:
        """Answer a request (see Producer.request) that the listener was given."""
        return self._run(self._client.reply(request, body, timeout_s=timeout_s))

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
        """Share the topic with the other members of the group: "*", "TagA || TagB", or with `sql` a condition."""
        self._change(lambda: self._client.subscribe(topic, expression, sql=sql))

    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic; its queues are released in a moment."""
        self._change(lambda: self._client.unsubscribe(topic))

    def assign(self, queues: Iterable[MessageQueue], expression: str = "*") -> None:
        """Read these queues, without regard to other readers; replaces what was assigned before. Returns when they are
        read."""
        self._run(self._client.assign(list(queues), expression))

    def queues(self, topic: str) -> list[MessageQueue]:
        """Every queue of the topic that can be read. RouteNotFound when there is no such topic."""
        return self._run(self._client.queues(topic))

    def poll(self, timeout_s: float = POLL_S) -> list[MessageExt]:
        """The next messages of some queue, an empty list when none come in time. The last poll's are finished."""
        return self._run(self._client.poll(timeout_s))

    def __iter__(self) -> Iterator[MessageExt]:
        """Message by message, for ever. See PullConsumer.__aiter__."""
        while True:
            batch = self._run(self._client.poll_one_by_one())
            if batch is not None:
                yield from batch.one_by_one()

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Poll nothing of these queues, and pull no more, until `resume`."""
        paused = list(queues)
        self._change(lambda: self._client.pause(paused))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Undo `pause`."""
        resumed = list(queues)
        self._change(lambda: self._client.resume(resumed))

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Write that every message given so far is finished, the last one too; or write these offsets: of each queue
        the next one that the group will consume, so that of the last finished message plus one.

        ConfigError when a queue is not assigned to this consumer or an offset is outside of what it was given.
        """
        self._run(self._client.commit(offsets))

    def committed(self, queue: MessageQueue) -> int | None:
        """The group's next offset in the queue as it is written, None when it has none."""
        return self._run(self._client.committed(queue))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at this offset in a queue this consumer reads. ConfigError when it does not, or the offset is outside
        the queue."""
        self._run(self._client.seek(queue, offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Go on at the oldest message of the queue."""
        self._run(self._client.seek_to_begin(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Go on with what comes from now on."""
        self._run(self._client.seek_to_end(queue))

    def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the message nearest to that store time."""
        return self._run(self._client.offset_at(queue, timestamp_ms))

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return self._client.assigned_queues
