"""What REST takes and gives about dead letters."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Literal

from ninja import Field, Schema

from dashboard.cluster.browse import CURSOR_CHARS_MAX
from dashboard.cluster.message_query import QUERY_CHARS_MAX
from dashboard.dead_letters.causes import Cause
from dashboard.dead_letters.letters import DeadGroup
from dashboard.dead_letters.put_back import RATE_DEFAULT, RATE_MAX, PutBackStep
from dashboard.models import PutBackRow, PutBackRun
from dashboard.rest.values import Order


class LetterCauseOut(Schema):
    """Letters that failed for one reason. cause: empty when no client told one; condition: finds them, as q.

    newest: the place of the newest in the topic of dead letters.
    """

    cause: str
    text: str
    count: int
    first_at: datetime
    last_at: datetime
    condition: str
    newest: str

    @classmethod
    def of(cls, cause: Cause) -> LetterCauseOut:
        return cls(
            cause=cause.error, text=cause.text, count=cause.count, first_at=_moment(cause.first_ms),
            last_at=_moment(cause.last_ms), condition=cause.condition, newest=cause.place,
        )  # fmt: skip


class DeadGroupOut(Schema):
    """A group with dead letters. causes: of the newest looked_at; stored: null and trouble when it can't be read."""

    group: str
    topic: str
    stored: int | None
    last_at: datetime | None
    looked_at: int
    causes: list[LetterCauseOut]
    trouble: str

    @classmethod
    def of(cls, row: DeadGroup) -> DeadGroupOut:
        return cls(
            group=row.name, topic=f"%DLQ%{row.name}", stored=row.stored, looked_at=row.looked_at, trouble=row.why,
            last_at=_moment(row.last_ms) if row.last_ms > 0 else None,
            causes=[LetterCauseOut.of(cause) for cause in row.causes],
        )  # fmt: skip


class DeadGroupList(Schema):
    """Those with the newest letters first."""

    groups: list[DeadGroupOut]
    total: int
    troubles: list[str]


class CausesOut(Schema):
    """A group's letters by cause, of those looked at. older: give it back to look further, null at the end."""

    causes: list[LetterCauseOut]
    scanned: int
    matched: int
    older: str | None
    troubles: list[str]


class PutBackRunIn(Order):
    """A run. older: as a count's begin: what was counted and nothing newer."""

    q: str = Field(
        "", max_length=QUERY_CHARS_MAX, description="which messages: a key, an id, name=value, words of the body"
    )
    since: str = Field("", max_length=40, description="2026-11-21 07:30, or 2 h for so long ago")
    until: str = Field("", max_length=40, description="as since")
    queue: str = Field("", max_length=300, description="only of this queue: broker-a.0")
    to: Literal["group", "topic"] = Field("group", description="to this group alone, or for all groups of the topic")
    rate: int = Field(RATE_DEFAULT, ge=1, le=RATE_MAX, description="messages a second")
    again: bool = Field(False, description="also what was resent before")
    older: str = Field("", max_length=CURSOR_CHARS_MAX, description="where it begins, as an earlier answer says")
    wanted: int | None = Field(None, ge=0, le=(1 << 31) - 1, description="how many were counted")


class PutBackIn(PutBackRunIn):
    """One step. dry_run only counts. Go on with the answer's older until it is null."""

    dry_run: bool = False


class PutBackResult(Schema):
    """What became of one letter. state: sent, failed, begun (not known: the answer was lost) or before (left alone).

    told: the id of the new message, or why it failed.
    """

    place: str
    message_id: str
    cause: str
    state: Literal["sent", "failed", "begun", "before"]
    told: str


class PutBackOut(Schema):
    """scanned: looked at; matched: dealt with, or counted."""

    begin: str
    older: str | None
    scanned: int
    matched: int
    results: list[PutBackResult]
    troubles: list[str]

    @classmethod
    def of(cls, step: PutBackStep) -> PutBackOut:
        results = [PutBackResult(**asdict(item)) for item in step.results]
        return cls(
            begin=step.begin, older=step.older, scanned=step.scanned, matched=step.matched, results=results,
            troubles=step.troubles,
        )  # fmt: skip


class PutBackRecord(Schema):
    """One that was put back at some time, with by whom."""

    place: str
    cause: str
    target: str
    state: Literal["sent", "failed", "begun"]
    told: str
    username: str
    at: datetime

    @classmethod
    def of(cls, row: PutBackRow) -> PutBackRecord:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class PutBackRecords(Schema):
    """Newest first."""

    results: list[PutBackRecord]
    total: int


class PutBackRunOut(Schema):
    """A run that puts letters back. older: where it goes on, null at the end; told: why it failed.

    unknown: the broker's answer was lost; before: left alone, as they were put back by an earlier run.
    """

    run: int
    group: str
    state: Literal["running", "done", "stopped", "failed"]
    q: str
    since: datetime | None
    until: datetime | None
    queue: str
    to: Literal["group", "topic"]
    rate: int
    again: bool
    begin: str
    older: str | None
    wanted: int | None
    scanned: int
    sent: int
    failed: int
    unknown: int
    before: int
    username: str
    stopped_by: str
    told: str
    started_at: datetime
    changed_at: datetime

    @classmethod
    def of(cls, row: PutBackRun) -> PutBackRunOut:
        same = {name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)}
        return cls(
            **same | {"older": row.older or None}, run=row.pk, again=row.is_again,
            since=None if row.since_ms is None else _moment(row.since_ms),
            until=None if row.until_ms is None else _moment(row.until_ms),
        )  # fmt: skip


class PutBackRunList(Schema):
    """Newest first."""

    runs: list[PutBackRunOut]
    total: int


class DiscardOut(Schema):
    """letters: how many there were; none can be read any more."""

    group: str
    letters: int


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
