"""What REST takes and gives about topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema

from dashboard.cluster.values import TopicDetail, TopicSettings, TopicSummary
from dashboard.forms.fields import DURATION_MS_MAX
from dashboard.rest.lists import Listed, sentences
from dashboard.rest.values import NUMBER_MAX, FromSeconds, Given, MaybeFromMs, Out, moment, named
from dashboard.status.readers import Readers
from dashboard.topics.changes import PERM_WORDS
from dashboard.topics.forms import QUEUES_MAX
from dashboard.topics.topic_cache import TopicFacts
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE


class ProducerOut(Out):
    """A connected client that sent one of the topic's newest messages. name: its client id, or its address."""

    name: str
    language: str
    groups: list[str]
    addresses: list[str]
    brokers: list[str]
    last_stored_at: FromSeconds


class TopicFiguresOut(Schema):
    """What was seen of a topic in turn, some seconds ago. Null is not known.

    size_bytes: what the messages that can be read take in the brokers' logs; not exact while some are not counted yet.
    """

    out_rate: float | None = Field(None, description="messages per second that its groups consume together")
    groups: int | None = Field(None, description="consumer groups that have offsets in it")
    worst_lag: int | None = None
    worst_group: str | None = None
    size_bytes: int | None = None
    size_is_exact: bool | None = None
    producers: list[ProducerOut] | None = None

    @classmethod
    def of(cls, row: TopicSummary, readers: Mapping[str, Readers], facts: TopicFacts) -> TopicFiguresOut:
        read = readers.get(row.name)
        return cls(
            out_rate=read.out_rate if read else None,
            groups=read.groups if read else None,
            worst_lag=read.lag if read else None,
            worst_group=read.group if read else None,
            size_bytes=facts.size_bytes,
            size_is_exact=None if facts.size_bytes is None else facts.is_exact,
            producers=[ProducerOut.of(sender) for sender in facts.senders] if facts.at else None,
        )


Perm = Literal["read-write", "read", "write"]
ShownPerm = Literal["read-write", "read", "write", "none", "differs"]
Kind = Literal["normal", "retry", "dead letter", "system"]
READ_QUEUES = "on each broker, at least as many as write_queues; absent: as many as those are set to"
NAME_SCHEMA: dict[str, Any] = {"pattern": "^[%|a-zA-Z0-9_-]{1,127}$"}  # the form says it in words


class TopicIn(Given):
    """A new topic, on every broker."""

    name: str = Field(examples=["orders"], json_schema_extra=NAME_SCHEMA)
    write_queues: int = Field(8, ge=1, le=QUEUES_MAX, description="on each broker")
    read_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description=READ_QUEUES)
    perm: Perm = "read-write"
    order: bool = False
    retention_ms: int | None = Field(
        None, ge=1, le=DURATION_MS_MAX, description="how long a message can be read; absent: as long as it is kept"
    )
    retention_messages: int | None = Field(
        None, ge=1, le=NUMBER_MAX, description="how many of the newest of each queue can be read"
    )


class TopicChange(Given):
    """What to change of a topic; what is absent stays."""

    write_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="on each broker")
    read_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description=READ_QUEUES)
    perm: Perm | None = None
    order: bool | None = None
    retention_ms: int | None = Field(None, ge=0, le=DURATION_MS_MAX, description="0 removes the topic's own limit")
    retention_messages: int | None = Field(None, ge=0, le=NUMBER_MAX, description="0 removes the topic's own limit")


class TopicShown(Out):
    """read_queues, write_queues: on each broker, null where that differs."""

    name: str
    kind: Kind
    brokers: list[str]
    read_queues: int | None
    write_queues: int | None
    perm: ShownPerm


class TopicOut(TopicShown):
    """A topic in a list; read_queues, write_queues: on each broker, null where that differs."""

    stored_messages: int | None = None
    in_rate: float | None = Field(None, description="messages per second, mean of about the last minute")
    last_write_at: datetime | None = None
    figures: TopicFiguresOut

    @classmethod
    def of_row(cls, row: TopicSummary, figures: TopicFiguresOut) -> TopicOut:
        value = row.metrics.value if row.metrics else None
        return cls.of(
            row, figures=figures, **_queues(row.settings), perm=shown_perm(row.settings),
            stored_messages=value.stored if value else None, in_rate=value.in_rate if value else None,
            last_write_at=moment(value.last_write_ms) if value else None,
        )  # fmt: skip


class TopicList(Listed[TopicOut]):
    """Topics by name."""


class QueueOut(Out):
    """One queue of a topic."""

    broker: str = named("broker_name")
    queue_id: int
    min_offset: int
    max_offset: int
    last_write_at: MaybeFromMs = named("last_write_ms")


class TopicDetailOut(TopicShown):
    """One topic whole: what creating and changing take, and what it holds; its queues as in the list."""

    order: bool
    retention_ms: int | None
    retention_messages: int | None
    without_effect: list[str]
    stored_messages: int | None
    queue_extents: list[QueueOut]
    problems: list[str]

    @classmethod
    def of_detail(cls, detail: TopicDetail) -> TopicDetailOut:
        first = detail.first_settings
        return cls.of(
            detail, brokers=[item.broker_name for item in detail.settings], perm=shown_perm(detail.settings),
            problems=sentences(detail.failures), **_queues(detail.settings),
            order=first.order, retention_ms=first.retention_ms, retention_messages=first.retention_messages,
            without_effect=first.without_effect, stored_messages=None if detail.failures else detail.stored,
            queue_extents=detail.queues,
        )  # fmt: skip


def _queues(settings: Sequence[TopicSettings]) -> dict[str, int | None]:
    """How many queues each broker has; None where they have not the same number."""
    found = {"read_queues": {item.read_queues for item in settings},
             "write_queues": {item.write_queues for item in settings}}  # fmt: skip
    return {name: min(numbers) if len(numbers) == 1 else None for name, numbers in found.items()}


def shown_perm(settings: Sequence[TopicSettings]) -> ShownPerm:
    """In the words that creating and changing take."""
    found = {item.perm & (PERM_READ | PERM_WRITE) for item in settings}
    if len(found) != 1:
        return "differs"
    return PERM_WORDS.get(found.pop(), "none")
