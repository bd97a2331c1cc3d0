"""Sends of threads that do not wait: messages are handed to the event loop in bursts, a future each comes back."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import threading
from collections import deque
from collections.abc import Callable

from gantrymq.client.produce.batching import MESSAGE_BYTES
from gantrymq.client.produce.producer import Producer
from gantrymq.client.results import SendResult
from gantrymq.errors import ClientClosed, RequestTimeout
from gantrymq.message.model import Message, MessageQueue
from gantrymq.remoting.codes import RequestCode

ThreadFuture = concurrent.futures.Future[SendResult]
NOT_SENT = "the client was closed before the message was sent"
Handed = tuple[Message, MessageQueue | None, str | None, ThreadFuture]


class SoonSends:
    """What the threads of one producer sent and the loop has not settled yet, `buffer_bytes` at most."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self._room = threading.Condition()
        self._handed: list[Handed] = []
        self._held_bytes = 0
        self._is_sending = False  # of the loop
        self._unsettled: set[ThreadFuture] = set()
        self._is_over = False

    def submit(
        self,
        message: Message,
        queue: MessageQueue | None,
        sharding_key: str | None,
        start: Callable[[Callable[[], None]], object],
    ) -> ThreadFuture:
        """Hand a message over; wait while there is no room. `start` has a function called on the loop."""
        options = self.producer.options
        size = len(message.body) + MESSAGE_BYTES
        future: ThreadFuture = concurrent.futures.Future()
        future.set_running_or_notify_cancel()  # it has one outcome, the message's: `cancel` would take nothing back
        with self._room:
            if not self._room.wait_for(
                lambda: self._is_over or not self._held_bytes or self._held_bytes + size <= options.buffer_bytes,
                options.delivery_timeout_s,
            ):
                where = f"room for {size} bytes to {message.topic}"
                raise RequestTimeout(where, RequestCode.SEND_BATCH_MESSAGE, options.delivery_timeout_s)
            if self._is_over:
                raise ClientClosed(NOT_SENT)
            self._held_bytes += size
            is_first = not self._handed
            self._handed.append((message, queue, sharding_key, future))
            self._unsettled.add(future)
        future.add_done_callback(lambda done: self._settled(done, size))
        if is_first:
            try:
                start(self._take)
            except ClientClosed:
                self.end()
                raise
        return future

    def end(self) -> None:
        """The producer is closed, and its loop may be: what the loop has not settled now has no other outcome."""
        with self._room:
            self._is_over = True
            left = list(self._unsettled)
        with contextlib.ExitStack() as every:  # one whose callback exits holds up no other
            for future in left:
                every.callback(_fail, future, ClientClosed(NOT_SENT))

    def _take(self) -> None:
        """On the loop: send what was handed over, unless that is being done already."""
        if not self._is_sending:
            self._is_sending = True
            self.producer.hand_over(self._send())

    async def _send(self) -> None:
        """One burst after the other: one that has to wait for a route is not overtaken by the next, which finds it."""
        handed: deque[Handed] = deque()
        call_soon = asyncio.get_running_loop().call_soon  # a callback that exits would end what calls it
        try:
            while self._take_into(handed):
                message, queue, sharding_key, future = handed[0]
                try:
                    sent = await self.producer.send_collected(message, queue=queue, sharding_key=sharding_key)
                except Exception as exc:  # whatever it is, it belongs to the thread that waits for this message
                    call_soon(_fail, future, exc)
                else:
                    sent.add_done_callback(functools.partial(_tell, future))
                handed.popleft()
        finally:
            self._is_sending = False
            for *_, future in handed:  # the producer was closed
                call_soon(_fail, future, ClientClosed(NOT_SENT))

    def _take_into(self, handed: deque[Handed]) -> bool:
        """Where nothing is left, go on with what was handed over meanwhile; whether there is something."""
        if not handed:
            with self._room:
                handed.extend(self._handed)
                self._handed.clear()
        return bool(handed)

    def _settled(self, future: ThreadFuture, size: int) -> None:
        with self._room:
            self._unsettled.discard(future)
            self._held_bytes -= size
            self._room.notify()


def _tell(future: ThreadFuture, sent: asyncio.Future[SendResult]) -> None:
    """Give the outcome to the thread's future."""
    if sent.cancelled():
        _fail(future, ClientClosed(NOT_SENT))
    elif (failure := sent.exception()) is not None:
        _fail(future, failure)
    else:
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            future.set_result(sent.result())


def _fail(future: ThreadFuture, failure: BaseException) -> None:
    with contextlib.suppress(concurrent.futures.InvalidStateError):  # the producer was closed meanwhile
        future.set_exception(failure)
