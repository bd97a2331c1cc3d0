"""Any report but traffic as a page shows it: a table by the catalogue's columns, and a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import ngettext

from appliance.reports.catalogue import Column, Kind, Report
from dashboard.cluster import units
from dashboard.language.report_words import in_words

TIMES = ("hour", "day", "month")  # columns whose texts are short and stay on a line


def change(ratio: float | None) -> str:
    """0.5 as "+50 %"."""
    text = units.percent(ratio)
    return f"+{text}" if ratio is not None and ratio > 0 else text


SHOWN: Mapping[Kind, Callable[[Any], str]] = {
    Kind.TEXT: str,
    Kind.COUNT: units.count,
    Kind.BYTES: units.size,
    Kind.MS: units.milliseconds,
    Kind.SECONDS: units.duration,
    Kind.TIME: lambda at_ms: units.moment(at_ms)[:19],
    Kind.CHANGE: change,
    Kind.SHARE: units.percent,
    Kind.RATE: units.rate,
}


def table_context(report: Report, page: Mapping[str, Any]) -> dict[str, Any]:
    """What _table.html needs."""
    report = in_words(report)
    return {
        "page": page,
        "report": report,
        "columns": [
            {"title": column.title, "about": column.about, "is_number": column.kind is not Kind.TEXT}
            for column in report.columns
        ],
        "cells": [[_cell(column, row) for column in report.columns] for row in page["rows"]],
        "figure": _figure(report, page["chart"]) if _has_bars(page["chart"]) else None,
    }


def _cell(column: Column, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "text": SHOWN[column.kind](row[column.name]),
        "is_number": column.kind is not Kind.TEXT,
        "is_time": column.name in TIMES,
    }


def _has_bars(chart: Mapping[str, Any]) -> bool:
    return any(value for series in chart["series"] for value in series["values"])


def _figure(report: Report, chart: Mapping[str, Any]) -> dict[str, Any]:
    """What bars.js draws: names along the axis, and for each series a value for each."""
    columns = {column.name: column for column in report.columns}
    y = columns[report.chart.y]
    return {
        "x": chart["x"],
        "series": [
            {"name": _series_name(series, "" if report.chart.series else y.title), "values": series["values"]}
            for series in chart["series"]
        ],
        "is_stacked": report.chart.is_stacked,
        "kind": y.kind,
    }


def _series_name(series: Mapping[str, Any], unnamed: str) -> str:
    if "count" in series:
        count = series["count"]
        return ngettext("%(count)s other", "%(count)s others", count) % {"count": count}
    return series["name"] or unnamed
