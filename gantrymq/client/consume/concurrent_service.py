"""The workers that give messages to the listener in any order, and act on its answer.

`concurrency` calls run at once. Success (also: returning None) is done. LATER, or an exception, hands the messages to
`failed`, which sends them back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from gantrymq.client.connection.background import Background, wait_for_event
from gantrymq.client.consume.listener_calls import ListenerCalls
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.results import ConsumeResult
from gantrymq.message.model import MessageExt

logger = logging.getLogger(__name__)

TakesFailed = Callable[[list[MessageExt]], Awaitable[list[MessageExt]]]

LOCAL_RETRY_S = 5.0  # RocketMQ: submitConsumeRequestLater; when a failed message could not even be sent back


class Consumes(Protocol):
    """What a push consumer needs of its workers."""

    def start(self) -> None:
        """Begin to work."""

    async def stop(self, wait_s: float) -> None:
        """Begin nothing new; give calls in progress that long to end."""

    def submit(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Have the messages consumed, which the process queue holds already."""


class Workers:
    """Tasks that each run `work_on` until they are stopped, and how many of them are busy."""

    def __init__(self, count: int, work_on: Callable[[], Awaitable[None]]) -> None:
        self.background = Background()
        self.is_stopping = False
        self._count = count
        self._work_on = work_on
        self._busy = 0
        self._idle = asyncio.Event()

    def start(self) -> None:
        for number in range(self._count):
            self.background.start(self._run(), f"consume {number}")

    async def _run(self) -> None:
        await self._work_on()

    def __enter__(self) -> None:
        self._busy += 1

    def __exit__(self, *_: object) -> None:
        self._busy -= 1
        if self.is_stopping and not self._busy:
            self._idle.set()

    async def stop(self, wait_s: float) -> None:
        """Begin nothing new; give work in progress that long to end."""
        self.is_stopping = True
        own = 1 if self.background.owns_current_task() else 0  # a listener may close its own consumer
        if self._busy > own:
            await wait_for_event(self._idle, wait_s)
        if self._busy > own:
            logger.warning("listener still busy", extra={"event": "listener_still_busy", "calls": self._busy})
        await self.background.close()


class Consuming:
    """Runs a listener over pulled messages. `failed` takes messages to be consumed later and returns those it could not
    get rid of: they are tried again here."""

    def __init__(self, calls: ListenerCalls, failed: TakesFailed, *, concurrency: int, batch_size: int) -> None:
        self._calls = calls
        self._failed = failed
        self._batch_size = batch_size
        self._work: asyncio.Queue[tuple[ProcessQueue, list[MessageExt]]] = asyncio.Queue()  # bounded by FlowLimits
        self._workers = Workers(concurrency, self._work_on)

    def start(self) -> None:
        self._calls.start()
        self._workers.start()

    async def stop(self, wait_s: float) -> None:
        await self._workers.stop(wait_s)
        self._calls.close()

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
            pending = [message for message in messages if process_queue.holds(message)]
            left = await self._failed(pending)
            if left:
                self._workers.background.start(self._again_later(process_queue, left), "consume again")
                messages = [message for message in messages if message not in left]
        process_queue.remove(messages)

    async def _again_later(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        await asyncio.sleep(LOCAL_RETRY_S)
        for message in messages:
            message.reconsume_times += 1
        self.submit(process_queue, messages)
