"""Batches: messages that are collected and sent together, a request for many; what `Producer.send_soon` does.

A lane holds what can travel together: messages of one topic for one chosen queue, or for any. It fills one batch after
the other. A batch leaves when it is full, or when it waited for `linger_s` and the lane may send. A lane with a chosen
queue has one batch on its way at a time, so that the queue gets the messages in their order also when one is tried
again. What can't be in a batch (delayed messages, large ones) is a batch by itself.

Bounded: what waits or is on its way has `buffer_bytes` at most; a caller beyond that waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence

from gantrymq.client.connection.background import Background
from gantrymq.client.connection.send_codec import check_body, pack_aside, pack_batch
from gantrymq.client.interceptors import SendProceed
from gantrymq.client.produce.options import ProducerOptions
from gantrymq.client.produce.sender import Sender
from gantrymq.client.results import SendResult
from gantrymq.errors import MessageRejected, RequestTimeout
from gantrymq.message import properties as names
from gantrymq.message.model import Message, MessageQueue
from gantrymq.message.topics import is_retry_topic
from gantrymq.remoting.codes import RequestCode
from gantrymq.timeouts import timeout

MESSAGE_BYTES = 256  # what a message without its body is counted as
LEAST_S = 0.001  # of a batch's time when it waited for all of it: one short try
LANE_BATCHES = 4  # on their way at once, of a lane whose messages may go to any queue

LaneKey = tuple[str, MessageQueue | None, str | None]  # topic, chosen queue, WAIT property
StoredCallback = Callable[[Sequence[Message], SendResult, float], None]
Around = Callable[[Sequence[Message], SendProceed], Awaitable[SendResult]]


class _Batch:
    __slots__ = ("bytes", "futures", "messages", "started")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.futures: list[asyncio.Future[SendResult]] = []
        self.bytes = 0
        self.started = time.monotonic()

    def apart(self) -> Iterator[_Batch]:
        """Its messages, each by itself."""
        for message, future in zip(self.messages, self.futures, strict=True):
            one = _Batch()
            one.messages, one.futures, one.started = [message], [future], self.started
            yield one


class _Lane:
    __slots__ = ("filling", "is_due", "limit", "on_the_way", "queue", "ready", "timer")

    def __init__(self, queue: MessageQueue | None) -> None:
        self.queue = queue
        self.filling: _Batch | None = None
        self.is_due = False  # the filling batch waited for long enough
        self.ready: deque[_Batch] = deque()
        self.on_the_way = 0
        self.limit = LANE_BATCHES if queue is None else 1
        self.timer: asyncio.Handle | None = None


class Batches:
    """The batches of one producer. on_stored: called with messages, their batch's result and when it began.
    around: sends a batch through the interceptors."""

    def __init__(
        self,
        sender: Sender,
        background: Background,
        options: ProducerOptions,
        *,
        on_stored: StoredCallback | None,
        around: Around | None = None,
    ) -> None:
        self._sender = sender
        self._background = background
        self._options = options
        self._bytes_max, self._batch_bytes = options.message_bytes_max, options.batch_bytes
        self._buffer_bytes = options.buffer_bytes
        self._on_stored = on_stored
        self._around = around
        self._lanes: dict[LaneKey, _Lane] = {}
        self._held_bytes = 0
        self._room: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._settled = asyncio.Event()

    async def add(self, message: Message, queue: MessageQueue | None) -> asyncio.Future[SendResult]:
        """Take a message; the future gets its result or failure. Waits while the buffer is full, RequestTimeout when it
        stays so for delivery_timeout_s. MessageRejected when no broker would take the message."""
        future = self.take(message, queue)
        if future is not None:
            return future
        size = len(message.body) + MESSAGE_BYTES
        await self._wait_for_room(message.topic, size)
        return self._put(message, queue, size)

    def take(self, message: Message, queue: MessageQueue | None) -> asyncio.Future[SendResult] | None:
        """As `add`, without waiting: None while the buffer is full."""
        check_body(message.body, self._bytes_max)
        size = len(message.body) + MESSAGE_BYTES
        if self._held_bytes and self._held_bytes + size > self._buffer_bytes:
            return None
        return self._put(message, queue, size)

    def _put(self, message: Message, queue: MessageQueue | None, size: int) -> asyncio.Future[SendResult]:
        self._held_bytes += size
        future: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
        key = (message.topic, queue, message.properties.get(names.WAIT))
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(queue)
        batch, batch_bytes = lane.filling, self._batch_bytes
        is_alone = size > batch_bytes or _travels_alone(message)
        if batch is not None and (is_alone or batch.bytes + size > batch_bytes):
            self._close(lane)
            batch = None
        if batch is None:
            batch = lane.filling = _Batch()
            lane.timer = self._later(key, lane)
        batch.messages.append(message)
        batch.futures.append(future)
        batch.bytes += size
        if is_alone or batch.bytes >= batch_bytes:
            self._close(lane)
            self._pump(key, lane)
        return future

    async def flush(self) -> None:
        """Send what is collected at once, and wait until everything has its result or its failure."""
        while self._lanes:
            for key, lane in list(self._lanes.items()):
                lane.is_due = True
                self._pump(key, lane)
            self._settled.clear()
            await self._settled.wait()

    async def _wait_for_room(self, topic: str, size: int) -> None:
        timeout_s = self._options.delivery_timeout_s
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room.append((size, waiter))
        try:
            async with timeout(timeout_s):
                await waiter
        except TimeoutError:
            raise RequestTimeout(
                f"room for {size} bytes to {topic}", RequestCode.SEND_BATCH_MESSAGE, timeout_s
            ) from None

    def _later(self, key: LaneKey, lane: _Lane) -> asyncio.Handle:
        loop = asyncio.get_running_loop()
        if self._options.linger_s:
            return loop.call_later(self._options.linger_s, self._due, key, lane)
        return loop.call_soon(self._due, key, lane)

    def _due(self, key: LaneKey, lane: _Lane) -> None:
        lane.is_due = True
        self._pump(key, lane)

    def _close(self, lane: _Lane) -> None:
        """The batch that is filling waits for its turn to be sent."""
        if lane.timer is not None:
            lane.timer.cancel()
        if lane.filling is not None:
            lane.ready.append(lane.filling)
        lane.filling, lane.timer, lane.is_due = None, None, False

    def _pump(self, key: LaneKey, lane: _Lane) -> None:
        """Send what the lane may send. While it may not, a batch that is due goes on filling."""
        while lane.on_the_way < lane.limit:
            if not lane.ready and lane.is_due:
                self._close(lane)
            if not lane.ready:
                break
            lane.on_the_way += 1
            self._background.start(self._send(key, lane, lane.ready.popleft()), "send batch")
        if not lane.on_the_way and not lane.ready and lane.filling is None:
            self._lanes.pop(key, None)

    async def _send(self, key: LaneKey, lane: _Lane, batch: _Batch) -> None:
        try:
            await self._settle(lane, batch)
        finally:
            for future in batch.futures:
                future.cancel()  # only those without an outcome: the producer was closed
            lane.on_the_way -= 1
            self._held_bytes -= batch.bytes
            self._pump(key, lane)
            self._settled.set()
            self._wake()

    async def _settle(self, lane: _Lane, batch: _Batch) -> None:
        """Give the futures their results, or the failure: that may be an interceptor's, too. Where one message made the
        batch one that no broker takes, each is sent by itself."""
        try:
            await self._deliver(lane, batch)
            return
        except Exception as exc:
            failure = exc
        if isinstance(failure, MessageRejected) and len(batch.messages) > 1:
            for one in batch.apart():
                await self._settle(lane, one)
            return
        for future in batch.futures:
            if not future.done():
                future.set_exception(failure)

    async def _deliver(self, lane: _Lane, batch: _Batch) -> None:
        messages = batch.messages
        if self._around is None:
            result = await self._send_batch(lane, batch)
        else:
            result = await self._around(messages, lambda: self._send_batch(lane, batch))
        for future, one in zip(batch.futures, results_of_batch(result, len(messages)), strict=True):
            if not future.done():
                future.set_result(one)

    async def _send_batch(self, lane: _Lane, batch: _Batch) -> SendResult:
        messages, bytes_max = batch.messages, self._bytes_max
        if len(messages) > 1:
            outgoing = pack_batch(messages, bytes_max)
        else:
            outgoing = await pack_aside(messages[0], self._options.compression, bytes_max)
        left_s = self._options.delivery_timeout_s - (time.monotonic() - batch.started)
        result = await self._sender.deliver(outgoing, max(left_s, LEAST_S), lane.queue)
        if self._on_stored is not None:
            self._on_stored(messages, result, batch.started)
        return result

    def _wake(self) -> None:
        """Let in as many waiting callers as there is room for."""
        free = self._buffer_bytes - self._held_bytes
        while self._room and (self._room[0][0] <= free or not self._held_bytes):
            size, waiter = self._room.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= size
                if free < 0:
                    return


def results_of_batch(result: SendResult, count: int) -> Sequence[SendResult]:
    """The result of each message of a batch."""
    if count == 1:
        return [result]
    ids, offset_ids = result.msg_id.split(","), result.offset_msg_id.split(",")
    return [
        SendResult(result.status, msg_id, offset_id, result.queue, offset, result.region_id, result.is_traced)
        for offset, (msg_id, offset_id) in enumerate(zip(ids, offset_ids, strict=True), result.queue_offset)
    ]


def _travels_alone(message: Message) -> bool:
    """Whether the message can't be in a batch."""
    if is_retry_topic(message.topic):
        return True
    return not message.is_bare and (message.is_delayed or names.MSG_TYPE in message.properties)
