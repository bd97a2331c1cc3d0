"""The trace topic looked through newest first, a step at a time, as a topic's messages are; by id or key at once.

An event of handling does not say its topic. Where a topic is asked for, or the account may not see every topic, the
sender's word is looked up by the message's id, for a bounded number of messages a step.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dashboard.cluster import browse
from dashboard.cluster.calls import CALLS_AT_ONCE, refusals_of
from dashboard.cluster.errors import TopicNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_query import MessageQuery
from dashboard.cluster.message_scan import TimeSpan
from dashboard.cluster.message_search import Search
from dashboard.cluster.trace_steps import Lane, Step, lanes_of, seen_by, steps_of
from dashboard.cluster.values import PartialFailure, TopicDetail
from dashboard.limits.names import current, unlimited
from dashboard.messages.trace_events import TraceEvent, TraceWish, events_of, topics_of
from gantrymq.client.produce.trace_records import TraceKind, TraceRecord
from gantrymq.errors import RouteNotFound
from gantrymq.message.model import MessageExt
from gantrymq.message.topics import TRACE_TOPIC

STEP_MATCHES = 16  # trace messages, of which each may carry hundreds of events
LOOKUPS_MAX = 64  # of topics, in a step
FOUND_MAX = 64  # trace messages that the index is asked for


@dataclass(frozen=True, slots=True)
class _TraceSearch(Search):
    """A search that keeps what it decoded, by the place of the trace message."""

    wish: TraceWish = TraceWish()
    found: dict[str, list[TraceEvent]] = field(default_factory=dict)

    def matches(self, message: MessageExt) -> bool:
        if not self.span.has(message.store_timestamp):
            return False
        events = [event for event in events_of(message) if self.wish.has(event)]
        if events:
            self.found[f"{message.broker_name}.{message.queue_id}.{message.queue_offset}"] = events
        return bool(events)


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The events that fit, the newest first. scanned: trace messages; older: the cursor to go on from, None: all done.

    is_off: the cluster has no trace topic.
    """

    events: tuple[TraceEvent, ...] = ()
    scanned: int = 0
    older: str | None = None
    reached_ms: int = 0
    took_ms: float = 0.0
    failures: tuple[PartialFailure, ...] = ()
    is_off: bool = False


@dataclass(frozen=True, slots=True)
class TraceLife:
    """All that was told of one message. place: where it is stored still, "" when it is not or its topic is not told."""

    topic: str
    steps: tuple[Step, ...]
    place: str = ""

    @property
    def lanes(self) -> list[Lane]:
        return lanes_of(self.steps)


async def look(gateway: Gateway, wish: TraceWish, span: TimeSpan, older: Mapping[str, int] | None = None) -> TraceStep:
    """The next step. Raises GatewayError."""
    with unlimited():
        try:
            detail = await gateway.topics.get(TRACE_TOPIC)
        except TopicNotFound:
            return TraceStep(is_off=True)
        step = (
            await _by_text(gateway, detail, wish, span)
            if wish.text
            else await _scan(gateway, detail, wish, span, older)
        )
        events = await _with_topics(gateway, wish, step.events)
    seen = (seen_part(event) for event in events if _fits(event, wish))
    return replace(step, events=tuple(event for event in seen if event is not None and wish.has(event)))


async def life(gateway: Gateway, msg_id: str) -> TraceLife | None:
    """What was told of the message, None when nothing was. Raises GatewayError."""
    with unlimited():
        records = await _records(gateway, msg_id)
    topic = topics_of(records).get(msg_id, "")
    groups = {record.group for record in records}
    may = current().allows
    if not records or not (may(topic) if topic else any(may(group) for group in groups)):
        return None
    records = seen_by(current(), records)
    if topic:
        try:
            page = await gateway.messages.find(await gateway.topics.get(topic), msg_id, limit=1)
        except TopicNotFound:  # deleted since
            return TraceLife(topic, steps_of(None, records))
        for message in page.messages:
            place = f"{message.broker_name}.{message.queue_id}.{message.queue_offset}"
            return TraceLife(topic, steps_of(message, records), place)
    return TraceLife(topic, steps_of(None, records))


async def topic_of(gateway: Gateway, msg_id: str) -> str:
    """Where its sender reported that it sent the message; "" when no sender did. Raises GatewayError."""
    with unlimited():
        return topics_of(await _records(gateway, msg_id)).get(msg_id, "")


def seen_part(event: TraceEvent) -> TraceEvent | None:
    """What the account may know of it: topic, or where that is not told group, and no other group's name or work."""
    limit = current()
    if not limit.allows(event.topic or event.group):
        return None
    if limit.allows(event.group):
        return event
    return None if event.kind is TraceKind.SUB_AFTER else replace(event, group="", client_host="")


def _fits(event: TraceEvent, wish: TraceWish) -> bool:
    return wish.topic in ("", event.topic)


async def _scan(
    gateway: Gateway, detail: TopicDetail, wish: TraceWish, span: TimeSpan, older: Mapping[str, int] | None
) -> TraceStep:
    search = _TraceSearch(MessageQuery(), span, None, wish)
    step = await gateway.search.step(detail, search, older=older, limit=STEP_MATCHES)
    events = newest_first(event for line in step.lines for event in search.found.get(line.place, ()))
    return TraceStep(events, step.scanned, step.older, step.reached_ms, step.took_ms, step.failures)


async def _by_text(gateway: Gateway, detail: TopicDetail, wish: TraceWish, span: TimeSpan) -> TraceStep:
    """Trace messages have the ids and keys of what they tell of as keys, so the index knows."""
    started = time.perf_counter()
    page = await gateway.messages.find(detail, wish.text, limit=FOUND_MAX)
    told = [message for message in page.messages if span.has(message.store_timestamp)]
    events = newest_first(_matching(told, wish))
    took_ms = (time.perf_counter() - started) * 1000
    return TraceStep(events, len(page.messages), None, 0, took_ms, page.failures)


def newest_first(events: Iterable[TraceEvent]) -> tuple[TraceEvent, ...]:
    """A trace message has many events, and others' lie between them."""
    return tuple(sorted(events, key=lambda event: -event.at_ms))


def _matching(told: Iterable[MessageExt], wish: TraceWish) -> list[TraceEvent]:
    return [
        event for message in sorted(told, key=browse.newest_first) for event in events_of(message) if wish.has(event)
    ]


async def _with_topics(gateway: Gateway, wish: TraceWish, events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """The events with their topics, where these have to be known."""
    events = list(events)
    known = {event.msg_id: event.topic for event in events if event.topic}
    unknown = list(dict.fromkeys(event.msg_id for event in events if event.msg_id not in known))
    if (wish.topic or current().is_limited or len(unknown) <= LOOKUPS_MAX) and unknown:
        gate = asyncio.Semaphore(CALLS_AT_ONCE)

        async def ask(msg_id: str) -> None:
            async with gate:
                known.update(topics_of(await _records(gateway, msg_id)))

        await asyncio.gather(*(ask(msg_id) for msg_id in unknown[:LOOKUPS_MAX]))
    return [replace(event, topic=event.topic or known.get(event.msg_id, "")) for event in events]


async def _records(gateway: Gateway, msg_id: str) -> list[TraceRecord]:
    with refusals_of(), contextlib.suppress(RouteNotFound):
        return (await gateway.calls.call(lambda admin: admin.messages.trace(msg_id))).records
    return []
