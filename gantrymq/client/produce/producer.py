"""Producer: sends messages, and sends them again elsewhere when that may help.

A message goes to the topic's queues in turn. When no name server answers, or a broker can't be reached, does not
answer, is busy or can't store now, it is tried again, elsewhere if the topic has another broker, until the call's time
is up. A message for an explicit queue waits for that queue. One-way messages are tried once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

from gantrymq.client.connection.background import Background
from gantrymq.client.connection.lifecycle import Client
from gantrymq.client.connection.send_codec import Outgoing, pack, pack_aside, pack_batch, pack_quickly, require_message
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.interceptors import SendCall, SendProceed, around_send
from gantrymq.client.produce.batching import Batches
from gantrymq.client.produce.fault_latency import FaultLatency
from gantrymq.client.produce.first_try import FirstTry
from gantrymq.client.produce.many_sends import ManySends
from gantrymq.client.produce.options import DEFAULT_GROUP, ProducerKeywords, ProducerOptions
from gantrymq.client.produce.ordered_sends import QueueChoice, send_in_order
from gantrymq.client.produce.recall import recall
from gantrymq.client.produce.request_reply import WaitingRequests, reply_to
from gantrymq.client.produce.sender import QueueSelector, Sender, queue_by_hash
from gantrymq.client.produce.trace import SendTracer, dispatcher_of
from gantrymq.client.results import SendResult
from gantrymq.errors import ConfigError, WrongType
from gantrymq.message.headers import HeaderValue
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.remoting.bodies import HeartbeatData, ProducerData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.thread_connections import ThreadConnections

LEAST_S = 0.001  # of a call's time when an earlier step took all: the next step then says what it was waiting for


class Producer(Client):
    """Sends messages: `async with Producer("host:port") as producer: await producer.send(Message("topic", b"body"))`.

    group: the producer group. delivery_timeout_s: for a whole call that does not say timeout_s, from looking up the
    route to the last try. retries: further tries after the first; None: as many as the time allows.
    retry_unless_send_ok: a message that was stored, but not flushed or replicated as the broker was asked to, goes to
    the topic's other brokers as well, until one stores it as asked. send_latency_fault_enable: messages that may go to
    any queue leave brokers alone for a while that took 0.55 s or more, or failed. linger_s, batch_bytes, buffer_bytes:
    see send_soon. message_bytes_max: larger bodies are refused; what the broker takes (its maxMessageSize).
    new_topic_queues: of topics made by their first message, at most. round_delays_up: at a broker that has delay levels
    only, a message for a time gets the next longer level; otherwise it is rejected. compress_from_bytes: smaller bodies
    travel as they are. compress_type: "zlib", or "lz4" and "zstd", which need gantrymq[compression] and consumers that
    know them. compress_level: 1 (fast) to 9 (small). trace: tell `trace_topic` of messages sent, `trace_sample` of
    them. Also instance_name, namespace, credentials, tls and serialize_type. ProducerOptions has the defaults.

    `start` connects nothing yet: the first message does that. `close` makes calls in flight fail: await them first.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str = DEFAULT_GROUP,
        **keywords: Unpack[ProducerKeywords],
    ) -> None:
        options = ProducerOptions(name_servers=name_servers, group=group, **keywords)
        super().__init__(ClientSession(options, heartbeat=self._heartbeat))
        self.group = group
        self._options = options
        self._session.routes.new_topic_queues = options.new_topic_queues
        self._sender = Sender(
            self._session,
            group,
            retries=options.retries,
            elsewhere=options.retry_unless_send_ok,
            faults=FaultLatency() if options.send_latency_fault_enable else None,
            round_delays_up=options.round_delays_up,
        )
        self._requests = WaitingRequests()
        self._session.answer_requests({RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._requests.reply_pushed})
        self._traces = dispatcher_of(self._session, options)
        self._batching = Background()
        self._thread_connections = ThreadConnections()
        self._session.silence.watched.append(self._thread_connections)
        self._handing: set[asyncio.Task[None]] = set()
        self._tracer = None if self._traces is None else SendTracer(self._traces, group)
        # Nothing is done but to send.
        self._is_bare = not options.interceptors and self._tracer is None and self._sender.faults is None
        self._compression, self._bytes_max = options.compression, options.message_bytes_max
        self._delivery_timeout_s = options.delivery_timeout_s
        self._batches = Batches(
            self._sender,
            self._batching,
            options,
            on_stored=None if self._tracer is None else self._trace,
            around=self._around_batch if options.interceptors else None,
        )

    async def _open(self) -> None:
        self._session.open()
        if self._traces is not None:
            self._session.background.start(self._traces.run(), "send traces")

    @property
    def options(self) -> ProducerOptions:
        """What the producer was made with."""
        return self._options

    async def _shut_down(self) -> None:
        await self.flush()
        await self._batching.close()
        if self._traces is not None:
            await self._traces.flush()
        self._thread_connections.close()
        await self._session.close(producer_group=self.group)

    def abandon(self) -> None:
        """In a child of a fork: forget the parent's connections without a word to the brokers."""
        super().abandon()
        self._thread_connections.abandon()

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
        queue: such a message waits for its queue. Otherwise it goes to the queues in turn, and after a failure that may
        pass to another one. timeout_s: for all of that, instead of delivery_timeout_s.

        An error does not prove that the message is nowhere. ResponseError: the last broker asked did not store it.
        ConnectError, RequestTimeout and ProtocolError: it may have. Tries before the last may have been stored as well.
        """
        if sharding_key is not None:
            _check_only_choice(queue, selector)
            selector = queue_by_hash(sharding_key)
        if self._is_bare and selector is None:
            outgoing = pack_quickly(message, self._compression, self._bytes_max)
            if outgoing is not None:
                if queue is not None:
                    _check_queue(queue, outgoing.topic)
                timeout_s = self._delivery_timeout_s if timeout_s is None else self._time(timeout_s)
                return await self._sender.deliver(outgoing, timeout_s, queue)
        if not self._options.interceptors:
            return await self._send_one(message, queue, selector, timeout_s)
        return await self._around([message], lambda: self._send_one(message, queue, selector, timeout_s))

    def first_try(self, message: Message, queue: MessageQueue | None, timeout_s: float | None) -> FirstTry | None:
        """For threads: the message packed, and what begins to send it. None where more is wanted than to send it."""
        if not self._is_bare:
            return None
        timeout_s = self._time(timeout_s)
        outgoing = pack(message, self._compression, self._bytes_max)
        if queue is not None:
            _check_queue(queue, outgoing.topic)
        return FirstTry(self._sender, self._thread_connections, outgoing, queue, timeout_s)

    async def _send_one(
        self,
        message: Message,
        queue: MessageQueue | None,
        selector: QueueSelector | None,
        timeout_s: float | None,
    ) -> SendResult:
        # Packed once: every try sends the same unique id, by which a message that was stored twice can be recognised.
        outgoing = await pack_aside(message, self._options.compression, self._options.message_bytes_max)
        if selector is not None:
            started, timeout_s = time.monotonic(), self._time(timeout_s)
            queue = selector(await self._sender.queues(message.topic, timeout_s), message)
            _check_queue(queue, message.topic)
            timeout_s = max(timeout_s - (time.monotonic() - started), LEAST_S)
        return await self._send([message], outgoing, queue, timeout_s)

    async def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> SendResult:
        """Send messages of one topic as one request into one queue: all are stored, or none. 4 MiB at most."""

        bytes_max = self._options.message_bytes_max

        async def proceed() -> SendResult:
            return await self._send(messages, pack_batch(messages, bytes_max), queue, timeout_s)

        return await self._around(messages, proceed) if messages else await proceed()

    async def _around(
        self, messages: Sequence[Message], proceed: SendProceed, *, is_collected: bool = False
    ) -> SendResult:
        """Send through the interceptors."""
        call = SendCall(messages, self.group, self.client_id, is_collected)
        return await around_send(self._options.interceptors, call, proceed)

    async def _around_batch(self, messages: Sequence[Message], proceed: SendProceed) -> SendResult:
        return await self._around(messages, proceed, is_collected=True)

    def collect(self, message: Message) -> None:
        """Tell the interceptors of a message that is sent later, or without an answer. WrongType when it is none."""
        require_message(message)
        for each in self._options.interceptors:
            each.collect(message)

    def _time(self, timeout_s: float | None) -> float:
        """The time of a call. WrongType when it is no number, ConfigError when there is none."""
        if timeout_s is None:
            return self._options.delivery_timeout_s
        if not isinstance(timeout_s, int | float):
            raise WrongType(f"timeout_s={timeout_s!r:.60}: a number of seconds is wanted")
        if not timeout_s > 0:
            raise ConfigError(f"timeout_s={timeout_s:g}: a call needs some time; leave it out for delivery_timeout_s")
        return timeout_s

    async def _send(
        self, messages: Sequence[Message], outgoing: Outgoing, queue: MessageQueue | None, timeout_s: float | None
    ) -> SendResult:
        """Send one message or one batch. On return a broker has answered that it is stored; `send` says what an error
        means."""
        started = time.monotonic()
        if queue is not None:
            _check_queue(queue, outgoing.topic)
        result = await self._sender.deliver(outgoing, self._time(timeout_s), queue)
        # Only what was stored is traced: a failed send leaves no record.
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
        timeout_s = self._time(timeout_s)
        deadline = time.monotonic() + timeout_s
        self._session.require_open()
        correlation_id, request = self._requests.begin(message, self.client_id, timeout_s)
        try:
            await self._sender.queues(request.topic, timeout_s)
            await self._session.greet_new_brokers()
            left_s = max(deadline - time.monotonic(), LEAST_S)
            await self.send(request, queue=queue, selector=selector, timeout_s=left_s)
            return await self._requests.answer(correlation_id, request.topic, max(deadline - time.monotonic(), 0))
        finally:
            self._requests.end(correlation_id)

    async def reply(
        self,
        request: MessageExt,
        body: bytes,
        *,
        headers: Mapping[str, HeaderValue] | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Answer a request that a consumer got, through the broker the requester is connected to. Tried once."""
        return await self._sender.reply(request, reply_to(request, body, headers), self._time(timeout_s))

    async def recall(self, recall_handle: str, *, timeout_s: float | None = None) -> str:
        """Have a message for a time (delay_seconds, deliver_at) not be delivered: its send's result has the handle.

        The message's id. On return the broker has stored that it is recalled. MessageRejected when that is no handle;
        ResponseError when it is too late, or the broker can't recall messages. Tried once; again does no harm.
        """
        return await recall(self._session, self._sender, recall_handle, self._time(timeout_s))

    async def send_oneway(
        self, message: Message, *, queue: MessageQueue | None = None, selector: QueueSelector | None = None
    ) -> None:
        """Send one message without asking for an answer: fast, and lost in silence when anything goes wrong."""
        self.collect(message)
        outgoing = await pack_aside(message, self._options.compression, self._options.message_bytes_max)
        queues = await self.queues(message.topic)
        if selector is not None:
            queue = selector(queues, message)
        elif queue is None:
            queue = self._sender.pick(queues, may_look=False)  # no answer tells whether it came there
        _check_queue(queue, message.topic)
        address = self._sender.address_of(queue)
        outgoing = await self._sender.kept_by(address, outgoing, self._options.delivery_timeout_s)
        request = self._sender.request(outgoing, queue)
        await self._session.remoting.invoke_oneway(address, request, timeout_s=self._options.delivery_timeout_s)

    async def send_many(
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

        The iterable is read on the event loop: it should not block.
        """
        if in_flight < 1:
            raise ConfigError(f"in_flight={in_flight}: it must be at least 1")
        self._session.require_home()
        timeout_s = self._time(timeout_s)
        on_stored = None if self._tracer is None else self._trace
        choose = self._chooser(queue, selector, sharding_key, timeout_s)
        if choose is not None or self._options.interceptors:
            return await send_in_order(
                self._collected(messages),
                choose or _any_queue,
                self._sender,
                self._options,
                timeout_s=timeout_s,
                on_stored=on_stored,
                around=self._around_batch,
            )
        sends = ManySends(
            self._sender,
            self._session.remoting,
            self._options,
            in_flight=in_flight,
            timeout_s=timeout_s,
            on_stored=on_stored,
        )
        return await sends.send(messages)

    def _collected(self, messages: Iterable[Message]) -> Iterator[Message]:
        for message in messages:
            self.collect(message)
            yield message

    def _chooser(
        self,
        queue: MessageQueue | None,
        selector: QueueSelector | None,
        sharding_key: str | Callable[[Message], str] | None,
        timeout_s: float,
    ) -> QueueChoice | None:
        """What says the queue of a message, None when each may go to any."""
        if sharding_key is not None:
            _check_only_choice(queue, selector)
        elif queue is not None and selector is not None:
            raise ConfigError("the selector chooses the queue: give no queue with it")
        elif queue is None and selector is None:
            return None

        async def choose(message: Message) -> MessageQueue:
            if queue is not None:
                chosen = queue
            else:
                select = selector
                if sharding_key is not None:
                    select = queue_by_hash(sharding_key(message) if callable(sharding_key) else sharding_key)
                assert select is not None
                chosen = select(await self._sender.queues(message.topic, timeout_s), message)
            _check_queue(chosen, message.topic)
            return chosen

        return choose

    async def send_soon(
        self, message: Message, *, queue: MessageQueue | None = None, sharding_key: str | None = None
    ) -> asyncio.Future[SendResult]:
        """Have a message sent in a batch with others, and return the future of its result or failure.

        Fast: many messages make one request. Batches leave when they have `batch_bytes`, waited for `linger_s`, or when
        others have been answered. The messages of a chosen queue keep their order. Waits only while the producer holds
        `buffer_bytes`. delivery_timeout_s counts from here on. `flush` and `close` wait for everything.

        Callbacks of the future run on the loop: while one blocks, nothing is sent or received. One that calls
        sys.exit() ends the loop, as asyncio has it; what is not sent by then is given up when the loop's tasks are.
        """
        self._session.require_open()
        if self._options.interceptors or type(message) is not Message:
            self.collect(message)
        if sharding_key is None and (future := self._batches.take(message, queue)) is not None:
            return future
        return await self.send_collected(message, queue=queue, sharding_key=sharding_key)

    async def send_collected(
        self, message: Message, *, queue: MessageQueue | None = None, sharding_key: str | None = None
    ) -> asyncio.Future[SendResult]:
        """As `send_soon`, for one that calls `collect` itself, where the message comes from."""
        self._session.require_open()
        if sharding_key is not None:
            _check_only_choice(queue, None)
            queues = await self._sender.queues(message.topic, self._options.delivery_timeout_s)
            queue = queue_by_hash(sharding_key)(queues, message)
        return await self._batches.add(message, queue)

    async def flush(self) -> None:
        """Wait until every message of send_soon has its result or failure."""
        self._session.require_home()
        while self._handing:
            await asyncio.wait(self._handing)
        await self._batches.flush()

    def hand_over(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what calls send_soon for others; `flush` waits for it too."""
        task = self._batching.start(work, "pass messages")
        self._handing.add(task)
        task.add_done_callback(self._handing.discard)

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        """The queues that take messages of the topic; for a topic that does not exist, those it will be made with."""
        return await self._sender.queues(topic, self._options.delivery_timeout_s)

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        return HeartbeatData(client_id, [ProducerData(self.group)])


async def _any_queue(message: Message) -> None:
    """The choice of a queue where there is none."""


def _check_queue(queue: MessageQueue, topic: str) -> None:
    """ConfigError when it is another topic's: the message would go there, or nowhere, in silence."""
    if not isinstance(queue, MessageQueue):
        raise WrongType(f"queue={queue!r:.60}: a MessageQueue is wanted, not {type(queue).__name__}")
    if queue.topic != topic:
        raise ConfigError(f"the queue belongs to topic {queue.topic}, the message to topic {topic}")


def _check_only_choice(queue: MessageQueue | None, selector: QueueSelector | None) -> None:
    """ConfigError when a sharding key comes with another way to choose the queue."""
    if queue is not None or selector is not None:
        raise ConfigError("a sharding_key chooses the queue: give neither queue nor selector with it")
