"""What a pull consumer has pulled ahead: batches of messages that wait to be polled, and those polled last."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable

from gantrymq.client.connection.background import wait_for_event
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.message.model import MessageExt, MessageQueue


class PolledMessages:
    """Messages in the order of their arrival, at most `batch_size` at once and all of one queue."""

    def __init__(self, batch_size: int) -> None:
        self.paused: set[MessageQueue] = set()
        self._batch_size = batch_size
        self._arrived: deque[tuple[ProcessQueue, list[MessageExt]]] = deque()  # bounded by FlowLimits
        self._has_arrived = asyncio.Event()
        self._last: tuple[ProcessQueue, list[MessageExt]] | None = None

    def add(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Add messages of a pull, which the process queue holds already."""
        self._arrived.append((process_queue, messages))
        self._has_arrived.set()

    async def next(self, timeout_s: float) -> list[MessageExt]:
        """The next messages, none when none come in time or `wake` was called."""
        deadline = time.monotonic() + timeout_s
        while not (found := self._take()):
            self._has_arrived.clear()
            if not await wait_for_event(self._has_arrived, deadline - time.monotonic()):
                return []
            if not self._arrived:
                return []
        return found

    def _take(self) -> list[MessageExt]:
        for _ in range(len(self._arrived)):
            process_queue, messages = self._arrived.popleft()
            if process_queue.was_dropped():
                continue
            if process_queue.queue in self.paused:
                self._arrived.append((process_queue, messages))
                continue
            if len(messages) > self._batch_size:
                self._arrived.appendleft((process_queue, messages[self._batch_size :]))
                messages = messages[: self._batch_size]
            self._last = process_queue, messages
            return messages
        return []

    def finish(self) -> None:
        """Count the messages that were polled last as consumed."""
        if self._last is not None:
            process_queue, messages = self._last
            process_queue.remove(messages)
            self._last = None

    def forget(self, queue: MessageQueue) -> None:
        """Do not count what was polled last of this queue: it goes on at another offset."""
        if self._last is not None and self._last[0].queue == queue:
            self._last = None

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Return these queues' messages from `next` again."""
        self.paused.difference_update(queues)
        self._has_arrived.set()

    def wake(self) -> None:
        """Have a waiting `next` look again."""
        self._has_arrived.set()
