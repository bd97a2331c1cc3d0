"""/api/v1/reports: which there are, runs and their results, the schedule; promises and the weekly mail."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from typing import Literal

from django.http import HttpRequest, HttpResponseBase
from ninja import Query

from appliance.reports.catalogue import REPORTS
from dashboard.access.permissions import Permission
from dashboard.audit.notes import changed, note, note_nothing
from dashboard.models.alerts import AlertChannel, ChannelKind
from dashboard.models.reports import ReportRun
from dashboard.reports import latest
from dashboard.reports.forms import PromiseForm, RunForm
from dashboard.reports.runs import plans, promises, results
from dashboard.reports.runs.cron import CronRefused, check
from dashboard.reports.runs.queue import NotTaken, ask_for, stop
from dashboard.reports.schemas import (
    LogOut,
    PromiseIn,
    PromiseList,
    ReportList,
    ReportOut,
    ResultOut,
    RunIn,
    RunList,
    RunOut,
    ScheduleIn,
    ScheduleOut,
    WeeklyIn,
    WeeklyOut,
)
from dashboard.reports.weekly import send_now, set_weekly, weekly_mail
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit
from dashboard.rest.refusals import FormProblem, NotPossible, checked
from dashboard.rest.routes import Routes

router = Routes()
READ = Token(Permission.REPORTS_READ)
RUN = Token(Permission.REPORTS_RUN)


@router.get("", auth=READ, summary="List reports")
async def list_reports(request: HttpRequest) -> ReportList:
    runs = await latest.newest_of_each(ReportRun.objects.filter(report__in=REPORTS))
    found = await latest.results()
    return ReportList.whole(ReportOut.of(one, runs.get(one.name), found.get(one.name)) for one in REPORTS.values())


@router.get("/runs", auth=READ, summary="List runs of reports")
async def list_report_runs(
    request: HttpRequest,
    report: str = Query("", max_length=16, description="only of this one"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> RunList:
    rows = ReportRun.objects.select_related("requested_by")
    rows = rows.filter(report=report) if report else rows
    return await RunList.of_rows(rows, RunOut.of_run, cursor, limit)


@router.post("/runs", auth=RUN, response=(202, 409), summary="Run a report")
async def run_report(request: HttpRequest, body: RunIn) -> RunOut:
    form = checked(RunForm(body.form()), begin="since", end="until")
    topics, zone = form.cleaned_data["topics"], form.cleaned_data["zone"]
    try:
        user = request.auth.user  # type: ignore[attr-defined]
        run = await ask_for(body.report, body.days, user, range_ms=form.range_ms, topics=topics, zone=zone)
    except NotTaken as exc:
        raise NotPossible(str(exc)) from exc
    note(request, "report requested", body.report, {"begin_ms": run.begin_ms, "end_ms": run.end_ms, "topics": topics})
    return RunOut.of_run(run)


@router.get("/runs/{run_id}", auth=READ, summary="One run")
async def get_report_run(request: HttpRequest, run_id: str) -> RunOut:
    return RunOut.of_run(await _found(run_id))


@router.get("/runs/{run_id}/result", auth=READ, summary="A run's result, as many rows as the page shows")
async def get_report_result(request: HttpRequest, run_id: str) -> ResultOut:
    run = await _found(run_id)
    page = results.page(run)
    if page is None:
        raise NotPossible("This run has no result.", status=404)
    return ResultOut(run_id=run.run_id, report=run.report, page=dict(page))


@router.get("/runs/{run_id}/result.{form}", auth=READ, summary="A run's whole result as a file")
async def download_report_result(
    request: HttpRequest, run_id: str, form: Literal["csv", "json", "parquet"]
) -> HttpResponseBase:
    answer = results.file_response(await _found(run_id), form)
    if answer is None:
        raise NotPossible("This run has no result.", status=404)
    return answer


@router.get("/runs/{run_id}/log", auth=READ, summary="The end of a run's log")
async def get_report_log(request: HttpRequest, run_id: str) -> LogOut:
    run = await _found(run_id)
    return LogOut(run_id=run.run_id, text=results.log_end(run))


@router.post("/runs/{run_id}/stop", auth=RUN, response=409, summary="Stop a run")
async def stop_report_run(request: HttpRequest, run_id: str) -> RunOut:
    run = await _found(run_id)
    if not await stop(run):
        note_nothing(request)
        raise NotPossible("The run has ended already, or was started in a shell: stop it there.")
    note(request, "report run stopped", run.report, {"run": run_id})
    return RunOut.of_run(await _found(run_id))


@router.get("/schedule", auth=READ, summary="The schedule of reports")
async def get_report_schedule(request: HttpRequest) -> ScheduleOut:
    return ScheduleOut.of(await plans.schedule())


@router.put("/schedule", auth=RUN, summary="Change when reports run")
async def set_report_schedule(request: HttpRequest, body: ScheduleIn) -> ScheduleOut:
    if not body.reports:
        raise FormProblem({"reports": ["Choose a report, or switch the schedule off."]})
    wanted, before = body.dict(), await plans.schedule()
    check_times(body.cron, body.zone)
    await plans.set_schedule(**wanted)
    note(request, "report schedule changed", "", changed(before.facts(), (await plans.schedule()).facts()))
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


@router.get("/promises", auth=READ, summary="Promises: how far behind groups may be")
async def get_promises(request: HttpRequest) -> PromiseList:
    return PromiseList.of(await promises.promises())


@router.put("/promises", auth=RUN, response=409, summary="Set or remove a group's promise")
async def set_promise(request: HttpRequest, body: PromiseIn) -> PromiseList:
    checked(PromiseForm({"group": body.group, "seconds": body.seconds}))
    try:
        await promises.promise(body.group, body.seconds)
    except promises.TooManyPromises as refusal:
        raise NotPossible(str(refusal)) from refusal
    note(request, "promise of a group changed", body.group, {"seconds": body.seconds})
    return PromiseList.of(await promises.promises())


@router.get("/weekly", auth=READ, summary="The weekly summary by mail")
async def get_weekly_mail(request: HttpRequest) -> WeeklyOut:
    return await _weekly()


@router.put("/weekly", auth=RUN, summary="Change when the weekly summary is sent")
async def set_weekly_mail(request: HttpRequest, body: WeeklyIn) -> WeeklyOut:
    if not body.cron:
        raise FormProblem({"cron": ["Write a cron line, such as: 0 8 * * mon"]})
    check_times(body.cron, body.zone)
    known = AlertChannel.objects.filter(pk__in=body.channel_ids, kind=ChannelKind.MAIL)
    if await known.acount() != len(set(body.channel_ids)):
        raise FormProblem({"channel_ids": ["One of these is no mail channel."]})
    await set_weekly(body.channel_ids, body.cron, body.zone)
    note(request, "weekly mail changed", "", body.dict())
    return await _weekly()


@router.post("/weekly/send", auth=RUN, response=409, summary="Send the summary of the last seven days now")
async def send_weekly_mail(request: HttpRequest) -> WeeklyOut:
    if not await send_now():
        note_nothing(request)
        raise NotPossible("No channel is chosen, or a summary is being made already.")
    note(request, "weekly mail sent by hand", "", {})
    return await _weekly()


async def _weekly() -> WeeklyOut:
    mail = await weekly_mail()
    channels = [key async for key in mail.channels.values_list("pk", flat=True)]
    return WeeklyOut(
        channel_ids=channels, cron=mail.cron, zone=mail.zone, next_run_at=mail.next_at if channels else None
    )
