"""What REST takes and gives about reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema

from appliance.reports.catalogue import REPORTS, Report
from dashboard.models.reports import ReportRun
from dashboard.reports.forms import SECONDS_MAX, TOPICS_MAX
from dashboard.reports.runs.cron import CRON_CHARS_MAX
from dashboard.rest.lists import Listed
from dashboard.rest.values import FromMs, Given, Key, Moment, Out, named
from gantrymq.message.topics import GROUP_CHARS_MAX, TOPIC_CHARS_MAX

ReportName = Literal[tuple(REPORTS)]  # type: ignore[valid-type]
RunState = Literal["queued", "running", "succeeded", "incomplete", "failed", "timeout", "cancelled"]
Days = Literal[1, 7, 30, 90]
Minutes = Literal[0, 15, 60, 360, 1440]
Zone = Annotated[str, Field(max_length=64, examples=["Europe/Berlin"], description="whose days: Europe/Berlin")]
Cron = Annotated[
    str,
    Field(
        max_length=CRON_CHARS_MAX,
        examples=["0 6 * * mon-fri"],
        description='when, as a line of cron: "0 6 * * mon-fri"',
    ),
]


class ReportOut(Schema):
    """A report that there is. columns: of its rows; last_run_id: of any; last_result_run_id: of one with a result."""

    name: str
    title: str
    about: str
    columns: list[str]
    last_run_id: str | None
    last_result_run_id: str | None

    @classmethod
    def of(cls, report: Report, run: ReportRun | None, result: ReportRun | None) -> ReportOut:
        return cls(
            name=report.name, title=report.title, about=report.about, columns=[one.name for one in report.columns],
            last_run_id=run.run_id if run else None, last_result_run_id=result.run_id if result else None,
        )  # fmt: skip


class ReportList(Listed[ReportOut]):
    """In the catalogue's order."""


class RunIn(Given):
    """A report to compute: of the last days, or since then until then, which is exclusive. topics: only these.

    zone: whose days and months are meant.
    """

    report: ReportName  # type: ignore[valid-type]
    days: Days = Field(7, description="how far back")
    since: Moment | None = Field(None, description="instead of days: 2026-11-21T00:00:00Z")
    until: Moment | None = Field(None, description="end of the range, exclusive")
    topics: list[Annotated[str, Field(max_length=TOPIC_CHARS_MAX)]] = Field(
        [], max_length=TOPICS_MAX, description="only these topics"
    )
    zone: Zone = "UTC"

    def form(self) -> dict[str, Any]:
        """The same as the page's form takes it."""
        given = {"report": self.report, "days": str(self.days), "topics": " ".join(self.topics), "zone": self.zone}
        times = {"begin": self.since, "end": self.until}
        return given | {name: at.astimezone(UTC).replace(tzinfo=None).isoformat() for name, at in times.items() if at}


class RunOut(Out):
    """A run. detail: why it failed, or what an incomplete one lacks; rows: of its result, result_bytes: as CSV.

    ingested_rows: messages that it added to the lake. attempt: above 1 it is tried again.
    """

    id: str = named("run_id")
    report: str
    state: RunState
    since: FromMs = named("begin_ms")
    until: FromMs = named("end_ms")
    topics: list[str]
    zone: str
    attempt: int
    started_by: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None = named("finished_at")
    duration_s: float | None
    rows: int | None
    result_bytes: int | None
    ingested_rows: int | None
    detail: str = named("error")

    @classmethod
    def of_run(cls, run: ReportRun) -> RunOut:
        return cls.of(run, started_by=run.requested_by.username if run.requested_by else None)


class RunList(Listed[RunOut]):
    """The newest first."""


class ResultOut(Schema):
    """The rows that the page shows; the whole result is a file: /reports/runs/ID/result.csv."""

    run_id: str
    report: str
    page: dict[str, Any]


class ScheduleIn(Given):
    """How often these reports run (0: never), and how far back each counts.

    cron: when, instead of each interval, on the clocks of the zone, whose days the runs count.
    """

    interval_minutes: Minutes = Field(description="minutes; 0 is never")
    days: Days = Field(description="how far back")
    reports: list[ReportName] = Field(  # type: ignore[valid-type]
        max_length=len(REPORTS), description="those that run"
    )
    cron: Cron = ""
    zone: Zone = "UTC"


class ScheduleOut(Out):
    """The same, and when they run next."""

    interval_minutes: int
    days: int
    reports: list[str]
    cron: str
    zone: str
    next_run_at: datetime


class LogOut(Schema):
    """The end of what the run's process said."""

    run_id: str
    text: str


class PromiseOut(Schema):
    """Seconds that a consumer group may be behind; the group "" is all others."""

    group: str
    seconds: float


class PromiseList(Listed[PromiseOut]):
    """By group."""

    @classmethod
    def of(cls, promises: dict[str, float]) -> PromiseList:
        return cls.whole(PromiseOut(group=group, seconds=seconds) for group, seconds in sorted(promises.items()))


class PromiseIn(Given):
    """seconds: null takes the promise away."""

    group: str = Field("", max_length=GROUP_CHARS_MAX, description="its name; absent: all others")
    seconds: float | None = Field(None, ge=1, le=SECONDS_MAX, description="maximum lag in seconds")


class WeeklyIn(Given):
    """When the summary of a week is sent, and by which mail channels (their numbers); none: not at all."""

    channel_ids: list[Key] = Field(max_length=50, description="the ids of mail channels")
    cron: Cron = "0 8 * * mon"
    zone: Zone = "UTC"


class WeeklyOut(Schema):
    """The same, and when it is sent next; null: never."""

    channel_ids: list[int]
    cron: str
    zone: str
    next_run_at: datetime | None
