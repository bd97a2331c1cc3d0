"""What REST takes and gives about dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema

from dashboard.cluster.browse import CURSOR_CHARS_MAX
from dashboard.cluster.message_query import QUERY_CHARS_MAX
from dashboard.dead_letters.letters import DeadGroup
from dashboard.dead_letters.put_back import RATE_DEFAULT, RATE_MAX, PutBackStep
from dashboard.models import PutBackRun
from dashboard.rest.lists import Listed, sentences
from dashboard.rest.values import FromMs, Given, MaybeFromMs, Moment, Out, named, text_of


class LetterCauseOut(Out):
    """Letters that failed for one reason. cause: empty when no client told one; condition: finds them, as q.

    newest_place: of the newest in the topic of dead letters.
    """

    cause: str = named("error")
    text: str
    count: int
    first_at: FromMs = named("first_ms")
    last_at: FromMs = named("last_ms")
    condition: str
    newest_place: str = named("place")


class DeadGroupOut(Out):
    """A group with dead letters. causes: of the newest looked_at; stored: null and problem when it can't be read."""

    group: str = named("name")
    topic: str
    stored: int | None
    last_at: MaybeFromMs = named("last_ms")
    looked_at: int
    causes: list[LetterCauseOut]
    problem: str = named("why")

    @classmethod
    def of_group(cls, row: DeadGroup) -> DeadGroupOut:
        return cls.of(row, topic=f"%DLQ%{row.name}")


class DeadGroupList(Listed[DeadGroupOut]):
    """Those with the newest letters first."""


class CauseList(Listed[LetterCauseOut]):
    """A group's letters by cause, of those looked at."""

    scanned: int
    matched: int


FORM_NAMES = {"older": "cursor", "to": "target", "again": "include_resent", "wanted": "counted"}


class ResendRunIn(Given):
    """A run. cursor: as a count's begin: what was counted and nothing newer."""

    q: str = Field(
        "", max_length=QUERY_CHARS_MAX, description="which messages: a key, an id, name=value, words of the body"
    )
    since: Moment | None = Field(None, description="stored from then on: 2026-11-21T07:30:00Z")
    until: Moment | None = Field(None, description="stored until then")
    queue: str = Field("", max_length=300, description="only of this queue: broker-a.0")
    target: Literal["group", "topic"] = Field(
        "group", description="to this group alone, or for all groups of the topic"
    )
    rate: int = Field(RATE_DEFAULT, ge=1, le=RATE_MAX, description="messages per second")
    include_resent: bool = Field(False, description="include messages resent before")
    cursor: str = Field("", max_length=CURSOR_CHARS_MAX, description="where it begins, as an earlier answer says")
    counted: int | None = Field(None, ge=0, le=(1 << 31) - 1, description="how many a dry run found")

    def form_data(self) -> dict[str, Any]:
        """As the pages' form takes it."""
        times = {"since": text_of(self.since), "until": text_of(self.until)}
        given = self.dict() | times
        return given | {form: given[name] for form, name in FORM_NAMES.items()}


class ResendIn(ResendRunIn):
    """One step. dry_run only counts. Go on with the answer's next until it is null."""

    dry_run: bool = False


class ResendResult(Out):
    """What became of one letter. state: sent, failed, begun (not known: the answer was lost) or before (left alone).

    detail: the id of the new message, or why it failed.
    """

    place: str
    message_id: str
    cause: str
    state: Literal["sent", "failed", "begun", "before"]
    detail: str = named("told")


class ResendOut(Listed[ResendResult]):
    """begin: the cursor of what was looked at; scanned: looked at; matched: dealt with, or counted."""

    begin: str
    scanned: int
    matched: int

    @classmethod
    def of_step(cls, step: PutBackStep) -> ResendOut:
        return cls(
            items=[ResendResult.of(one) for one in step.results], total=None, next=step.older,
            problems=sentences(step.troubles), begin=step.begin, scanned=step.scanned, matched=step.matched,
        )  # fmt: skip


class ResendRecord(Out):
    """One that was resent at some time, with by whom."""

    place: str
    cause: str
    target: str
    state: Literal["sent", "failed", "begun"]
    detail: str = named("told")
    sent_by: str = named("username")
    at: datetime


class ResendRecords(Listed[ResendRecord]):
    """Newest first."""


class ResendRunOut(Out):
    """A run that puts letters back. next: where it goes on, null at the end; detail: why it failed.

    unknown: the broker's answer was lost; before: left alone, as they were resent by an earlier run.
    """

    id: int = named("pk")
    group: str
    state: Literal["running", "done", "stopped", "failed"]
    q: str
    since: MaybeFromMs = named("since_ms")
    until: MaybeFromMs = named("until_ms")
    queue: str
    target: Literal["group", "topic"] = named("to")
    rate: int
    include_resent: bool = named("is_again")
    begin: str
    next: str | None = named("older")
    counted: int | None = named("wanted")
    scanned: int
    sent: int
    failed: int
    unknown: int
    before: int
    started_by: str = named("username")
    stopped_by: str
    detail: str = named("told")
    started_at: datetime
    changed_at: datetime

    @classmethod
    def of_run(cls, row: PutBackRun) -> ResendRunOut:
        return cls.of(row, next=row.older or None)


class ResendRunList(Listed[ResendRunOut]):
    """Newest first."""


class DiscardOut(Schema):
    """letters: how many there were; none can be read any more."""

    group: str
    letters: int
