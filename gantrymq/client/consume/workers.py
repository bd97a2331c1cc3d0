"""The tasks of a push consumer that call the listener, and what the services that use them have in common.

`concurrent_service` and `ordered_service` say in which order the messages are consumed and what becomes of failed ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from gantrymq.client.connection.background import Background
from gantrymq.client.consume.listener_calls import ListenerCalls, ThreadsEnded
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.message.model import MessageExt
from gantrymq.timeouts import wait_for_event

logger: logging.Logger = logging.getLogger(__name__)


class Workers:
    """`count` tasks that each run `work_on` until they are stopped. `with workers:` marks one as busy."""

    def __init__(self, count: int, work_on: Callable[[], Awaitable[None]]) -> None:
        self.background: Background = Background()
        self.is_stopping: bool = False
        self._count = count
        self._work_on = work_on
        self._busy = 0
        self._idle = asyncio.Event()

    def start(self) -> None:
        for number in range(self._count):
            self.background.start(self._run(), f"consume {number}")

    async def _run(self) -> None:
        with contextlib.suppress(ThreadsEnded):  # at exit: what is left stays uncommitted and comes again
            await self._work_on()

    def __enter__(self) -> None:
        self._busy += 1

    def __exit__(self, *_: object) -> None:
        self._busy -= 1
        if self.is_stopping and not self._busy:
            self._idle.set()

    async def stop(self, wait_s: float) -> bool:
        """Begin nothing new; wait for work in progress, `wait_s` at most, then cancel it. Whether all has ended."""
        self.is_stopping = True
        own = 1 if self.background.owns_current_task() else 0  # a listener may close its own consumer
        if self._busy > own:
            await wait_for_event(self._idle, wait_s)
        has_ended = self._busy <= own
        if not has_ended:
            logger.warning(
                "listener still busy (calls=%s)",
                self._busy,
                extra={"event": "listener_still_busy", "calls": self._busy},
            )
        await self.background.close()
        return has_ended


class ConsumeService(ABC):
    """Gives pulled messages to the listener and acts on its answer (RocketMQ: ConsumeMessageService)."""

    def __init__(self, calls: ListenerCalls, concurrency: int) -> None:
        self._calls = calls
        self._workers = Workers(concurrency, self._work_on)

    def start(self) -> None:
        """Begin to consume what is submitted."""
        self._calls.start()
        self._workers.start()

    async def stop(self, wait_s: float) -> bool:
        """Begin no further call; wait for calls in progress, `wait_s` at most. Whether all have ended."""
        has_ended = await self._workers.stop(wait_s)
        self._calls.close()
        return has_ended

    def begin_nothing_more(self) -> None:
        """Have no further listener call begun. From a signal's handler, too, while a listener blocks the event loop."""
        self._workers.is_stopping = True

    @abstractmethod
    def submit(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Have messages consumed that the process queue holds already."""

    @abstractmethod
    async def _work_on(self) -> None:
        """What each worker does until it is stopped."""
