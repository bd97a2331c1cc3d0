"""The Reports pages: what ran, what came out, start one now, how often they run.

Results are read from the run's files, which are bounded (`page.json`) or streamed (downloads): nothing here imports
Spark, Arrow or numpy, and no size of report makes the web process grow.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages as notes
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext, ngettext

from appliance.reports.catalogue import REPORTS, TRAFFIC, Kind, Report
from appliance.reports.errors import ReportError
from appliance.reports.install_state import install_state
from appliance.reports.runs import HOUR_MS, RunFolder
from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster import units
from dashboard.language.report_words import in_words
from dashboard.models.reports import ReportRun
from dashboard.reports import estimate, latest
from dashboard.reports.forms import RunForm
from dashboard.reports.runs import plans
from dashboard.reports.runs.queue import NO_STORES, NotTaken, ask_for, stop
from dashboard.reports.runs.results import CONTENT_TYPES, file_response, log_end
from dashboard.reports.runs.warm_session import note_look
from dashboard.reports.settings_views import refused, settings_context
from dashboard.reports.snippets import run_commands, snippets
from dashboard.reports.tables import has_zone, table_context

RUNS_SHOWN = 25
TOPICS_ON_INDEX = 10  # the whole report lists more (the slice in index.html says so too)
CHART_HOURS_MIN = 12  # the least that the chart spans


@requires(Permission.REPORTS_READ)
async def index(request: HttpRequest) -> HttpResponse:
    if settings.APPLIANCE.attach:
        return render(request, "reports/elsewhere.html", {"why": gettext(NO_STORES)})
    context = await _runs_context(request)
    plan = context["plan"]
    context |= {"data_folder": settings.APPLIANCE.data}
    shown = (await latest.results()).get(TRAFFIC)
    page = _folder(shown.run_id).page() if shown is not None else None
    if shown is not None and page is not None:
        context |= result_context(page) | {
            "latest": shown,
            "topics_max": TOPICS_ON_INDEX,
            "latest_end_ms": min(shown.end_ms, int(shown.created_at.timestamp() * 1000)),
            "age": units.ago(shown.created_at.timestamp(), time.time()),
        }
    context |= {
        "run_form": (run_form := RunForm()),
        "run_more": [run_form[name] for name in ("begin", "end", "topics", "zone")],
    }
    context |= await settings_context(plan) | {"drill_reports": _drill_reports()}
    return render(request, "reports/index.html", context)


@requires(Permission.REPORTS_READ)
async def runs(request: HttpRequest) -> HttpResponse:
    """The list of runs as a fragment; the page asks for it again while something is going on."""
    if not request.headers.get("HX-Request"):
        return redirect("reports:index")
    context = await _runs_context(request)
    if not context["is_live"] and request.GET.get("was", context["was"]) != context["was"]:
        return _reload()
    return render(request, "reports/_runs.html", context)


@requires(Permission.REPORTS_READ)
async def detail(request: HttpRequest, run_id: str) -> HttpResponse:
    run = await _find(run_id)
    note_look()
    folder = _folder(run.run_id)
    page = folder.page() if run.has_result else None
    status = folder.status()
    context = {
        "run": run,
        "row": _row(run),
        "install": install_state(settings.APPLIANCE.data),
        "log": "" if run.is_live else log_end(run),
        "snippets": snippets(run, settings.APPLIANCE.data, settings.APPLIANCE.report_lake) if page is not None else [],
        "run_commands": run_commands(request, run),
        "drill_reports": _drill_reports(),
        "may_run": request.principal.may(Permission.REPORTS_RUN),  # type: ignore[attr-defined]
        "is_report": run.report in REPORTS,
        "has_zone": has_zone(run.report),
        "seconds": list(status.seconds.items()) if status is not None else [],
        "download_suffixes": list(CONTENT_TYPES),
    }
    if page is not None:
        context |= _page_context(run, page)
    if request.headers.get("HX-Request"):
        if request.GET.get("was") == "live" and not run.is_live:
            return _reload()
        return render(request, "reports/_detail.html", context)
    return render(request, "reports/detail.html", context)


@requires(Permission.REPORTS_READ)
async def download(request: HttpRequest, run_id: str, report: str, suffix: str) -> HttpResponseBase:
    """The whole result as a file. Text cells of the CSV were made safe for spreadsheets when it was written."""
    run = await _find(run_id)
    response = file_response(run, suffix) if report == run.report else None
    if response is None:
        raise Http404
    return response


@requires(Permission.REPORTS_RUN, ACT)
async def run_now(request: HttpRequest) -> HttpResponseBase:
    form = RunForm(request.POST)
    if not form.is_valid():
        return refused(gettext("Nothing was started."), form)
    values = form.cleaned_data
    return await _ask_for(
        request, values["report"], values["days"], range_ms=form.range_ms, topics=values["topics"], zone=values["zone"]
    )


@requires(Permission.REPORTS_RUN, ACT)
async def run_again(request: HttpRequest, run_id: str) -> HttpResponseBase:
    """The same question once more: the same range, topics and zone."""
    run = await _find(run_id)
    if run.report not in REPORTS:
        note_nothing(request)
        return HttpResponse(gettext("This run has no report to compute again."), status=400)
    range_ms = (run.begin_ms, run.end_ms)
    return await _ask_for(request, run.report, 0, range_ms=range_ms, topics=run.topics, zone=run.zone)


@requires(Permission.REPORTS_RUN, ACT)
async def stop_run(request: HttpRequest, run_id: str) -> HttpResponseBase:
    run = await _find(run_id)
    if await stop(run):
        note(request, "report run stopped", run.report, {"run": run_id})
        notes.success(request, gettext("The run is being stopped."))
    else:
        note_nothing(request)
        is_shells = run.from_shell and run.is_live
        notes.warning(
            request,
            gettext("Stop it in the shell where it was started.")
            if is_shells
            else gettext("The run has ended already."),
        )
    return redirect("reports:detail", run_id=run_id)


async def _ask_for(request: HttpRequest, report: str, days: int, **scope: Any) -> HttpResponseBase:
    user = request.principal.user  # type: ignore[attr-defined]
    try:
        run = await ask_for(report, days, user, **scope)
    except NotTaken as exc:
        note_nothing(request)
        notes.warning(request, str(exc))
    else:
        range_text = f"{_minute(run.begin_ms)} to {_minute(run.end_ms)}"
        note(request, "report requested", report, {"range": range_text, "topics": run.topics, "zone": run.zone})
        return redirect("reports:detail", run_id=run.run_id)  # it shows how far the run is, then what came out
    return redirect("reports:index")


def _drill_reports() -> list[Report]:
    """Those that say more about the messages of an hour."""
    return [
        in_words(one)
        for one in REPORTS.values()
        if one.tables == ("messages",) and not one.days_before and one.name != TRAFFIC
    ]


def _page_context(run: ReportRun, page: Mapping[str, Any]) -> dict[str, Any]:
    if run.report == TRAFFIC:
        return result_context(page)
    return table_context(REPORTS[run.report], page)


def result_context(page: Mapping[str, Any]) -> dict[str, Any]:
    """A result as the templates show it."""
    busiest = page["busiest_hour"]
    return {
        "page": page,
        "counts": in_words(REPORTS[TRAFFIC]).counts,
        "topics": [{**topic, "share": topic["messages"] / page["messages"]} for topic in page["topics"]],
        "topics_slice": ":",
        "hours": [_readable(row) for row in page["rows"]],
        "busiest": _readable(busiest) if busiest else None,
        "figure": chart_figure(page["chart"], page["begin_ms"], page["end_ms"]) if page["chart"]["hours"] else None,
    }


def chart_figure(chart: Mapping[str, Any], begin_ms: int, end_ms: int) -> dict[str, Any]:
    """Messages an hour, stacked by topic, as bars.js draws them. x: the begins of the hours, ms since 1970."""
    hours = [_hour_ms(hour) for hour in chart["hours"]]
    return {
        "x": hours,
        "step_ms": HOUR_MS,
        "series": [
            {
                "name": series["topic"]
                if series["topic"] is not None
                else ngettext("%(count)s other topic", "%(count)s other topics", series["count"])
                % {"count": series["count"]},
                "topic": series["topic"],
                "values": series["messages"],
            }
            for series in chart["series"]
        ],
        "is_stacked": True,
        "kind": Kind.COUNT,
        "shown": _shown_range(hours, begin_ms, end_ms),
        "whole": [begin_ms, end_ms],
    }


def _shown_range(hours: Sequence[int], begin_ms: int, end_ms: int) -> list[int]:
    """Where the messages are: on a first day an hour of a week would be too thin to be seen."""
    within = [at for at in hours if begin_ms <= at < end_ms]
    if not within:
        return [begin_ms, end_ms]
    last_ms = min(end_ms, max(within[-1] + HOUR_MS, within[0] + CHART_HOURS_MIN * HOUR_MS))
    return [max(begin_ms, min(within[0], last_ms - CHART_HOURS_MIN * HOUR_MS)), last_ms]


def _hour_ms(hour: str) -> int:
    return int(datetime.fromisoformat(hour).replace(tzinfo=UTC).timestamp() * 1000)


def _reload() -> HttpResponse:
    """Tell htmx to load the page again: what was going on has ended, and there is a result to draw."""
    return HttpResponse(headers={"HX-Refresh": "true"})


async def _runs_context(request: HttpRequest) -> dict[str, Any]:
    note_look()
    rows = [_row(run) async for run in ReportRun.objects.select_related("requested_by")[:RUNS_SHOWN]]
    plan = await plans.schedule()
    overview = await latest.overview(plan.reports if plan.is_on else ())
    progress = {row["run"].run_id: row["progress"] for row in rows}
    overview = [row | {"progress": progress.get(row["run"].run_id) if row["run"] else None} for row in overview]
    is_live = any(row["run"].is_live for row in rows)
    return {
        # What the next look compares: a run may begin and end between two.
        "was": "live" if is_live else str(max((row["run"].pk for row in rows), default=0)),
        "rows": rows,
        "plan": plan,
        "overview": [row for row in overview if not row["is_quiet"]],
        "quiet": [row for row in overview if row["is_quiet"]],
        "is_live": is_live,
        "steps": await _steps(row["run"] for row in rows),
        "install": install_state(settings.APPLIANCE.data),
        "may_run": request.principal.may(Permission.REPORTS_RUN),  # type: ignore[attr-defined]
    }


async def _steps(runs: Iterable[ReportRun]) -> str:
    """What the newest runs took, step by step."""
    with_result = [run.run_id for run in runs if run.state in ReportRun.WITH_RESULT][: estimate.RUNS]
    return estimate.in_steps(await asyncio.to_thread(estimate.steps_of, [_folder(run_id) for run_id in with_result]))


def _row(run: ReportRun) -> dict[str, Any]:
    """A run as the list shows it; a running one with how far it is."""
    row: dict[str, Any] = {
        "run": run,
        "title": in_words(REPORTS[run.report]).title if run.report in REPORTS else gettext("Log copied to the lake"),
        "by": _asked_by(run),
        "last_ms": run.end_ms - 1,
        "progress": None,
        "elapsed_s": run.duration_s,
    }
    if run.state == ReportRun.State.RUNNING:
        row["progress"] = _folder(run.run_id).progress()
        row["elapsed_s"] = (datetime.now(UTC) - run.started_at).total_seconds() if run.started_at else None
    return row


def _asked_by(run: ReportRun) -> str:
    if run.from_shell:
        return gettext("command line")
    return run.requested_by.username if run.requested_by is not None else gettext("schedule")


async def _find(run_id: str) -> ReportRun:
    run = await ReportRun.objects.select_related("requested_by").filter(run_id=run_id).afirst()
    if run is None:
        raise Http404
    return run


def _folder(run_id: str) -> RunFolder:
    try:
        return RunFolder.in_data(settings.APPLIANCE.data, run_id)
    except ReportError as refusal:
        raise Http404(str(refusal)) from refusal


def _readable(row: Mapping[str, Any]) -> dict[str, Any]:
    begin = datetime.fromisoformat(str(row["hour"]))
    end = begin + timedelta(hours=1)
    return {**row, "begin_ms": _hour_ms(str(row["hour"])), "begin": begin.isoformat(), "end": end.isoformat()}


def _minute(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
