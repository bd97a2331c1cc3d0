"""The queue of runs, which is a table: who may add to it, what the plans add, which run is next.

A plan's slot is claimed by one conditional UPDATE, so a slot missed while the appliance was down runs once, and two
that look at the same time make one run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.translation import gettext, gettext_noop

from appliance.reports.catalogue import REPORTS
from appliance.reports.runs import HOUR_MS, new_run_id
from dashboard.models.management import User
from dashboard.models.reports import ReportPlan, ReportRun
from dashboard.reports.runs.cron import CronRefused
from dashboard.reports.runs.plans import next_time
from gantrymq.errors import GantryError

logger = logging.getLogger(__name__)

NO_STORES = gettext_noop(
    "Reports read the stores of brokers on this machine, and this dashboard manages a cluster elsewhere."
)
WAITING_MAX = 5  # a person who clicks on needs no more


class NotTaken(GantryError):
    """A run can't be asked for now: so many wait already, or there are no stores to read."""


async def ask_for(report: str, days: int, user: User, **scope: Any) -> ReportRun:
    """Put a run that a person wants at the end of the queue; `scope`: as enqueue takes it. Raises NotTaken."""
    if settings.APPLIANCE.attach:
        raise NotTaken(gettext(NO_STORES))
    count = await waiting(datetime.now(UTC)).acount()
    if count >= WAITING_MAX:
        raise NotTaken(gettext("%(count)s runs are waiting already.") % {"count": count})
    return await enqueue(report, days, requested_by=user, **scope)


async def enqueue(
    report: str,
    days: int,
    *,
    requested_by: User | None,
    now: datetime | None = None,
    range_ms: tuple[int, int] | None = None,
    topics: Sequence[str] = (),
    zone: str = "UTC",
) -> ReportRun:
    """Put a run at the end of the queue. Its range: `range_ms`, or the last days, which end with the current hour."""
    now = now or datetime.now(UTC)
    now_ms = int(now.timestamp() * 1000)
    end_ms = now_ms - now_ms % HOUR_MS + HOUR_MS
    begin_ms, end_ms = range_ms if range_ms is not None else (end_ms - days * 24 * HOUR_MS, end_ms)
    return await ReportRun.objects.acreate(
        run_id=new_run_id(),
        report=report,
        begin_ms=begin_ms,
        end_ms=end_ms,
        topics=list(topics),
        zone=zone,
        requested_by=requested_by,
        created_at=now,
    )


async def enqueue_due(now: datetime) -> None:
    """Claim each due plan by moving it on, and enqueue its run unless one is waiting already."""
    async for plan in ReportPlan.objects.filter(due_at(now)).order_by("id"):
        try:
            following = next_time(plan.interval_minutes, plan.cron, plan.zone, now)
        except CronRefused as refusal:  # its zone may have left the system's list
            logger.error("schedule has no next time", extra={"event": "report_plan_refused", "why": str(refusal)})
            following = now + timedelta(days=1)
        claimed = await ReportPlan.objects.filter(pk=plan.pk, next_run_at=plan.next_run_at).aupdate(
            next_run_at=following
        )
        if claimed and not await waiting(now).filter(report=plan.report, requested_by=None).aexists():
            await enqueue(plan.report, plan.days, requested_by=None, now=now, zone=plan.zone)


async def claim_next(now: datetime | None = None) -> ReportRun | None:
    """The oldest waiting run whose time has come, now marked as running; None when there is none."""
    now = now or datetime.now(UTC)
    async for run in waiting(now).order_by("created_at", "id"):
        started_at = datetime.now(UTC)
        claimed = await waiting(now).filter(pk=run.pk).aupdate(state=ReportRun.State.RUNNING, started_at=started_at)
        if claimed:
            run.state, run.started_at = ReportRun.State.RUNNING, started_at
            return run
    return None


def due_at(now: datetime) -> Q:
    """The condition of plans that are on and due; a newer version may have left some of reports that are not here."""
    return Q(interval_minutes__gt=0, next_run_at__lte=now, report__in=REPORTS)


def waiting(now: datetime) -> QuerySet[ReportRun]:
    """Runs that wait for their turn alone; a later try waits for its time, too."""
    its_time = Q(not_before=None) | Q(not_before__lte=now)
    return ReportRun.objects.filter(its_time, state=ReportRun.State.QUEUED)


STOPPED = gettext_noop("it was stopped by hand")
_running: dict[str, asyncio.Event] = {}  # by run id: set when a person wants it to end


@contextlib.contextmanager
def stoppable(run_id: str) -> Iterator[asyncio.Event]:
    """The schedule's, around a run: the event says that the run is to end."""
    asked = _running[run_id] = asyncio.Event()
    try:
        yield asked
    finally:
        del _running[run_id]


async def stop(run: ReportRun) -> bool:
    """End the run; False when it has ended by itself, or is a command line's, which this process does not own."""
    waiting = ReportRun.objects.filter(pk=run.pk, state=ReportRun.State.QUEUED)
    if await waiting.aupdate(state=ReportRun.State.CANCELLED, error=STOPPED, finished_at=datetime.now(UTC)):
        return True
    asked = _running.get(run.run_id)
    if asked is None:
        return False
    asked.set()
    return True
