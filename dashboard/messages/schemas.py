"""What REST takes and gives about messages."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any, Literal, cast
from urllib.parse import parse_qsl

from ninja import Field, Schema

from dashboard.cluster.message_fate import Fate
from dashboard.cluster.message_lookup import Looked
from dashboard.cluster.message_query import QUERY_CHARS_MAX
from dashboard.cluster.message_values import MessageLine
from dashboard.forms.fields import DURATION_MS_MAX
from dashboard.messages.bodies.body_view import decoded_body
from dashboard.messages.bodies.registered import learn_schemas
from dashboard.messages.forms import DELAYS_S, PROPERTY_LINES_MAX
from dashboard.messages.trace_events import TraceEvent
from dashboard.messages.trace_search import TraceStep
from dashboard.models.saved_searches import SavedSearch
from dashboard.rest.lists import Listed, sentences
from dashboard.rest.values import OPEN, FromMs, Given, Moment, Out, named
from gantrymq.client.admin.results import DeliveryState
from gantrymq.client.results import SendResult
from gantrymq.message.model import MessageExt

How = Literal["newest", "place", "index", "search"]
DELAY_LEVEL_MAX = len(DELAYS_S)
TIME_CHARS_MAX = 40


class SavedSearchIn(Given):
    """A search of the topic's messages, under a name. Times may be relative: 1h is an hour before it is used."""

    name: str = Field(min_length=1, max_length=SavedSearch.NAME_MAX)
    q: str = Field("", max_length=QUERY_CHARS_MAX, description="as find_messages takes it")
    since: str = Field("", max_length=TIME_CHARS_MAX, description="2026-11-21T07:30:00Z, or 1h")
    until: str = Field("", max_length=TIME_CHARS_MAX, description="2026-11-21T07:30:00Z, or 1h")
    queue: str = Field("", max_length=300, description="only this one: broker-a.3")


class SavedSearchOut(SavedSearchIn):
    """One of your own."""

    model_config = OPEN
    id: int

    @classmethod
    def of_row(cls, row: SavedSearch) -> SavedSearchOut:
        return cls(id=row.pk, name=row.name, **dict(parse_qsl(row.query)))


class SavedSearchList(Listed[SavedSearchOut]):
    """By name."""


class MessageOut(Out):
    """A message in a list. place names it in the other operations; preview: the beginning of its body.

    damage: why it can't be read, "" when it can; a damaged one has the time of a message beside it, and no more.
    """

    place: str
    message_id: str = named("msg_id")
    broker: str = named("broker_name")
    queue_id: int
    offset: int = named("queue_offset")
    stored_at: FromMs = named("stored_ms")
    tag: str
    keys: list[str]
    size_bytes: int
    preview: str
    damage: str


class MessageList(Listed[MessageOut]):
    """Newest first; a list may be empty before all was looked at.

    understood: how the text was taken; how: newest, place, index or search; elsewhere: the topic that the id is of.
    """

    how: How
    understood: str
    scanned: int
    elsewhere: str | None

    @classmethod
    def of_look(cls, looked: Looked) -> MessageList:
        return cls(
            items=[MessageOut.of(line) for line in looked.lines], total=None, next=looked.older,
            problems=sentences(looked.failures), how=cast(How, looked.how), understood=looked.told,
            scanned=looked.scanned, elsewhere=looked.elsewhere[0] if looked.elsewhere else None,
        )  # fmt: skip


