"""What the Overview has to say of reports: the newest run of one failed, or its numbers are incomplete."""

from __future__ import annotations

from django.urls import reverse

from dashboard.language.sentences import gettext
from dashboard.models.reports import ReportRun
from dashboard.reports.latest import newest_of_each
from dashboard.status.check import Check, Level

_newest: list[ReportRun] = []  # of each report that has ended; the schedule looks, and the Overview asks each second


async def look() -> None:
    """Find the newest runs that ended by themselves; one that was stopped on purpose says nothing."""
    ended = ReportRun.objects.exclude(state__in=(*ReportRun.LIVE, ReportRun.State.CANCELLED))
    _newest[:] = (await newest_of_each(ended)).values()


def problems() -> list[Check]:
    """At most one: reports that run together mostly have the same. The newest run's comes first."""
    return [problem for run in _newest if (problem := problem_of(run)) is not None][:1]


def problem_of(run: ReportRun) -> Check | None:
    """None when the run is fine."""
    link = reverse("reports:detail", args=[run.run_id])
    if run.state == ReportRun.State.INCOMPLETE:
        return Check(
            Level.WARN,
            gettext("The last report is incomplete"),
            run.error,
            gettext(
                "Messages that a broker deleted before a run read them cannot be counted: run "
                "reports more often, or keep messages longer. Messages not counted yet are counted "
                "by the next run."
            ),
            link=link,
        )
    if run.state in (ReportRun.State.FAILED, ReportRun.State.TIMEOUT):
        return Check(
            Level.WARN,
            gettext("The last report failed"),
            run.error,
            gettext(
                "The run's page has the end of its log. Messages that brokers delete before a run reads them are in "
                "no report."
            ),
            link=link,
        )
    return None
