"""What REST takes and gives about dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ninja import Field, Schema

from dashboard.cluster.browse import CURSOR_CHARS_MAX
from dashboard.cluster.message_query import QUERY_CHARS_MAX
from dashboard.dead_letters.letters import DeadGroup
from dashboard.dead_letters.put_back import RATE_DEFAULT, RATE_MAX
from dashboard.models import PutBackRun
from dashboard.rest.values import FromMs, MaybeFromMs, Order, Out, named


class LetterCauseOut(Out):
    """Letters that failed for one reason. cause: empty when no client told one; condition: finds them, as q.

    newest: the place of the newest in the topic of dead letters. = named("place")
    """

    cause: str = named("error")
    text: str
    count: int
    first_at: FromMs = named("first_ms")
    last_at: FromMs = named("last_ms")
    condition: str
    newest: str = named("place")


class DeadGroupOut(Out):
    """A group with dead letters. causes: of the newest looked_at; stored: null and trouble when it can't be read."""

    group: str = named("name")
    topic: str
    stored: int | None
    last_at: MaybeFromMs = named("last_ms")
    looked_at: int
    causes: list[LetterCauseOut]
    trouble: str = named("why")

    @classmethod
    def of_group(cls, row: DeadGroup) -> DeadGroupOut:
        return cls.of(row, topic=f"%DLQ%{row.name}")


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
    since: str = Field("", max_length=40, description="2026-11-21 07:30, or 2 h for two hours ago")
    until: str = Field("", max_length=40, description="as since")
    queue: str = Field("", max_length=300, description="only of this queue: broker-a.0")
    to: Literal["group", "topic"] = Field("group", description="to this group alone, or for all groups of the topic")
    rate: int = Field(RATE_DEFAULT, ge=1, le=RATE_MAX, description="messages per second")
    again: bool = Field(False, description="include messages resent before")
    older: str = Field("", max_length=CURSOR_CHARS_MAX, description="where it begins, as an earlier answer says")
    wanted: int | None = Field(None, ge=0, le=(1 << 31) - 1, description="how many were counted")


class PutBackIn(PutBackRunIn):
    """One step. dry_run only counts. Go on with the answer's older until it is null."""

    dry_run: bool = False


class PutBackResult(Out):
    """What became of one letter. state: sent, failed, begun (not known: the answer was lost) or before (left alone).

    told: the id of the new message, or why it failed.
    """

    place: str
    message_id: str
    cause: str
    state: Literal["sent", "failed", "begun", "before"]
    told: str


class PutBackOut(Out):
    """scanned: looked at; matched: dealt with, or counted."""

    begin: str
    older: str | None
    scanned: int
    matched: int
    results: list[PutBackResult]
    troubles: list[str]


class PutBackRecord(Out):
    """One that was put back at some time, with by whom."""

    place: str
    cause: str
    target: str
    state: Literal["sent", "failed", "begun"]
    told: str
    username: str
    at: datetime


class PutBackRecords(Schema):
    """Newest first."""

    results: list[PutBackRecord]
    total: int


class PutBackRunOut(Out):
    """A run that puts letters back. older: where it goes on, null at the end; told: why it failed.

    unknown: the broker's answer was lost; before: left alone, as they were put back by an earlier run.
    """

    run: int = named("pk")
    group: str
    state: Literal["running", "done", "stopped", "failed"]
    q: str
    since: MaybeFromMs = named("since_ms")
    until: MaybeFromMs = named("until_ms")
    queue: str
    to: Literal["group", "topic"]
    rate: int
    again: bool = named("is_again")
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
    def of_run(cls, row: PutBackRun) -> PutBackRunOut:
        return cls.of(row, older=row.older or None)


class PutBackRunList(Schema):
    """Newest first."""

    runs: list[PutBackRunOut]
    total: int


class DiscardOut(Schema):
    """letters: how many there were; none can be read any more."""

    group: str
    letters: int
