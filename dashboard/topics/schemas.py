"""What REST takes and gives about topics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema

from dashboard.cluster.values import TopicDetail, TopicSettings, TopicSummary
from dashboard.rest.values import NUMBER_MAX, Given, MaybeFromMs, Out, Troubles, moment, named
from dashboard.topics.figure_schemas import TopicFiguresOut
from dashboard.topics.forms import QUEUES_MAX
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE

Perm = Literal["read-write", "read", "write"]
ShownPerm = Literal["read-write", "read", "write", "none", "differs"]
Kind = Literal["normal", "retry", "dead letter", "system"]
NAME_SCHEMA: dict[str, Any] = {"pattern": "^[%|a-zA-Z0-9_-]{1,127}$"}  # the form says it in words


class TopicIn(Given):
    """A new topic, on every broker."""

    name: str = Field(examples=["orders"], json_schema_extra=NAME_SCHEMA)
    queues: int = Field(8, ge=1, le=QUEUES_MAX, description="on each broker")
    perm: Perm = "read-write"
    order: bool = False
    retention_ms: int | None = Field(
        None, ge=1, le=NUMBER_MAX, description="how long a message can be read; absent: as long as it is kept"
    )
    retention_messages: int | None = Field(
        None, ge=1, le=NUMBER_MAX, description="how many of the newest of each queue can be read"
    )


class TopicChange(Given):
    """What to change of a topic; what is absent stays."""

    queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="on each broker")
    read_queues: int | None = Field(
        None, ge=1, le=QUEUES_MAX, description="on each broker, at least as many as queues; absent: as many"
    )
    perm: Perm | None = None
    order: bool | None = None
    retention_ms: int | None = Field(None, ge=0, le=NUMBER_MAX, description="0 removes the topic's own limit")
    retention_messages: int | None = Field(None, ge=0, le=NUMBER_MAX, description="0 removes the topic's own limit")


class TopicShown(Out):
    """queues: on each broker, null where that differs; read_queues, write_queues: of all brokers."""

    name: str
    kind: Kind
    brokers: list[str]
    queues: int | None
    read_queues: int
    write_queues: int
    perm: ShownPerm


class TopicOut(TopicShown):
    """A topic in a list. queues: on each broker, null where that differs; read_queues, write_queues: of all brokers."""

    stored_messages: int | None = None
    in_rate: float | None = None
    last_write_at: datetime | None = None
    figures: TopicFiguresOut

    @classmethod
    def of_row(cls, row: TopicSummary, figures: TopicFiguresOut) -> TopicOut:
        value = row.metrics.value if row.metrics else None
        return cls.of(
            row, figures=figures, queues=queues_each(row.settings), perm=shown_perm(row.settings),
            stored_messages=value.stored if value else None, in_rate=value.in_rate if value else None,
            last_write_at=moment(value.last_write_ms) if value else None,
        )  # fmt: skip


class TopicList(Schema):
    """Topics by name. troubles: brokers that could not be asked, whose topics may be missing."""

    topics: list[TopicOut]
    total: int
    troubles: list[str]


class QueueOut(Out):
    """One queue of a topic."""

    broker: str = named("broker_name")
    queue_id: int
    min_offset: int
    max_offset: int
    last_write_at: MaybeFromMs = named("last_write_ms")


class TopicDetailOut(TopicShown):
    """One topic whole: what creating and changing take, and what it holds. queues: as in the list."""

    order: bool
    retention_ms: int | None
    retention_messages: int | None
    without_effect: list[str]
    stored_messages: int | None
    queue_extents: list[QueueOut]
    troubles: Troubles = named("failures")

    @classmethod
    def of_detail(cls, detail: TopicDetail) -> TopicDetailOut:
        first = detail.first_settings
        return cls.of(
            detail, brokers=[item.broker_name for item in detail.settings], queues=queues_each(detail.settings),
            read_queues=sum(item.read_queues for item in detail.settings),
            write_queues=sum(item.write_queues for item in detail.settings), perm=shown_perm(detail.settings),
            order=first.order, retention_ms=first.retention_ms, retention_messages=first.retention_messages,
            without_effect=first.without_effect, stored_messages=None if detail.failures else detail.stored,
            queue_extents=detail.queues,
        )  # fmt: skip


def queues_each(settings: Sequence[TopicSettings]) -> int | None:
    """How many queues each broker has for reading and for writing; None when that is not one number."""
    numbers = {number for item in settings for number in (item.read_queues, item.write_queues)}
    return numbers.pop() if len(numbers) == 1 else None


def shown_perm(settings: Sequence[TopicSettings]) -> ShownPerm:
    """In the words that creating and changing take."""
    found = {item.perm & (PERM_READ | PERM_WRITE) for item in settings}
    if len(found) != 1:
        return "differs"
    words: dict[int, ShownPerm] = {PERM_READ | PERM_WRITE: "read-write", PERM_READ: "read", PERM_WRITE: "write"}
    return words.get(found.pop(), "none")
