"""The live tail of topics: looks at a topic twice a second while a socket watches it, and sends what is new.

However many sockets watch a topic, it is read once. A busy topic is sampled: at most ROWS_MAX messages a look are
shown, the rest is counted and the page says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from django.template.loader import render_to_string
from django.utils import translation

from dashboard.cluster.browse import newest_first
from dashboard.cluster.calls import CALL_ERRORS
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_values import MessageLine, with_damaged
from dashboard.cluster.values import QueueExtent, TopicDetail, mean_rate, rated_since
from dashboard.live import frames
from dashboard.live.layer import send_frame
from dashboard.live.shares import NoPlace, Seat, Shares
from dashboard.status.metrics import topic_metrics
from dashboard.topics.metrics import put_size
from dashboard.topics.topic_cache import topic_book
from gantrymq.client.results import LostMessage
from gantrymq.message.model import MessageExt
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

PERIOD_S = 0.5
CALL_LIMIT_S = 5.0
LOOK_LIMIT_S = 60.0  # of all its calls, and its work: on a starved machine that takes long with every call answered
LOOKS_KEPT = 8  # for a listener that takes its time
TOPICS_MAX = 32  # watched at once, over all sockets; accounts share them


class Arrivals:
    """What one listener has not taken yet; of more than LOOKS_KEPT looks the oldest go, counted."""

    def __init__(self) -> None:
        self._looks: deque[tuple[list[MessageLine], int]] = deque()
        self._lost = 0
        self._is_over = False

    def put(self, messages: list[MessageLine], more: int) -> None:
        if not messages and not more:
            return
        if len(self._looks) >= LOOKS_KEPT:
            gone, uncounted = self._looks.popleft()
            self._lost += len(gone) + uncounted
        self._looks.append((messages, more))

    def get_nowait(self) -> tuple[list[MessageLine], int]:
        """One look's: the messages, newest first, and how many there were besides.

        asyncio.QueueEmpty: nothing at the moment. NoPlace: another account needed the place.
        """
        if self._is_over:
            raise NoPlace
        if not self._looks:
            raise asyncio.QueueEmpty
        return self._looks.popleft()

    def end(self) -> None:
        self._is_over = True

    def take_lost(self) -> int:
        """How many were thrown away since this was asked last."""
        lost, self._lost = self._lost, 0
        return lost


@dataclass(slots=True)
class _Watched:
    """What is known of one watched topic."""

    ends: dict[str, int] = field(default_factory=dict)  # queue key to the offset up to which rows were sent
    total: tuple[float, int] | None = None  # when, and the sum of ends
    mean: float | None = None
    since: float = -math.inf  # where the time begins that it is a mean of: other pages' are of their whole minute

    def rate(self, now: float, total: int, known: float | None) -> float | None:
        """The rate that all pages show; known: theirs, from which this one goes on."""
        if self.total is None:
            self.mean = known
        else:
            at, before = self.total
            self.since = rated_since(self.mean, self.since, at)
            self.mean = mean_rate(total - before, now - at, self.mean, at - self.since)
        self.total = (now, total)
        return self.mean


class TopicTail:
    """Knows who watches what; `run` does the looking. One per process."""

    def __init__(self) -> None:
        self._shares: Shares[str] = Shares()
        self._state: dict[str, _Watched] = {}
        self._listeners: dict[str, list[Arrivals]] = {}

    @property
    def watched(self) -> frozenset[str]:
        """The topics that are open in a browser."""
        return self._shares.things

    def watch(self, topic: str, account: int, lost: Callable[[], None]) -> Seat[str]:
        """One watcher of the topic more. lost: see Seat. Raises NoPlace."""
        seat = self._shares.take(topic, account, TOPICS_MAX, lost)
        self._forget_others()
        return seat

    def has_place(self, topic: str, account: int) -> bool:
        """Whether the account may watch this topic, too."""
        return self._shares.has_place(topic, account, TOPICS_MAX)

    @contextlib.contextmanager
    def listen(self, topic: str, account: int) -> Iterator[Arrivals]:
        """Watch the topic and get its messages as they are, not as rows. Raises NoPlace."""
        arrivals = Arrivals()
        seat = self.watch(topic, account, arrivals.end)
        self._listeners.setdefault(topic, []).append(arrivals)
        try:
            yield arrivals
        finally:
            self._listeners[topic].remove(arrivals)
            if not self._listeners[topic]:
                del self._listeners[topic]
            self.unwatch(seat)

    def begin_at(self, topic: str, queues: Iterable[QueueExtent]) -> None:
        """The page shows everything up to here: what comes after it is new, however soon it comes."""
        if topic in self._shares and topic not in self._state:
            self._state[topic] = _Watched({queue.key: queue.max_offset for queue in queues})

    def unwatch(self, seat: Seat[str]) -> None:
        self._shares.give_back(seat)
        self._forget_others()

    def _forget_others(self) -> None:
        for topic in self._state.keys() - self._shares.things:
            del self._state[topic]

    async def run(self, gateway: Gateway) -> None:
        """Look at all watched topics until cancelled. One that is slow to read holds up no other."""
        looks: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(PERIOD_S)
                looks = {topic: look for topic, look in looks.items() if not look.done()}
                for topic in self._shares.things - looks.keys():
                    looks[topic] = group.create_task(self._look_safely(gateway, topic), name="topic-look")

    async def _look_safely(self, gateway: Gateway, topic: str) -> None:
        try:
            async with timeout(LOOK_LIMIT_S):
                await self.look(gateway, topic)
        except CALL_ERRORS as exc:  # the page's values grow old and say so
            logger.debug("topic not read", extra={"event": "tail_failed", "topic": topic, "error": str(exc)})
        except Exception:  # a bug with one topic must not end the tails of all
            logger.exception("tail failed", extra={"event": "tail_failed", "topic": topic})

    async def look(self, gateway: Gateway, topic: str) -> None:
        """One look at one topic: send what is new since the last."""
        queues = await gateway.topics.queues(topic, timeout_s=CALL_LIMIT_S)
        self.begin_at(topic, queues)
        known = self._state.get(topic)
        if known is None:
            return  # its last watcher has left
        fresh, more, ends = await self._fresh_messages(gateway, topic, queues, known)
        now = time.time()
        detail = TopicDetail(topic, "", (), queues, {}, now)
        rate = known.rate(now, detail.put_total, gateway.topics.known_rate(topic))
        facts = topic_book.facts(topic, {queue.broker_name for queue in queues})
        channel = frames.TOPIC + topic
        languages = frames.languages_of(channel)
        for language in languages:
            with translation.override(language):
                rows = render_lines(topic, fresh)
                metrics = topic_metrics(detail, rate)
                put_size(metrics, "topic", facts)
                frame = frames.topic_frame(topic, metrics, rows, more)
            await send_frame(channel, frames.group_of(channel, language), frame)
        for arrivals in self._listeners.get(topic, ()):
            arrivals.put(fresh, more)
        known.ends.update(ends)  # not before: a look that is cut off has shown nothing

    async def _fresh_messages(
        self, gateway: Gateway, topic: str, queues: tuple[QueueExtent, ...], known: _Watched
    ) -> tuple[list[MessageLine], int, dict[str, int]]:
        """(the newest of what arrived, how many more there were, where the next look goes on)."""
        found: list[MessageExt] = []
        damaged: list[LostMessage] = []
        ends: dict[str, int] = {}
        arrived = 0
        for queue in queues:
            since = known.ends.get(queue.key, 0)
            if queue.max_offset < since:  # deleted and created again
                since = queue.min_offset
            if queue.max_offset <= since:
                ends[queue.key] = queue.max_offset
                continue
            start = max(since, queue.min_offset, queue.max_offset - frames.ROWS_MAX)
            pulled, lost = await gateway.messages.pull_new(topic, queue, start, frames.ROWS_MAX, CALL_LIMIT_S)
            found += pulled
            damaged += lost
            offsets = [*(message.queue_offset for message in pulled), *(each.queue_offset for each in lost)]
            end = max(offsets) + 1 if offsets else queue.max_offset
            arrived += max(end, queue.max_offset) - since if len(pulled) >= frames.ROWS_MAX else end - since
            ends[queue.key] = end
        found.sort(key=newest_first)
        lines = [MessageLine.of(message) for message in found[: frames.ROWS_MAX]]  # a line decodes its body
        shown = with_damaged(lines, damaged)[: frames.ROWS_MAX]
        return shown, max(0, arrived - len(shown)), ends


def render_lines(topic: str, lines: Iterable[MessageLine]) -> list[str]:
    """Message rows by the page's own template."""
    return [render_to_string("messages/_message_row.html", {"line": line, "topic": topic}) for line in lines]


topic_tail = TopicTail()
