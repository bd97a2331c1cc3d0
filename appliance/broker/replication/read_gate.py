"""readConfirmedOnly: consumers see a message once every slave that is in sync has it; while none is, nothing new.

Without it a consumer may read what no slave has. If then a slave becomes the master, the consumer is ahead of a shorter
log, and skips what comes at the same queue offsets anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from store.appender import ArrivalListener
from store.log.commit_log import NEVER
from store.message_store import MessageStore

ARRIVALS_MAX = 100_000  # puts that wait to be told; beyond, all waiting pulls look again


class ReadGate:
    """One store's. wake_all: has all who wait for messages look again. is_waited_for: whether a listener would do
    anything when a message of a topic arrived now. Where it would not, who comes before the message is shown looks
    again then, and nothing is kept for each message.
    """

    def __init__(self, store: MessageStore, wake_all: Callable[[], None], is_waited_for: Callable[[str], bool]) -> None:
        self._store = store
        self._wake_all = wake_all
        self._is_waited_for = is_waited_for
        self._tell: ArrivalListener | None = None
        self._waiting: deque[tuple[int, tuple[str, int, int, Sequence[int]]]] = deque()
        self._left_out_to = -1  # up to here who waits was not told of all

    def close_behind(self) -> None:
        """From now on listeners hear of a message when it can be read. Call it when all of them are there."""
        if self._tell is not None:
            return
        self._tell = self._store.arrival_listener
        self._store.arrival_listener = self._arrived

    def show(self, end: int | None) -> None:
        """Show what lies below `end`, None: all."""
        self._store.show_below(NEVER if end is None else end)
        if self._left_out_to >= 0:
            self._wake_all()
            if end is None or end >= self._left_out_to:
                self._left_out_to = -1
        while self._waiting and (end is None or self._waiting[0][0] <= end):
            _end, arrival = self._waiting.popleft()
            if self._tell is not None:
                self._tell(*arrival)

    def _arrived(self, topic: str, queue_id: int, first_offset: int, tags_codes: Sequence[int]) -> None:
        end = self._store.max_physical_offset
        if end > self._store.shown_below:
            if len(self._waiting) < ARRIVALS_MAX and self._is_waited_for(topic):
                self._waiting.append((end, (topic, queue_id, first_offset, tags_codes)))
            else:
                self._left_out_to = end
        elif self._tell is not None:
            self._tell(topic, queue_id, first_offset, tags_codes)
