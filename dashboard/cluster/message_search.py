"""The gateway's search: looks through a topic's messages newest first, a step at a time, and never all at once.

Each step is one request of a page or a program: it reads some thousand messages at most and hands out the cursor to go
on from. So a search is stopped by not asking again, and costs nothing while its reader looks elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

from dashboard.cluster import browse
from dashboard.cluster.calls import CALL_ERRORS, CALLS_AT_ONCE, ClusterCalls
from dashboard.cluster.errors import TooManySearches
from dashboard.cluster.message_query import MessageQuery
from dashboard.cluster.message_scan import (
    STEP_LINES,
    STEP_MESSAGES,
    STEP_S,
    Scan,
    ScanStep,
    Seen,
    TimeSpan,
    Window,
    with_damage,
)
from dashboard.cluster.message_scan import seen as seen_of
from dashboard.cluster.values import PartialFailure, QueueExtent, TopicDetail
from dashboard.language.sentences import gettext
from dashboard.messages.bodies.registered import learn_schemas
from gantrymq.client.results import LostMessage
from gantrymq.message.model import MessageExt

SEARCHES_AT_ONCE = 4
SEARCHES_WAITING_MAX = 16


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for. queue: only in this one, by its key."""

    query: MessageQuery
    span: TimeSpan
    queue: str | None = None

    def matches(self, message: MessageExt) -> bool:
        return self.span.has(message.store_timestamp) and self.query.matches(message)

    async def get_ready(self, messages: Iterable[MessageExt]) -> None:
        """Before `matches`: ask for the schemas that a look inside of these bodies needs."""
        if self.query.json:
            await learn_schemas((message.topic, bytes(message.body)) for message in messages)


class MessageSearch:
    """`gateway.search`: what pages, exports and REST ask."""

    def __init__(self, calls: ClusterCalls) -> None:
        self._calls = calls
        self._gate: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._waiting = 0

    async def step(
        self,
        detail: TopicDetail,
        search: Search,
        *,
        older: Mapping[str, int] | None = None,
        limit: int = STEP_LINES,
    ) -> ScanStep:
        """Look on from the cursor, for up to STEP_S or STEP_MESSAGES, or until `limit` match. Raises TooManySearches.

        A broker that does not answer ends the step; the cursor stays before what could not be read.
        """
        async with self._turn():
            started = time.perf_counter()
            failures = [*detail.failures]
            scan = await self._begin(detail, search, older or {}, failures)
            while not scan.is_done:
                windows = await self._read(detail, scan, search, failures)
                if len(failures) > len(detail.failures):
                    break
                scan.take(windows, limit)
                took_s = time.perf_counter() - started
                if scan.scanned >= STEP_MESSAGES or len(scan.lines) >= limit or took_s >= STEP_S:
                    break
            cursor = None if scan.is_done else browse.write_cursor(scan.high)
            took_ms = (time.perf_counter() - started) * 1000
            return ScanStep(tuple(scan.lines), scan.scanned, cursor, scan.reached_ms, took_ms, tuple(failures))

    async def _begin(
        self, detail: TopicDetail, search: Search, older: Mapping[str, int], failures: list[PartialFailure]
    ) -> Scan:
        """The offsets of the span in each queue, by the brokers' time index; the cursor's where it has one."""
        queues = [queue for queue in detail.queues if search.queue in (None, queue.key)]
        gate = asyncio.Semaphore(CALLS_AT_ONCE)

        async def bounds(queue: QueueExtent) -> tuple[int, int]:
            async with gate:
                low, high = queue.min_offset, min(older.get(queue.key, queue.max_offset), queue.max_offset)
                # The index gives the nearest message, and any of several of one time: ask just outside the span.
                if search.span.since_ms is not None and low < high:
                    low = max(low, await self._offset_at(detail, queue, search.span.since_ms - 1))
                if search.span.until_ms is not None and queue.key not in older and low < high:
                    high = min(high, await self._offset_at(detail, queue, search.span.until_ms + 1) + 1)
                return low, max(low, high)

        found: dict[str, tuple[int, int]] = {}
        results = await asyncio.gather(*(bounds(queue) for queue in queues), return_exceptions=True)
        for queue, result in zip(queues, results, strict=True):
            if isinstance(result, CALL_ERRORS):
                failures.append(browse.queue_failure(queue, result))
                result = (queue.min_offset, min(older.get(queue.key, queue.max_offset), queue.max_offset))
            elif isinstance(result, BaseException):
                raise result
            found[queue.key] = result
        low, high = ({key: ends[side] for key, ends in found.items()} for side in (0, 1))
        return Scan(low, high, {queue.key: queue for queue in queues})

    async def _offset_at(self, detail: TopicDetail, queue: QueueExtent, at_ms: int) -> int:
        address = detail.addresses[queue.broker_name]
        return await self._calls.call(
            lambda admin: admin.offsets.search_at(address, detail.name, queue.queue_id, max(0, at_ms))
        )

    async def _read(
        self, detail: TopicDetail, scan: Scan, search: Search, failures: list[PartialFailure]
    ) -> list[Window]:
        gate = asyncio.Semaphore(CALLS_AT_ONCE)

        async def read(span: browse.Span) -> Window | None:
            async with gate:
                try:
                    return Window(span, await self._read_span(detail, span, search))
                except CALL_ERRORS as exc:
                    failures.append(browse.queue_failure(span, exc))
                    return None

        windows = await asyncio.gather(*(read(span) for span in scan.windows()))
        return [window for window in windows if window is not None]

    async def _read_span(self, detail: TopicDetail, span: browse.Span, search: Search) -> list[Seen]:
        """Look at all of a span. A broker hands out few at a time, so in rounds; each comes at least one further."""
        found: list[Seen] = []
        damaged: list[LostMessage] = []
        address, position = detail.addresses[span.broker_name], span.start
        while position < span.end:
            start, wanted = position, span.end - position
            lost: list[LostMessage] = []
            messages, next_offset, *_ = await self._calls.call(
                lambda admin, start=start, wanted=wanted, lost=lost: admin.messages.pull_at(  # type: ignore[misc]
                    address, detail.name, span.queue_id, start, wanted, on_lost=lost.append
                )
            )
            damaged += lost
            await search.get_ready(messages)
            for message in messages:
                message.broker_name = span.broker_name
                if message.queue_offset < span.end:
                    found.append(seen_of(message, search.matches))
            if next_offset <= position:
                break
            position = next_offset
        return with_damage(found, [lost for lost in damaged if lost.queue_offset < span.end], span.broker_name)

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Few search at once, some wait, the rest are refused."""
        loop = asyncio.get_running_loop()
        if self._gate is None or self._gate[0] is not loop:
            self._gate, self._waiting = (loop, asyncio.Semaphore(SEARCHES_AT_ONCE)), 0
        if self._waiting >= SEARCHES_WAITING_MAX:
            raise TooManySearches(gettext("Too many searches at once."))
        self._waiting += 1
        try:
            await self._gate[1].acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._gate[1].release()
