"""The workers that give messages to the listener and act on its answer.

An async listener runs on the event loop, a plain function in a thread pool; `concurrency` calls run at once either way.
Success (also: returning None) is done. LATER, or an exception, hands the messages to `failed`, which sends them back.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from gantrymq.client.background import Background, wait_for_event
from gantrymq.client.process_queue import ProcessQueue
from gantrymq.client.results import ConsumeResult
from gantrymq.client.running_info import ConsumeCounters
from gantrymq.message.model import MessageExt

logger = logging.getLogger(__name__)

Listener = Callable[[list[MessageExt]], ConsumeResult | Awaitable[ConsumeResult | None] | None]
FailedMessages = Callable[[list[MessageExt]], Awaitable[list[MessageExt]]]

LOCAL_RETRY_S = 5.0  # RocketMQ: submitConsumeRequestLater; when a failed message could not even be sent back


class Consuming:
    """Runs a listener over pulled messages. `failed` takes messages to be consumed later and returns those it could not
    get rid of: they are tried again here."""

    def __init__(
        self,
        listener: Listener,
        failed: FailedMessages,
        counters: ConsumeCounters,
        *,
        concurrency: int,
        batch_size: int,
    ) -> None:
        self._listener = listener
        self._failed = failed
        self._counters = counters
        self._concurrency = concurrency
        self._batch_size = batch_size
        self._is_async = inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
            getattr(listener, "__call__", None)  # noqa: B004 - an object whose __call__ is async counts too
        )
        self._work: asyncio.Queue[tuple[ProcessQueue, list[MessageExt]]] = asyncio.Queue()
        self._background = Background()
        self._threads: ThreadPoolExecutor | None = None
        self._busy = 0
        self._idle = asyncio.Event()
        self._is_stopping = False

    @property
    def waiting(self) -> int:
        """Listener calls that wait for a worker."""
        return self._work.qsize()

    def start(self) -> None:
        if not self._is_async:
            self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="gantrymq-listener")
        for number in range(self._concurrency):
            self._background.start(self._work_on(), f"consume {number}")

    async def stop(self, wait_s: float) -> None:
        """Begin nothing new; give calls in progress that long to end."""
        self._is_stopping = True
        own = 1 if self._background.owns_current_task() else 0  # a listener may close its own consumer
        if self._busy > own:
            await wait_for_event(self._idle, wait_s)
        if self._busy > own:
            logger.warning("listener still busy", extra={"event": "listener_still_busy", "calls": self._busy})
        await self._background.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def submit(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Have the messages consumed, in portions of the batch size."""
        size = self._batch_size
        if len(messages) <= size:
            self._work.put_nowait((process_queue, messages))
            return
        for start in range(0, len(messages), size):
            self._work.put_nowait((process_queue, messages[start : start + size]))

    async def call(self, messages: list[MessageExt]) -> ConsumeResult:
        """Give messages to the listener. What it raises is raised."""
        if self._threads is not None:
            outcome = await asyncio.get_running_loop().run_in_executor(self._threads, self._listener, messages)
        else:
            outcome = self._listener(messages)
        if inspect.isawaitable(outcome):
            outcome = await outcome
        return ConsumeResult.SUCCESS if outcome is None else outcome

    async def _work_on(self) -> None:
        while True:
            process_queue, messages = await self._work.get()
            if process_queue.was_dropped() or self._is_stopping:
                continue
            self._busy += 1
            try:
                await self._consume(process_queue, messages)
            finally:
                self._call_ended()

    def _call_ended(self) -> None:
        self._busy -= 1
        if self._is_stopping and not self._busy:
            self._idle.set()

    async def _consume(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        started = time.monotonic()
        process_queue.begin(messages, started)
        try:
            result = await self.call(messages)
        except Exception:  # the listener's bug: told in full, and the messages come again
            logger.exception(
                "listener failed",
                extra={"event": "listener_failed", "msg_id": messages[0].msg_id, "count": len(messages)},
            )
            result = ConsumeResult.LATER
        is_done = result is ConsumeResult.SUCCESS
        topic = process_queue.queue.topic
        self._counters.consumed(topic, len(messages), is_done=is_done, took_s=time.monotonic() - started)
        if process_queue.was_dropped():
            return  # the queue's new owner gets the messages, done with or not
        if not is_done:
            pending = [message for message in messages if process_queue.holds(message)]
            left = await self._failed(pending)
            if left:
                self._background.start(self._again_later(process_queue, left), "consume again")
                messages = [message for message in messages if message not in left]
        process_queue.remove(messages)

    async def _again_later(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        await asyncio.sleep(LOCAL_RETRY_S)
        for message in messages:
            message.reconsume_times += 1
        self.submit(process_queue, messages)
