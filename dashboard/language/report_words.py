"""The reports' titles and texts in the language of the page. The catalogue, which Spark reads too, is English."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext

from appliance.reports.catalogue import Report


def in_words(report: Report) -> Report:
    """The same report with what people read of it translated."""
    return replace(
        report,
        title=gettext(report.title),
        about=gettext(report.about),
        counts=gettext(report.counts) if report.counts else "",
        nothing=gettext(report.nothing),
        chart=replace(report.chart, title=gettext(report.chart.title)),
        columns=tuple(
            replace(column, title=gettext(column.title), about=gettext(column.about) if column.about else "")
            for column in report.columns
        ),
    )
