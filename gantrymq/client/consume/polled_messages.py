"""What a pull consumer has pulled ahead: messages that wait to be polled, and those that the application has now.

The application has one batch at a time. It gets all of it at once (`poll`), or message by message (an iterator). Its
position says which messages it finished and which it was given; what it was never given goes back to the others.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator

from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.produce.trace import ConsumeTracer, TracedCall
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.timeouts import wait_for_event


class PolledBatch:
    """Messages of one queue that are the application's turn. `finished` and `given` count from the first.

    A thread may move the position while the event loop reads it: each is one assignment.
    """

    __slots__ = (
        "_began", "_paused", "_traced", "_tracer", "finished", "given", "is_over", "messages", "process_queue",
    )  # fmt: skip

    def __init__(
        self,
        process_queue: ProcessQueue,
        messages: list[MessageExt],
        paused: set[MessageQueue],
        tracer: ConsumeTracer | None = None,
    ) -> None:
        self.process_queue: ProcessQueue = process_queue
        self.messages: list[MessageExt] = messages
        self.finished: int = 0
        self.given: int = len(messages)
        self.is_over: bool = False  # another batch is the application's turn
        self._paused = paused
        self._tracer = tracer
        self._traced: TracedCall | None = None
        self._began = 0.0

    def trace_given(self, messages: list[MessageExt]) -> None:
        """These are in the application's hands from now on."""
        if self._tracer is not None:
            self._traced = self._tracer.before(messages)
            self._began = time.monotonic()

    def trace_end(self, *, is_done: bool) -> None:
        """They are finished, or come again."""
        if self._tracer is not None and self._traced is not None:
            took_s = time.monotonic() - self._began
            self._tracer.after(self._traced, took_s, is_done=is_done, has_raised=not is_done)
            self._traced = None

    def one_by_one(self) -> Iterator[MessageExt]:
        """Give message by message. Asking for the next one says that those before are finished. Ends early when the
        queue goes on elsewhere (`seek`, another member), or is paused."""
        queue = self.process_queue
        for position, message in enumerate(self.messages):
            self.trace_end(is_done=True)
            if self.is_over or queue.was_dropped() or queue.queue in self._paused:
                return
            self.finished = position
            self.given = position + 1
            self.trace_given([message])
            yield message
        self.trace_end(is_done=True)


class PolledMessages:
    """Messages in the order of their arrival, at most `batch_size` at once and all of one queue."""

    def __init__(self, batch_size: int, tracer: ConsumeTracer | None = None) -> None:
        self.paused: set[MessageQueue] = set()
        self._batch_size = batch_size
        self._tracer = tracer
        self._arrived: deque[tuple[ProcessQueue, list[MessageExt]]] = deque()  # bounded by FlowLimits
        self._has_arrived = asyncio.Event()
        self._last: PolledBatch | None = None

    def add(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Add messages of a pull, which the process queue holds already."""
        self._arrived.append((process_queue, messages))
        self._has_arrived.set()

    async def next(self, timeout_s: float, *, one_by_one: bool = False) -> PolledBatch | None:
        """The next messages, None when none come in time or `wake` was called. one_by_one: nothing of the batch counts
        as given before its iterator gives it."""
        deadline = time.monotonic() + timeout_s
        while (found := self._take()) is None:
            self._has_arrived.clear()
            if not await wait_for_event(self._has_arrived, deadline - time.monotonic()):
                return None
            if not self._arrived:
                return None
        if one_by_one:
            found.given = 0
        else:
            found.trace_given(found.messages)
        return found

    def _take(self) -> PolledBatch | None:
        if (found := self._first()) is None:
            return None
        process_queue, messages = found
        if len(messages) > self._batch_size:
            self._arrived.appendleft((process_queue, messages[self._batch_size :]))
            messages = messages[: self._batch_size]
        self._last = PolledBatch(process_queue, messages, self.paused, self._tracer)
        return self._last

    def _first(self) -> tuple[ProcessQueue, list[MessageExt]] | None:
        """Take out what arrived first of queues that are not paused. What is paused keeps its place."""
        paused: list[tuple[ProcessQueue, list[MessageExt]]] = []
        try:
            while self._arrived:
                process_queue, messages = self._arrived.popleft()
                if process_queue.was_dropped():
                    continue
                if process_queue.queue not in self.paused:
                    return process_queue, messages
                paused.append((process_queue, messages))
            return None
        finally:
            self._arrived.extendleft(reversed(paused))

    def finish(self) -> None:
        """Count what the application was given as consumed, and end its turn: what it was not given is polled next."""
        if (last := self._last) is None:
            return
        self.finish_given()
        last.trace_end(is_done=True)
        last.is_over = True
        self._last = None
        if last.given < len(last.messages):
            self._arrived.appendleft((last.process_queue, last.messages[last.given :]))
            self._has_arrived.set()

    def finish_given(self) -> None:
        """Count what the application was given as consumed; an iterator goes on behind it."""
        if (last := self._last) is not None:
            last.process_queue.remove(last.messages[: last.given])

    def settle(self) -> None:
        """Count as consumed what the application went past, and not the message that it may still be working on."""
        if (last := self._last) is not None and last.finished:
            last.process_queue.remove(last.messages[: last.finished])

    def forget(self, queue: MessageQueue) -> None:
        """Do not count what was polled last of this queue: it goes on at another offset."""
        if self._last is not None and self._last.process_queue.queue == queue:
            self._last.trace_end(is_done=False)
            self._last.is_over = True
            self._last = None

    def leave(self) -> None:
        """The consumer closes: what the application did not finish comes again."""
        if self._last is not None:
            self._last.trace_end(is_done=False)
        self._has_arrived.set()

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Return these queues' messages from `next` again."""
        self.paused.difference_update(queues)
        self._has_arrived.set()
