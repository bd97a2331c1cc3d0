"""What REST takes and gives about reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, cast

from ninja import Field, Schema

from appliance.reports.catalogue import REPORTS, Report
from dashboard.models.reports import ReportRun
from dashboard.reports.plans import Schedule

ReportName = Literal[tuple(REPORTS)]  # type: ignore[valid-type]
RunState = Literal["queued", "running", "succeeded", "incomplete", "failed", "timeout", "cancelled"]
Days = Literal[1, 7, 30, 90]
Minutes = Literal[0, 15, 60, 360, 1440]


class ReportOut(Schema):
    """A report that there is. columns: of its rows; last_run, last_result: ids of runs."""

    name: str
    title: str
    about: str
    columns: list[str]
    last_run: str | None
    last_result: str | None

    @classmethod
    def of(cls, report: Report, run: ReportRun | None, result: ReportRun | None) -> ReportOut:
        return cls(
            name=report.name, title=report.title, about=report.about, columns=[one.name for one in report.columns],
            last_run=run.run_id if run else None, last_result=result.run_id if result else None,
        )  # fmt: skip


class ReportList(Schema):
    """In the catalogue's order."""

    reports: list[ReportOut]


class RunIn(Schema):
    """A report to compute. days: how far back it counts."""

    report: ReportName  # type: ignore[valid-type]
    days: Days = 7


class RunOut(Schema):
    """A run. error: of an incomplete one, what is missing; rows: of its result."""

    id: str
    report: str
    state: RunState
    begin: datetime
    end: datetime
    requested_by: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    rows: int | None
    error: str

    @classmethod
    def of(cls, run: ReportRun) -> RunOut:
        return cls(
            id=run.run_id, report=run.report, state=cast(RunState, run.state), begin=_moment(run.begin_ms),
            end=_moment(run.end_ms), requested_by=run.requested_by.username if run.requested_by else None,
            created_at=run.created_at, started_at=run.started_at, finished_at=run.finished_at, rows=run.rows,
            error=run.error,
        )  # fmt: skip


class RunList(Schema):
    """The newest first."""

    runs: list[RunOut]
    total: int


class ResultOut(Schema):
    """The rows that the page shows; the whole result is a file: /reports/runs/ID/result.csv."""

    run: str
    report: str
    page: dict[str, Any]


class ScheduleIn(Schema):
    """How often these reports run (0: never), and how far back each counts."""

    interval_minutes: Minutes
    days: Days
    reports: list[ReportName] = Field(max_length=len(REPORTS))  # type: ignore[valid-type]


class ScheduleOut(Schema):
    """The same, and when they run next."""

    interval_minutes: int
    days: int
    reports: list[str]
    next_run_at: datetime

    @classmethod
    def of(cls, plan: Schedule) -> ScheduleOut:
        return cls(
            interval_minutes=plan.interval_minutes, days=plan.days, reports=list(plan.reports),
            next_run_at=plan.next_run_at,
        )  # fmt: skip


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
