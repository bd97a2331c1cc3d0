"""The newest run of each report: what the page lists, and what the Overview's alarm is about."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from django.db.models import Max, QuerySet

from appliance.reports.catalogue import REPORTS
from dashboard.cluster import units
from dashboard.language.report_words import in_words
from dashboard.models.reports import ReportRun


async def newest_of_each(runs: QuerySet[ReportRun]) -> dict[str, ReportRun]:
    """By the report's name, of those runs, which must be in their usual order."""
    times = runs.order_by().values("report").annotate(newest=Max("created_at"))
    found: dict[str, ReportRun] = {}
    async for run in runs.filter(created_at__in=[row["newest"] async for row in times]):
        found.setdefault(run.report, run)
    return found


async def results() -> dict[str, ReportRun]:
    """The newest run with a result of each report that has one."""
    return await newest_of_each(ReportRun.objects.filter(state__in=ReportRun.WITH_RESULT, report__in=REPORTS))


async def overview(scheduled: Collection[str]) -> list[dict[str, Any]]:
    """A row for each report: its last result, how the last run is going or went, whether the schedule has it.

    is_quiet: there is nothing to look at, neither rows nor a run under way nor an error.
    """
    newest = await newest_of_each(ReportRun.objects.filter(report__in=REPORTS))
    found, now = await results(), time.time()
    return [
        {
            "report": in_words(report),
            "run": (run := newest.get(report.name)),
            "result": (result := found.get(report.name)),
            "age": units.ago(result.created_at.timestamp(), now) if result is not None else "",
            "is_scheduled": report.name in scheduled,
            "is_quiet": not (result is not None and result.rows) and (run is None or not (run.is_live or run.error)),
        }
        for report in REPORTS.values()
    ]
