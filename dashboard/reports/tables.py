"""Any report but traffic as a page shows it: a table by the catalogue's columns, and a chart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext, ngettext

from appliance.reports.catalogue import REPORTS, TRAFFIC, Column, Kind, Report
from dashboard.cluster import units
from dashboard.language.report_words import in_words
from dashboard.status import words

TIMES = ("hour", "day", "month")  # columns whose texts are short and stay on a line
WORDS = ("kind", "cause", "delay")  # columns with words of GantryMQ's own, beside what clients wrote
_LEVEL = re.compile(r"level (\d+)")


def has_zone(name: str) -> bool:
    """Whether the report's hours, days or months are those of the run's zone; traffic's hours are UTC."""
    return name != TRAFFIC and name in REPORTS and any(column.name in TIMES for column in REPORTS[name].columns)


def value_in_words(column: str, value: Any) -> Any:
    """The value as people read it; what is not a word of GantryMQ's own stays."""
    if column not in WORDS or not isinstance(value, str):
        return value
    if column == "delay" and (found := _LEVEL.fullmatch(value)):
        return gettext("level %(level)s") % {"level": found[1]}
    return words.in_words(value)


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
        "text": SHOWN[column.kind](value_in_words(column.name, row[column.name])),
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
            {"name": _series_name(report, series, y.title), "values": series["values"]} for series in chart["series"]
        ],
        "is_stacked": report.chart.is_stacked,
        "kind": y.kind,
    }


def _series_name(report: Report, series: Mapping[str, Any], unnamed: str) -> str:
    if "count" in series:
        count = series["count"]
        return ngettext("%(count)s other", "%(count)s others", count) % {"count": count}
    drawn = report.chart.series
    return (value_in_words(drawn, series["name"]) or "") if drawn else unnamed