class MessageDetailOut(Schema):
    """One message whole. body is its text, null when it is none; body_base64 is always there.

    properties: all that the broker keeps with it, those that RocketMQ writes itself too. decoded: with decode=true, the
    body's value in JSON, MessagePack or by its topic's schema, null when it is nothing of that; form: which of them;
    remark: why a schema does not fit.
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
    form: Literal["", "json", "messagepack", "avro", "protobuf", "json-schema"] = ""
    decoded: Any = None
    remark: str = ""

    @classmethod
    async def of(cls, message: MessageExt, topic: str, *, decode: bool) -> MessageDetailOut:
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
            **(await _decoded(message) if decode else {}),
        )


class MessageIn(Given):
    """A message to send. body is text, or body_base64 bytes; deliver_at or deliver_in_ms: not before then."""

    body: str | None = None
    body_base64: str | None = None
    tag: str = Field("", max_length=127)
    keys: list[str] = Field(default_factory=list, max_length=32, description="without spaces")
    properties: dict[str, str] = Field(default_factory=dict, max_length=PROPERTY_LINES_MAX)
    delay_level: int = Field(0, ge=0, le=DELAY_LEVEL_MAX)
    deliver_at: Moment | None = None
    deliver_in_ms: int | None = Field(None, ge=1, le=DURATION_MS_MAX)


class SentOut(Out):
    """Where a message went."""

    message_id: str = named("msg_id")
    topic: str
    broker: str
    queue_id: int
    offset: int = named("queue_offset")

    @classmethod
    def of_result(cls, sent: SendResult) -> SentOut:
        queue = sent.queue
        return cls.of(sent, topic=queue.topic, broker=queue.broker_name, queue_id=queue.queue_id)


class DeliveryOut(Schema):
    """One group: consumed (its offset is past the message), not yet, or unknown; client_ids: who is online."""

    group: str
    state: DeliveryState
    client_ids: list[str]


class DeliveryList(Listed[DeliveryOut]):
    """For each group of the topic whether it consumed the message."""

    @classmethod
    def of(cls, fate: Fate) -> DeliveryList:
        return cls.whole(
            DeliveryOut(
                group=item.group,
                state=item.state,
                client_ids=[client for group, client in fate.clients if group == item.group],
            )
            for item in fate.deliveries
        )


class StepOut(Out):
    """One step of a message's life. Clients report whole milliseconds.

    group: the consumer group that handled it; "" is before that: its sender or the broker. after_ms: since the first
    step. took_ms is null while its end is not known.
    """

    what: str
    by: str = named("who")
    group: str = named("lane")
    at: FromMs = named("at_ms")
    after_ms: int
    took_ms: int | None
    outcome: str
    is_bad: bool


class TraceOut(Out):
    """The steps in the order of time. problem: why there are none of clients; "": there are."""

    steps: list[StepOut]
    problem: str = named("why")


class TraceEventOut(Out):
    """What a client told. what: Pub (sent), SubAfter (handled), EndTransaction. topic: "" where no sender told it."""

    what: Literal["Pub", "SubAfter", "EndTransaction"]
    message_id: str = named("msg_id")
    at: FromMs = named("at_ms")
    topic: str
    group: str
    keys: list[str]
    took_ms: int
    outcome: str
    is_bad: bool
    client_host: str

    @classmethod
    def of_event(cls, event: TraceEvent) -> TraceEventOut:
        return cls.of(event, what=event.kind.value, keys=event.keys.split())


class TraceEventList(Listed[TraceEventOut]):
    """Newest first. scanned: trace messages."""

    scanned: int
    is_off: bool = Field(description="the cluster has no trace topic")

    @classmethod
    def of_step(cls, step: TraceStep) -> TraceEventList:
        return cls(
            items=[TraceEventOut.of_event(event) for event in step.events], total=None, next=step.older,
            problems=sentences(step.failures), scanned=step.scanned, is_off=step.is_off,
        )  # fmt: skip


class DeliverIn(Given):
    """The client that is to handle the message once more."""

    group: str = Field(min_length=1, max_length=255)
    client_id: str = Field(min_length=1, max_length=255)


class HandledOut(Schema):
    """What the client's handler answered: CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION …; detail: what it said."""

    outcome: str
    took_ms: int
    detail: str | None


async def _decoded(message: MessageExt) -> dict[str, Any]:
    await learn_schemas([(message.topic, bytes(message.body))])
    return dict(zip(("form", "decoded", "remark"), decoded_body(message), strict=True))


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
