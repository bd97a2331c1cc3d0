"""/api/v1/reports: which there are, their runs and results, the schedule."""

from __future__ import annotations

import logging
import zoneinfo
from datetime import UTC, datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Status

from appliance.reports.catalogue import REPORTS
from dashboard.access.permissions import Permission
from dashboard.audit.notes import changed, note, note_nothing
from dashboard.models.reports import ReportRun
from dashboard.reports import latest
from dashboard.reports.forms import RunForm
from dashboard.reports.runs import plans, results
from dashboard.reports.runs.cron import CronRefused, check
from dashboard.reports.runs.queue import NotTaken, ask_for
from dashboard.reports.runs.stopping import stop
from dashboard.reports.schemas import (
    LogOut,
    ReportList,
    ReportOut,
    ResultOut,
    RunIn,
    RunList,
    RunOut,
    ScheduleIn,
    ScheduleOut,
)
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, FormProblem, NotPossible, caller
from dashboard.rest.values import Offset

logger = logging.getLogger(__name__)

router = Router()
LIST_MAX = 200
READ = Token(Permission.REPORTS_READ)
RUN = Token(Permission.REPORTS_RUN)


@router.get("", response={200: ReportList} | REFUSALS, auth=READ, summary="List reports",
            operation_id="list_reports")  # fmt: skip
async def list_reports(request: HttpRequest) -> ReportList:
    runs = await latest.newest_of_each(ReportRun.objects.filter(report__in=REPORTS))
    found = await latest.results()
    return ReportList(reports=[ReportOut.of(one, runs.get(one.name), found.get(one.name)) for one in REPORTS.values()])


@router.get("/runs", response={200: RunList} | REFUSALS, auth=READ, summary="List runs of reports",
            operation_id="list_report_runs")  # fmt: skip
async def list_runs(
    request: HttpRequest,
    report: str = Query("", max_length=16, description="only of this one"),
    offset: Offset = 0,
    limit: int = Query(25, ge=1, le=LIST_MAX),
) -> RunList:
    rows = ReportRun.objects.select_related("requested_by")
    rows = rows.filter(report=report) if report else rows
    shown = [RunOut.of_run(run) async for run in rows[offset : offset + limit]]
    return RunList(runs=shown, total=await rows.acount())


@router.post("/runs", response={202: RunOut} | REFUSALS, auth=RUN, summary="Run a report",
             operation_id="run_report")  # fmt: skip
async def run_report(request: HttpRequest, body: RunIn) -> Status[RunOut]:
    form = RunForm(body.form())
    if not form.is_valid():
        raise FormProblem(form.problems())
    topics, zone = form.cleaned_data["topics"], form.cleaned_data["zone"]
    try:
        user = request.auth.user  # type: ignore[attr-defined]
        run = await ask_for(body.report, body.days, user, range_ms=form.range_ms, topics=topics, zone=zone)
    except NotTaken as exc:
        raise NotPossible(str(exc)) from exc
    note(request, "report requested", body.report, {"begin_ms": run.begin_ms, "end_ms": run.end_ms, "topics": topics})
    logger.info("report requested", extra={"event": "report_asked", "run": run.run_id} | caller(request))
    return Status(202, RunOut.of_run(run))


@router.get("/runs/{run_id}", response={200: RunOut} | REFUSALS, auth=READ, summary="One run",
            operation_id="get_report_run")  # fmt: skip
async def get_run(request: HttpRequest, run_id: str) -> RunOut:
    return RunOut.of_run(await _found(run_id))


@router.get("/runs/{run_id}/result", response={200: ResultOut} | REFUSALS, auth=READ,
            summary="A run's result, as many rows as the page shows", operation_id="get_report_result")  # fmt: skip
async def get_result(request: HttpRequest, run_id: str) -> ResultOut:
    run = await _found(run_id)
    page = results.page(run)
    if page is None:
        raise NotPossible("This run has no result.", status=404)
    return ResultOut(run=run.run_id, report=run.report, page=dict(page))


@router.get("/runs/{run_id}/result.{form}", response={200: None} | REFUSALS, auth=READ,
            summary="A run's whole result as a file", operation_id="download_report_result")  # fmt: skip
async def download_result(request: HttpRequest, run_id: str, form: Literal["csv", "json", "parquet"]) -> Any:
    answer = results.file_response(await _found(run_id), form)
    if answer is None:
        raise NotPossible("This run has no result.", status=404)
    return answer


@router.get("/runs/{run_id}/log", response={200: LogOut} | REFUSALS, auth=READ,
            summary="The end of a run's log", operation_id="get_report_log")  # fmt: skip
async def get_log(request: HttpRequest, run_id: str) -> LogOut:
    run = await _found(run_id)
    return LogOut(run=run.run_id, text=results.log_end(run))


@router.post("/runs/{run_id}/stop", response={200: RunOut} | REFUSALS, auth=RUN, summary="Stop a run",
             operation_id="stop_report_run")  # fmt: skip
async def stop_run(request: HttpRequest, run_id: str) -> RunOut:
    run = await _found(run_id)
    if not await stop(run):
        note_nothing(request)
        raise NotPossible("The run has ended already, or was started in a shell: stop it there.")
    note(request, "report run stopped", run.report, {"run": run_id})
    logger.info("report run stopped", extra={"event": "report_stopped", "run": run_id} | caller(request))
    return RunOut.of_run(await _found(run_id))


@router.get("/schedule", response={200: ScheduleOut} | REFUSALS, auth=READ, summary="The schedule of reports",
            operation_id="get_report_schedule")  # fmt: skip
async def get_schedule(request: HttpRequest) -> ScheduleOut:
    return ScheduleOut.of(await plans.schedule())


@router.put("/schedule", response={200: ScheduleOut} | REFUSALS, auth=RUN, summary="Change when reports run",
            operation_id="set_report_schedule")  # fmt: skip
async def set_schedule(request: HttpRequest, body: ScheduleIn) -> ScheduleOut:
    if not body.reports:
        raise FormProblem({"reports": ["Choose a report, or switch the schedule off."]})
    wanted, before = body.dict(), await plans.schedule()
    check_times(body.cron, body.zone)
    await plans.set_schedule(**wanted)
    note(request, "report schedule changed", "", changed(before.facts(), (await plans.schedule()).facts()))
    logger.info("report schedule changed", extra={"event": "report_schedule_changed", **wanted} | caller(request))
    return ScheduleOut.of(await plans.schedule())


def check_times(cron: str, zone: str) -> None:
    """Raises FormProblem where these can be no schedule."""
    if zone not in zoneinfo.available_timezones():
        raise FormProblem({"zone": [f"{zone!r} is not a time zone; write a name such as Europe/Berlin."]})
    if cron:
        try:
            check(cron, zone, datetime.now(UTC))
        except CronRefused as refusal:
            raise FormProblem({"cron": [str(refusal)]}) from refusal


async def _found(run_id: str) -> ReportRun:
    run = await ReportRun.objects.select_related("requested_by").filter(run_id=run_id).afirst()
    if run is None:
        raise NotPossible("There is no such run.", status=404)
    return run
