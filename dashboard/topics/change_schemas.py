"""A change of many topics as REST takes and tells it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema

from dashboard.rest.values import NUMBER_MAX, Order, Out, named
from dashboard.topics.change_runs import ChangeRun
from dashboard.topics.changes import TOPICS_MAX
from dashboard.topics.forms import QUEUES_MAX
from dashboard.topics.schemas import Perm
from gantrymq.message.topics import TOPIC_CHARS_MAX

What = Literal["access", "queues", "keep", "skip", "again", "delete"]
TopicName = Annotated[str, Field(pattern=r"^[%|a-zA-Z0-9_-]+$", max_length=TOPIC_CHARS_MAX)]


class TopicChangesIn(Order):
    """access needs perm, queues both numbers; keep takes the topics' own retention away where it is absent.

    skip and again move all groups of each topic to its end, to its beginning.
    """

    what: What
    topics: list[TopicName] = Field(min_length=1, max_length=TOPICS_MAX, description="one or more")
    perm: Perm | None = Field(None, description="for access")
    read_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="for queues: on each broker")
    write_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="for queues: on each broker")
    retention_ms: int | None = Field(
        None, ge=1, le=NUMBER_MAX, description="for keep; absent: as long as the brokers keep it"
    )
    retention_messages: int | None = Field(None, ge=1, le=NUMBER_MAX, description="for keep: of a queue")

    def form_data(self) -> dict[str, Any]:
        """As the pages' form takes it."""
        kept = f"{self.retention_ms} ms" if self.retention_ms else ""
        given = self.dict(exclude={"topics", "retention_ms", "retention_messages"}, exclude_none=True)
        return given | {"keep_for": kept, "keep_messages": self.retention_messages or ""}


class TopicChangeResult(Schema):
    """One topic. result: null while it waits. told: more about it, or why it failed."""

    topic: str
    result: Literal["done", "failed"] | None
    told: str


class TopicChangesOut(Out):
    """A run; the newest 50 are known. resumed_at: when it went on after a restart; told: why it failed."""

    run: int = named("number")
    what: What
    state: Literal["running", "done", "stopped", "failed"]
    started_at: datetime
    resumed_at: datetime | None
    told: str
    done: int
    failed: int
    topics: list[TopicChangeResult]

    @classmethod
    def of_run(cls, run: ChangeRun) -> TopicChangesOut:
        return cls.of(
            run, what=run.wanted.what,
            topics=[
                TopicChangeResult(
                    topic=name,
                    result=None if dealt is None else "done" if dealt.is_done else "failed",
                    told=dealt.told if dealt else "",
                )
                for name, dealt in run.rows
            ],
        )  # fmt: skip
