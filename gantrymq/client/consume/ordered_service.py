"""Gives messages to the listener in order: each queue's one after the other, different queues at once.

A failed batch is tried again here after `suspend_s`, and until it succeeds no later message of its queue is consumed.
Only a message that failed `max_reconsume_times` times leaves the order, for the dead letters. A queue is consumed only
while this consumer has the broker's lock on it (`may_consume`).
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

SUSPEND_S_MIN, SUSPEND_S_MAX = 0.01, 30.0  # as the Java client bounds it
WAIT_S = 0.1  # until a queue is looked at again whose lock is missing, or whose former call still runs


class OrderedConsumeService(ConsumeService):
    """Consumes pulled messages in order. `give_up` sends messages that failed too often to the dead letters, `bury`
    those that a DeadLetter names; both return those they could not send."""

    def __init__(
        self,
        calls: ListenerCalls,
        give_up: Callable[[list[MessageExt]], Awaitable[list[MessageExt]]],
        bury: Callable[[list[MessageExt]], Awaitable[list[MessageExt]]],
        may_consume: Callable[[ProcessQueue], bool],
        options: PushConsumerOptions,
    ) -> None:
        super().__init__(calls, options.concurrency)
        self._give_up = give_up
        self._bury = bury
        self._may_consume = may_consume
        self._batch_size = options.batch_size
        self._suspend_s = min(max(options.suspend_s, SUSPEND_S_MIN), SUSPEND_S_MAX)
        self._max_reconsume_times = options.max_reconsume_times
        self._ready: asyncio.Queue[ProcessQueue] = asyncio.Queue()  # each queue is in it once at most
        self._scheduled: set[ProcessQueue] = set()  # in `_ready`, being consumed, or waiting to be looked at again

    def submit(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Messages were added to the queue: have a worker look at it."""
        if process_queue not in self._scheduled:
            self._scheduled.add(process_queue)
            self._ready.put_nowait(process_queue)

    async def _work_on(self) -> None:
        while True:
            process_queue = await self._ready.get()
            if process_queue.was_dropped() or process_queue.is_leaving or self._workers.is_stopping:
                self._scheduled.discard(process_queue)
            elif process_queue.must_wait() or not self._may_consume(process_queue):
                self._look_later(process_queue, WAIT_S)
            elif not (batch := process_queue.head(self._batch_size)):
                self._scheduled.discard(process_queue)
            else:
                with self._workers:
                    await self._consume(process_queue, batch)

    async def _consume(self, process_queue: ProcessQueue, batch: list[MessageExt]) -> None:
        """Make one listener call; then the queue goes to the end of the line, so that many queues share few workers."""
        process_queue.begin(batch, time.monotonic())
        with process_queue.in_use():
            result = await self._calls.consume(process_queue.queue.topic, batch)
            suspend_s = self._suspend_s
            if isinstance(result, RetryLater):
                batch = self._finish_first(process_queue, batch, result)
                suspend_s = result.delay_s if result.delay_s is not None else suspend_s
            if isinstance(result, DeadLetter):
                is_done = not await self._bury(result.again(batch))
            else:
                is_done = result is ConsumeResult.SUCCESS or await self._is_given_up(batch)
            if is_done and not process_queue.was_dropped():
                process_queue.remove(batch)
        if is_done:
            self._ready.put_nowait(process_queue)
        else:
            self._look_later(process_queue, suspend_s)

    def _finish_first(
        self, process_queue: ProcessQueue, batch: list[MessageExt], result: RetryLater
    ) -> list[MessageExt]:
        """Finish the messages in front of the first that comes again; return the others."""
        again = result.again(batch)
        first = next((at for at, message in enumerate(batch) if again and message is again[0]), len(batch))
        if first and not process_queue.was_dropped():
            process_queue.remove(batch[:first])
        return batch[first:]

    async def _is_given_up(self, batch: list[MessageExt]) -> bool:
        """Count the failure; True when every message of the batch failed too often and is a dead letter now."""
        limit = self._max_reconsume_times
        given_up = [message for message in batch if limit is not None and message.reconsume_times >= limit]
        left = await self._give_up(given_up) if given_up else []
        again = [message for message in batch if message in left or message not in given_up]
        for message in again:
            message.reconsume_times += 1
        return not again

    def _look_later(self, process_queue: ProcessQueue, delay_s: float) -> None:
        asyncio.get_running_loop().call_later(delay_s, self._ready.put_nowait, process_queue)
