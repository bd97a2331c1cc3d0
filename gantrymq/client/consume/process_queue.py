"""What a consumer holds of one queue: messages that were pulled and are not finished yet.

A message is finished when it was consumed or sent back; messages finish in any order. The group's offset in the queue
is the smallest one that is not finished, so a crash repeats messages and never skips one. After the queue was dropped
(it went to another consumer, or was reset), late results are ignored.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from gantrymq.message.model import MessageExt, MessageQueue


class ProcessQueue:
    """The messages of one assigned queue. Used on the event loop only."""

    def __init__(self, queue: MessageQueue, next_offset: int, *, after: ProcessQueue | None = None) -> None:
        """after: what was held of the queue before; in ordered consumption its last call must end first, and counts
        unless that was dropped."""
        self.queue = queue
        self.next_offset: int = next_offset  # where the next pull begins
        self.is_leaving = False  # ordered: no further call, the one in progress still counts
        self._is_dropped = False
        self._after = after
        self._uses = 0
        self._unused = asyncio.Event()
        self.cached_bytes: int = 0
        self.last_pull_at: float = time.time()
        self.last_consume_at: float = time.time()
        # set whenever messages are finished: a pull loop that waits looks again
        self.changed: asyncio.Event = asyncio.Event()
        self._messages: OrderedDict[int, MessageExt] = OrderedDict()  # by queue offset, ascending
        self._body_bytes: dict[int, int] = {}  # as they came: a listener or an interceptor may give messages new bodies
        self._started: dict[int, float] = {}

    def was_dropped(self) -> bool:
        """Whether the queue was dropped; may change whenever something is awaited."""
        return self._is_dropped

    @property
    def cached_messages(self) -> int:
        """How many messages it holds, those in the listener's hands too."""
        return len(self._messages)

    @property
    def commit_offset(self) -> int:
        """The smallest offset that is not finished: where the group would go on."""
        return next(iter(self._messages)) if self._messages else self.next_offset

    @property
    def span(self) -> int:
        """Distance between the first and the last message held."""
        if not self._messages:
            return 0
        return next(reversed(self._messages)) - next(iter(self._messages))

    @property
    def offsets(self) -> tuple[int, int]:
        """Smallest and largest offset held, zeros when there is none."""
        if not self._messages:
            return 0, 0
        return next(iter(self._messages)), next(reversed(self._messages))

    def add(self, messages: Sequence[MessageExt], next_offset: int) -> None:
        """Take the messages of a pull that goes on at `next_offset`."""
        self.last_pull_at = time.time()
        for message in messages:
            offset, body_bytes = message.queue_offset, len(message.body)
            self.cached_bytes += body_bytes - self._body_bytes.get(offset, 0)
            self._messages[offset], self._body_bytes[offset] = message, body_bytes
        self.next_offset = next_offset

    def head(self, count: int) -> list[MessageExt]:
        """The first messages, up to that many."""
        return list(itertools.islice(self._messages.values(), count))

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Mark a listener call over these messages: `unused` waits for its end."""
        self._uses += 1
        self._unused.clear()
        try:
            yield
        finally:
            self._uses -= 1
            if not self._uses:
                self._unused.set()

    def is_in_use(self) -> bool:
        return self._uses > 0

    def is_waited_for(self) -> bool:
        """Whether a listener call lasts that must end before another may begin: over these messages, or over what was
        held of the queue before."""
        return self.is_in_use() or self.must_wait()

    async def unused(self) -> None:
        """Wait until no such call lasts."""
        if self.must_wait() and self._after is not None:
            await self._after.unused()
            self.must_wait()  # what that call did counts now
        if self._uses:
            await self._unused.wait()

    def must_wait(self) -> bool:
        """Whether a call over what was held of this queue before still lasts."""
        after = self._after
        if after is not None and not after.is_in_use() and not after.must_wait():
            if not after.was_dropped():  # it was this one under a lock that was lost: what its last call did counts
                self.remove([message for offset, message in self._messages.items() if offset < after.commit_offset])
            self._after = None
        return self._after is not None

    def begin(self, messages: Sequence[MessageExt], now: float) -> None:
        """Note that a listener has been given the messages. One that took too long before is not held any more."""
        for message in filter(self.holds, messages):
            self._started[message.queue_offset] = now

    def holds(self, message: MessageExt) -> bool:
        """Whether the message is held and not finished."""
        return not self._is_dropped and message.queue_offset in self._messages

    def remove(self, messages: Sequence[MessageExt]) -> None:
        """The messages are finished."""
        self.last_consume_at = time.time()
        for message in messages:
            self._started.pop(message.queue_offset, None)
            if self._messages.pop(message.queue_offset, None) is not None:
                self.cached_bytes -= self._body_bytes.pop(message.queue_offset)
        self.changed.set()

    def overdue(self, started_before: float) -> list[MessageExt]:
        """Messages a listener has had since before that time."""
        return [self._messages[offset] for offset, started in self._started.items() if started < started_before]

    def drop(self) -> None:
        """Ignore results from now on."""
        self._is_dropped = True
        self.changed.set()
