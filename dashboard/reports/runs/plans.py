"""The due-table: a plan for each report there is. The page shows and changes them as one schedule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from appliance.reports.catalogue import REPORTS, TRAFFIC
from dashboard.models.reports import ReportPlan, ReportRun
from dashboard.reports.runs.cron import following

FIRST_RESULT_AFTER = timedelta(minutes=2)  # the first messages come in a few minutes, which one report counts together
EMPTY_RUNS_MAX = 3  # a cluster whose messages no report counts is not counted again and again
FIRST_RUN_AFTER = timedelta(minutes=10)  # a fresh appliance has better things to do in its first minutes
DEFAULT_INTERVAL_MINUTES = 60
DEFAULT_DAYS = 7


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often (0: never) the reports run, how far back they count, which they are, and when they run next."""

    interval_minutes: int
    days: int
    reports: tuple[str, ...]
    next_run_at: datetime
    cron: str = ""  # when they run, instead of each interval
    zone: str = "UTC"

    @property
    def is_on(self) -> bool:
        return self.interval_minutes > 0

    def facts(self) -> dict[str, Any]:
        """What a person chooses."""
        chosen: dict[str, Any] = {
            "interval_minutes": self.interval_minutes,
            "days": self.days,
            "reports": list(self.reports),
        }
        if self.cron:
            chosen |= {"cron": self.cron, "zone": self.zone}
        return chosen if self.is_on else {"interval_minutes": 0}


async def ensure_plans() -> list[ReportPlan]:
    """The plan of each report, in the catalogue's order; those that are missing are made."""
    known = {plan.report: plan async for plan in ReportPlan.objects.filter(report__in=REPORTS).order_by("id")}
    defaults = _defaults(list(known.values()))
    for name in REPORTS:
        if name not in known:
            known[name], _ = await ReportPlan.objects.aget_or_create(report=name, defaults=defaults)
    return [known[name] for name in REPORTS]


def _defaults(plans: Sequence[ReportPlan]) -> dict[str, Any]:
    """A report that is new runs like the others, unless a person has chosen among those."""
    if not plans:
        next_run_at = datetime.now(UTC) + FIRST_RUN_AFTER
        return {"interval_minutes": DEFAULT_INTERVAL_MINUTES, "days": DEFAULT_DAYS, "next_run_at": next_run_at}
    first = plans[0]
    return {
        "interval_minutes": first.interval_minutes if all(plan.is_on for plan in plans) else 0,
        "days": first.days,
        "next_run_at": first.next_run_at,
        "cron": first.cron,
        "zone": first.zone,
    }


async def schedule() -> Schedule:
    """What the plans say together. While all are off, its reports are all there are."""
    plans = await ensure_plans()
    shown = [plan for plan in plans if plan.is_on] or plans
    return Schedule(
        shown[0].interval_minutes,
        shown[0].days,
        tuple(plan.report for plan in shown),
        min(plan.next_run_at for plan in shown),
        shown[0].cron,
        shown[0].zone,
    )


async def set_schedule(
    interval_minutes: int, days: int, reports: Collection[str], cron: str = "", zone: str = "UTC"
) -> None:
    """Let these reports run, and no others: by the cron line, without one each interval. 0 switches all off.

    Raises CronRefused.
    """
    next_run_at = next_time(interval_minutes, cron, zone, datetime.now(UTC))
    await ensure_plans()
    chosen = ReportPlan.objects.filter(report__in=reports)
    await chosen.aupdate(interval_minutes=interval_minutes, days=days, next_run_at=next_run_at, cron=cron, zone=zone)
    await ReportPlan.objects.exclude(report__in=reports).aupdate(interval_minutes=0, days=days)


def next_time(interval_minutes: int, cron: str, zone: str, now: datetime) -> datetime:
    """When such a plan runs next. Raises CronRefused."""
    return following(cron, zone, now) if cron else now + timedelta(minutes=interval_minutes)


async def count_first_messages(now: datetime) -> bool:
    """Runs that came before the first message counted nothing: let the next ones come soon, and not an hour later.

    Call it when messages are stored. Returns whether there is nothing more to wait for: some result has rows.
    """
    results = ReportRun.objects.filter(state__in=ReportRun.WITH_RESULT, report=TRAFFIC)
    if await results.filter(rows__gt=0).aexists():
        return True
    if 0 < await results.acount() <= EMPTY_RUNS_MAX:
        soon = now + FIRST_RESULT_AFTER
        waiting = ReportPlan.objects.filter(interval_minutes__gt=0, cron="", next_run_at__gt=soon)
        await waiting.aupdate(next_run_at=soon)
    return False
