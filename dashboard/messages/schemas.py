"""What REST takes and gives about messages."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any, Literal, cast

from ninja import Field, Schema

from dashboard.cluster.message_fate import Fate, Trace
from dashboard.cluster.message_lookup import Looked
from dashboard.cluster.message_values import MessageLine
from dashboard.messages.forms import DELAYS_S, PROPERTY_LINES_MAX
from dashboard.messages.trace_events import TraceEvent
from dashboard.messages.trace_search import TraceStep
from dashboard.rest.values import Given
from gantrymq.client.results import SendResult
from gantrymq.message.model import MessageExt

How = Literal["newest", "place", "index", "search"]
DeliveryState = Literal["consumed", "not yet", "unknown"]
DELAY_LEVEL_MAX = len(DELAYS_S)


class MessageOut(Schema):
    """A message in a list. place names it in the other operations; preview: the beginning of its body."""

    place: str
    message_id: str
    broker: str
    queue: int
    offset: int
    stored_at: datetime
    tag: str
    keys: list[str]
    size_bytes: int
    preview: str

    @classmethod
    def of(cls, line: MessageLine) -> MessageOut:
        return cls(
            place=line.place,
            message_id=line.msg_id,
            broker=line.broker_name,
            queue=line.queue_id,
            offset=line.queue_offset,
            stored_at=_moment(line.stored_ms),
            tag=line.tag,
            keys=list(line.keys),
            size_bytes=line.size_bytes,
            preview=line.preview,
        )


class MessageList(Schema):
    """Newest first. older: give it back to look further, null when all was looked at; a list may be empty before that.

    understood: how the text was taken; how: newest, place, index or search; elsewhere: the topic that the id is of.
    """

    messages: list[MessageOut]
    how: How
    understood: str
    scanned: int
    older: str | None
    elsewhere: str | None
    troubles: list[str]

    @classmethod
    def of(cls, looked: Looked) -> MessageList:
        return cls(
            messages=[MessageOut.of(line) for line in looked.lines],
            how=cast(How, looked.how),
            understood=looked.told,
            scanned=looked.scanned,
            older=looked.older,
            elsewhere=looked.elsewhere[0] if looked.elsewhere else None,
            troubles=[f"{failure.what}: {failure.reason}" for failure in looked.failures],
        )


class MessageDetailOut(Schema):
    """One message whole. body is its text, null when it is none; body_base64 is always there.

    properties: all that the broker keeps with it, those that RocketMQ writes itself too.
    """

    place: str
    topic: str
    message_id: str
    offset_message_id: str
    tag: str
    keys: list[str]
    properties: dict[str, str]
    delay_level: int = Field(ge=0)
    born_at: datetime
    born_host: str
    stored_at: datetime
    tries: int
    body: str | None
    body_base64: str

    @classmethod
    def of(cls, message: MessageExt, topic: str) -> MessageDetailOut:
        line, body = MessageLine.of(message), bytes(message.body)
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = None
        return cls(
            place=line.place,
            topic=topic,
            message_id=line.msg_id,
            offset_message_id=message.offset_msg_id,
            tag=line.tag,
            keys=list(line.keys),
            properties=message.properties,
            delay_level=message.delay_level,
            born_at=_moment(message.born_timestamp),
            born_host=f"{message.born_host[0]}:{message.born_host[1]}",
            stored_at=_moment(message.store_timestamp),
            tries=message.tries,
            body=text,
            body_base64=base64.b64encode(body).decode(),
        )


class MessageIn(Given):
    """A message to send. body is text, or body_base64 bytes; deliver: "90 s", or "2026-11-21 07:30" (UTC)."""

    body: str | None = None
    body_base64: str | None = None
    tag: str = Field("", max_length=127)
    keys: list[str] = Field(default_factory=list, max_length=32, description="without spaces")
    properties: dict[str, str] = Field(default_factory=dict, max_length=PROPERTY_LINES_MAX)
    delay_level: int = Field(0, ge=0, le=DELAY_LEVEL_MAX)
    deliver: str = Field("", max_length=40)


class SentOut(Schema):
    """Where a message went."""

    message_id: str
    topic: str
    broker: str
    queue: int
    offset: int

    @classmethod
    def of(cls, sent: SendResult) -> SentOut:
        return cls(
            message_id=sent.msg_id,
            topic=sent.queue.topic,
            broker=sent.queue.broker_name,
            queue=sent.queue.queue_id,
            offset=sent.queue_offset,
        )


class DeliveryOut(Schema):
    """One group: consumed (its offset is past the message), not yet, or unknown; clients: who is online."""

    group: str
    state: DeliveryState
    clients: list[str]


class FateOut(Schema):
    """For each group of the topic whether it consumed the message."""

    groups: list[DeliveryOut]

    @classmethod
    def of(cls, fate: Fate) -> FateOut:
        return cls(
            groups=[
                DeliveryOut(
                    group=item.group,
                    state=cast(DeliveryState, item.state),
                    clients=[client for group, client in fate.clients if group == item.group],
                )
                for item in fate.deliveries
            ]
        )


class StepOut(Schema):
    """One step of a message's life. took_ms is null while its end is not known."""

    what: str
    by: str
    at: datetime
    took_ms: int | None
    outcome: str
    is_bad: bool


class TraceOut(Schema):
    """The steps in the order of time; why there are none of clients."""

    steps: list[StepOut]
    why: str

    @classmethod
    def of(cls, trace: Trace) -> TraceOut:
        steps = [
            StepOut(what=step.what, by=step.who, at=_moment(step.at_ms), took_ms=step.took_ms, outcome=step.outcome,
                    is_bad=step.is_bad)
            for step in trace.steps
        ]  # fmt: skip
        return cls(steps=steps, why=trace.why)


class TraceEventOut(Schema):
    """What a client told. what: Pub (sent), SubAfter (handled), EndTransaction. topic: "" where no sender told it."""

    what: Literal["Pub", "SubAfter", "EndTransaction"]
    message_id: str
    at: datetime
    topic: str
    group: str
    keys: list[str]
    took_ms: int
    outcome: str
    is_bad: bool
    client_host: str

    @classmethod
    def of(cls, event: TraceEvent) -> TraceEventOut:
        return cls(
            what=cast(Any, event.kind.value), message_id=event.msg_id, at=_moment(event.at_ms), topic=event.topic,
            group=event.group, keys=event.keys.split(), took_ms=event.took_ms, outcome=event.outcome,
            is_bad=event.is_bad, client_host=event.client_host,
        )  # fmt: skip


class TraceEventList(Schema):
    """Newest first. older: give it back to look further, null when all was looked at. scanned: trace messages."""

    events: list[TraceEventOut]
    scanned: int
    older: str | None
    is_off: bool = Field(description="the cluster has no trace topic")
    troubles: list[str]

    @classmethod
    def of(cls, step: TraceStep) -> TraceEventList:
        return cls(
            events=[TraceEventOut.of(event) for event in step.events], scanned=step.scanned, older=step.older,
            is_off=step.is_off, troubles=[f"{failure.what}: {failure.reason}" for failure in step.failures],
        )  # fmt: skip


class DeliverIn(Given):
    """The client that is to handle the message once more."""

    group: str = Field(min_length=1, max_length=255)
    client: str = Field(min_length=1, max_length=255)


class HandledOut(Schema):
    """What the client's handler answered: CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION …"""

    outcome: str
    took_ms: int
    remark: str | None


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
