"""Runs that are asked for once more: of the schedule one that failed, twice; then its next time is soon enough. And any
that the end of this process cut off."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from appliance.reports.runs import new_run_id
from dashboard.models.reports import ReportRun, WeeklyMail

RETRY_AFTER = (timedelta(minutes=5), timedelta(minutes=30))


async def try_again(run: ReportRun) -> ReportRun | None:
    """Enqueue the same for later; None where that is not due: people ask again themselves."""
    has_failed = run.state in (ReportRun.State.FAILED, ReportRun.State.TIMEOUT)
    if not has_failed or run.from_shell or run.requested_by_id is not None or run.attempt > len(RETRY_AFTER):
        return None
    now = datetime.now(UTC)
    return await _once_more(run, now, now + RETRY_AFTER[run.attempt - 1])


async def begin_again(run: ReportRun) -> ReportRun | None:
    """Enqueue what was cut off at once; None after so many tries: it may be what ended this process."""
    return None if run.attempt > len(RETRY_AFTER) else await _once_more(run, datetime.now(UTC), None)


async def _once_more(run: ReportRun, now: datetime, not_before: datetime | None) -> ReportRun:
    again = await ReportRun.objects.acreate(
        run_id=new_run_id(),
        report=run.report,
        begin_ms=run.begin_ms,
        end_ms=run.end_ms,
        topics=run.topics,
        zone=run.zone,
        requested_by_id=run.requested_by_id,
        attempt=run.attempt + 1,
        not_before=not_before,
        created_at=now,
    )
    async for mail in WeeklyMail.objects.filter(pk=1):  # the summary of a week waits for the later try instead
        if run.run_id in mail.runs:
            mail.runs = [again.run_id if run_id == run.run_id else run_id for run_id in mail.runs]
            await mail.asave(update_fields=["runs"])
    return again
