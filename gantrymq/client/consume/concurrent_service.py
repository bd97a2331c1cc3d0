"""Gives messages to the listener in any order, and acts on its answer.

`concurrency` calls run at once. After success (also: returning None) the messages are finished. After LATER, RetryLater
or an exception, they are sent back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from gantrymq.client.consume.listener_calls import ListenerCalls
from gantrymq.client.consume.options import PushConsumerOptions
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.workers import ConsumeService
from gantrymq.client.results import ConsumeResult, DeadLetter, RetryLater
from gantrymq.message.model import MessageExt

SendBack = Callable[[list[MessageExt], float | None], Awaitable[list[MessageExt]]]
Bury = Callable[[list[MessageExt]], Awaitable[list[MessageExt]]]

LOCAL_RETRY_S = 5.0  # RocketMQ: submitConsumeRequestLater; when a failed message could not even be sent back


class ConcurrentConsumeService(ConsumeService):
    """Consumes pulled messages in any order. `send_back` has failed messages delivered again after so many seconds
    (None: when the broker decides), `bury` makes them dead letters. Both return those they could not send: they are
    given to the listener again here."""

    def __init__(self, calls: ListenerCalls, send_back: SendBack, bury: Bury, options: PushConsumerOptions) -> None:
        super().__init__(calls, options.concurrency)
        self._send_back = send_back
        self._bury = bury
        self._batch_size = options.batch_size
        self._work: asyncio.Queue[tuple[ProcessQueue, list[MessageExt]]] = asyncio.Queue()  # bounded by FlowLimits

    def submit(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Have the messages consumed, in portions of the batch size."""
        size = self._batch_size
        if len(messages) <= size:
            self._work.put_nowait((process_queue, messages))
            return
        for start in range(0, len(messages), size):
            self._work.put_nowait((process_queue, messages[start : start + size]))

    async def _work_on(self) -> None:
        while True:
            process_queue, messages = await self._work.get()
            if not process_queue.was_dropped() and not self._workers.is_stopping:
                with self._workers:
                    await self._consume(process_queue, messages)

    async def _consume(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        process_queue.begin(messages, time.monotonic())
        result = await self._calls.consume(process_queue.queue.topic, messages)
        if process_queue.was_dropped():
            return  # the queue's new owner gets the messages, done with or not
        if result is not ConsumeResult.SUCCESS:
            again, delay_s = messages, None
            if isinstance(result, RetryLater):
                again, delay_s = result.again(messages), result.delay_s
            # What took too long was sent back meanwhile, and is not held any more: not twice.
            pending = [message for message in again if process_queue.holds(message)]
            if isinstance(result, DeadLetter):
                left = await self._bury(pending)
            else:
                left = await self._send_back(pending, delay_s)
            if left:
                self._workers.background.start(self._again_later(process_queue, left), "consume again")
                messages = [message for message in messages if message not in left]
        # Consumed, or stored again at the broker: the group's offset may pass them.
        process_queue.remove(messages)

    async def _again_later(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        await asyncio.sleep(LOCAL_RETRY_S)
        for message in messages:
            message.reconsume_times += 1
        self.submit(process_queue, messages)
