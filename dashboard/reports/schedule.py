"""Starts report runs: those that plans make due and those that people ask for, one at a time, in one Spark session.

The tables are the queue (queue.py), so nothing is lost by a restart. Plans that are due together (plans.py) become a
run each, one behind the other; one that fails is tried again later (`try_again`). The run itself is the work of `gantry
report serve` (warm_session.py), which times and kills what it starts; this process only waits for it and copies the
outcome into the run's row. While the report stack
is still being installed, asked runs wait. Runs of a command line are noted too (shell_runs.py), and the Overview is
told of the newest run that went wrong (checks.py). The summary of a week by mail is weekly.py's.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError

from appliance.reports.errors import ReportError
from appliance.reports.install_state import install_state
from appliance.reports.runs import RunFolder, RunStatus, new_run_id, remove_work_of_the_dead
from dashboard.models.reports import ReportPlan, ReportRun, WeeklyMail
from dashboard.reports import checks, latest, weekly
from dashboard.reports.runs.plans import count_first_messages, ensure_plans
from dashboard.reports.runs.queue import STOPPED, claim_next, due_at, enqueue_due, stoppable, waiting
from dashboard.reports.runs.results import result_bytes
from dashboard.reports.runs.shell_runs import ERROR_CHARS_MAX, ShellRuns, close
from dashboard.reports.runs.warm_session import WarmSession
from dashboard.status.board import board

logger = logging.getLogger(__name__)

POLL_S = 2.0
SOON_S = 0.5  # while a session is kept for the next run
RUNS_KEPT = 200
CUT_OFF = "the web process was killed during this run; it starts again"
CUT_OFF_EACH_TIME = "the web process was killed during each attempt of this run"


class ReportSchedule:
    """The service that owns the Spark session. `command` starts `gantry`; tests give another one."""

    def __init__(self, *, data: Path | None = None, command: Sequence[str] | None = None) -> None:
        self._data = data if data is not None else settings.APPLIANCE.data
        self._session = WarmSession(
            command if command is not None else [sys.executable, "-m", "appliance"], str(self._data)
        )
        self._shell_runs = ShellRuns(self._data)
        self._has_first_result = False

    async def run(self) -> None:
        """Serve until cancelled; a run in progress is stopped then and noted as such."""
        await ensure_plans()
        await self.close_orphans()
        await asyncio.to_thread(remove_work_of_the_dead, self._data)
        try:
            while True:
                if not await self._turn():
                    await self._session.close_when_idle()
                    await asyncio.sleep(SOON_S if self._session.is_open else POLL_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """End the session with all that it started."""
        await self._session.stop()

    async def _turn(self) -> bool:
        try:
            await self.look()
            return await self.step()
        except DatabaseError:  # a busy database must not take the appliance down; the queue is still there
            logger.exception("report schedule can't use the database", extra={"event": "report_schedule_failed"})
            return False

    async def look(self) -> None:
        """Take note of runs that were started from a command line, and of how the newest run ended."""
        if await self._shell_runs.look():
            await self.forget_old_runs()
        await checks.look()
        await weekly.look()
        stored = board.snapshot.stored if board.snapshot is not None else None
        if not self._has_first_result and stored is not None and stored.messages:
            self._has_first_result = await count_first_messages(datetime.now(UTC))

    async def step(self, now: datetime | None = None) -> bool:
        """Enqueue what is due, do the oldest waiting run. Returns whether there was one."""
        now = now or datetime.now(UTC)
        if not await ReportPlan.objects.filter(due_at(now)).aexists() and not await waiting(now).aexists():
            return False
        if settings.APPLIANCE.attach or not install_state(self._data).is_ready:
            return False
        await enqueue_due(now)
        run = await claim_next(now)
        if run is None:
            return False
        await self._execute(run)
        await self.forget_old_runs()
        return True

    async def close_orphans(self) -> None:
        """Runs that a former process left as running: take their status when they have one, else begin them again."""
        async for run in ReportRun.objects.filter(state=ReportRun.State.RUNNING, from_shell=False):
            status = RunFolder.in_data(self._data, run.run_id).status()
            if status is not None:
                await _close(run, status)
            else:
                again = await begin_again(run)
                words = CUT_OFF if again is not None else CUT_OFF_EACH_TIME
                await _fail(run, ReportRun.State.CANCELLED, words)

    async def forget_old_runs(self) -> None:
        """Delete all but the newest runs and the last result of each report, with their folders."""
        kept = [run.pk for run in (await latest.results()).values()]
        ended = ReportRun.objects.exclude(state__in=ReportRun.LIVE)
        old = [run async for run in ended[RUNS_KEPT:] if run.pk not in kept]
        for run in old:
            folder = RunFolder.in_data(self._data, run.run_id)
            await asyncio.to_thread(shutil.rmtree, folder.path, ignore_errors=True)
            await run.adelete()

    async def _execute(self, run: ReportRun) -> None:
        logger.info("report run started", extra={"event": "report_started", "run": run.run_id, "report": run.report})
        try:
            words = await self._words_of(run)
        except OSError as failure:
            await _fail(run, ReportRun.State.FAILED, f"gantry report could not be started: {failure}")
            return
        except asyncio.CancelledError:
            await _fail(run, ReportRun.State.CANCELLED, "the appliance was stopped during this run")
            raise
        if words is None:
            await _fail(run, ReportRun.State.CANCELLED, STOPPED)
            return
        try:
            status = RunFolder.in_data(self._data, run.run_id).status()
        except (ReportError, ValueError) as failure:
            await _fail(run, ReportRun.State.FAILED, str(failure))
            return
        if status is None:
            await _fail(run, ReportRun.State.FAILED, words)
            return
        await _close(run, status)

    async def _words_of(self, run: ReportRun) -> str | None:
        """What the process said if it died over the run; None when a person stopped it."""
        with stoppable(run.run_id) as asked:
            work = asyncio.create_task(self._session.run(run), name="report run")
            stop = asyncio.create_task(asked.wait(), name="stop of a report run")
            try:
                await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
                return await work if work.done() else None
            finally:
                for task in (work, stop):
                    task.cancel()
                await asyncio.wait({work, stop})


async def _close(run: ReportRun, status: RunStatus) -> None:
    close(run, status)
    run.result_bytes = await asyncio.to_thread(result_bytes, run)
    await run.asave()
    logger.info("report run ended", extra={"event": "report_ended", "run": run.run_id, "state": run.state})
    await try_again(run)


async def _fail(run: ReportRun, state: str, error: str) -> None:
    run.state, run.error, run.finished_at = state, error[:ERROR_CHARS_MAX], datetime.now(UTC)
    await run.asave()
    logger.error("report run failed", extra={"event": "report_failed", "run": run.run_id, "state": state})
    await try_again(run)


RETRY_AFTER = (timedelta(minutes=5), timedelta(minutes=30))


async def try_again(run: ReportRun) -> ReportRun | None:
    """Enqueue a failed run of the schedule for later, twice: then its next time is soon enough. None where that is not
    due: people ask again themselves."""
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
