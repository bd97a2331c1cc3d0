"""Writes a report's table as JSON, CSV and Parquet, and a summary of limited size for the dashboard.

CSV cells that a spreadsheet would execute as a formula get a leading apostrophe, because clients choose topic names.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from appliance.reports.catalogue import REPORTS, TRAFFIC, Report
from appliance.reports.runs import RunFolder, RunSpec, write_json, write_whole

PAGE_TOPICS = 100  # rows of the page's table of topics
PAGE_ROWS = 1000  # newest rows of the page's table of hours
CHART_BARS = 400  # places on the axis of a chart, the last ones
CHART_TOPICS = 8  # more colours can't be distinguished; all other topics are one series
FORMULA = r"^[=+\-@\t\r]"
TIMES = ("hour", "day", "month")  # columns whose texts name a time
HOUR = timedelta(hours=1)
_HOUR_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def write_results(
    folder: RunFolder, table: pa.Table, spec: RunSpec, *, notes: list[str], facts: Sequence[str] = ()
) -> None:
    """Write every form of the table, whose columns are those of the catalogue.

    notes: what is missing in it. facts: what else its readers should know.
    """
    parquet = io.BytesIO()
    pq.write_table(table, parquet, compression="zstd")
    write_whole(folder.result("parquet", spec.report), parquet.getvalue())

    readable = table
    if spec.report == TRAFFIC:
        readable = table.set_column(0, "hour", pc.strftime(table["hour"].cast(pa.timestamp("s", "UTC")), _HOUR_FORMAT))
    write_whole(folder.result("csv", spec.report), csv_bytes(readable))
    rows = readable.to_pylist()
    head = {"report": spec.report, "begin_ms": spec.begin_ms, "end_ms": spec.end_ms}
    write_whole(folder.result("json", spec.report), json.dumps({**head, "rows": rows}).encode())
    if spec.report == TRAFFIC:
        page = {**page_of(rows, begin_ms=spec.begin_ms, end_ms=spec.end_ms, notes=notes), "facts": [*facts]}
    else:
        page = {
            **head,
            "zone": spec.zone,
            **table_page_of(REPORTS[spec.report], rows, spec.zone),
            "notes": notes,
            "facts": [*facts],
        }
    write_json(folder.path / "page.json", page)


def table_page_of(report: Report, rows: list[dict[str, Any]], zone: str = "UTC") -> dict[str, Any]:
    """What the page of any report but traffic shows; its size does not depend on the number of rows.

    Rows of times are shown newest first. An axis of times has no holes; one of names has the largest.
    """
    time = report.chart.x
    is_by_time = time in TIMES
    turns = {name: turn for turn, name in enumerate(dict.fromkeys(row[time] for row in rows))} if is_by_time else {}
    shown = sorted(rows, key=lambda row: turns[row[time]], reverse=True) if is_by_time else rows
    shown = shown[:PAGE_ROWS]  # of a time in their own order
    return {"row_count": len(rows), "rows": shown, "newest_first": is_by_time, "chart": _bars_of(report, rows, zone)}


def _bars_of(report: Report, rows: list[dict[str, Any]], zone: str) -> dict[str, Any]:
    """A series for each of the largest, and one for all others: their sum, or the most of them where sums say nothing.

    Values are None where nothing was sampled, and 0 where nothing was stored.
    """
    chart = report.chart
    x = places_of(report, rows, zone)
    nothing = 0 if chart.is_stacked else None
    together = _sum if chart.is_stacked else _most
    totals: defaultdict[str | None, float] = defaultdict(float)
    for row in rows:
        totals[row[chart.series] if chart.series else None] += row[chart.y] or 0
    drawn = sorted(totals, key=lambda name: (-totals[name], name or ""))[:CHART_TOPICS]
    values: dict[Any, dict[Any, float | None]] = {name: dict.fromkeys(x, nothing) for name in drawn}
    others: dict[Any, float | None] = dict.fromkeys(x, nothing)
    for row in rows:
        if row[chart.x] in others:
            bars = values.get(row[chart.series] if chart.series else None, others)
            bars[row[chart.x]] = together(bars[row[chart.x]], row[chart.y])
    series: list[dict[str, Any]] = [{"name": name, "values": list(bars.values())} for name, bars in values.items()]
    if len(totals) > len(drawn):
        series.append({"name": None, "count": len(totals) - len(drawn), "values": list(others.values())})
    return {"x": x, "series": series}


def places_of(report: Report, rows: list[dict[str, Any]], zone: str) -> list[Any]:
    """The places on the axis of a report's chart: the last times, or those names that have the most, in rows' order."""
    chart = report.chart
    x = list(dict.fromkeys(row[chart.x] for row in rows))
    if chart.x in TIMES:
        return every_time(chart.x, x, ZoneInfo(zone))[-CHART_BARS:]
    if len(x) <= CHART_BARS:
        return x
    totals: defaultdict[Any, float] = defaultdict(float)
    for row in rows:
        totals[row[chart.x]] += row[chart.y] or 0
    largest = set(sorted(x, key=lambda name: -totals[name])[:CHART_BARS])
    return [name for name in x if name in largest]


def every_time(kind: str, names: list[str], zone: ZoneInfo) -> list[str]:
    """The names of hours or days from the first to the last, also of those between them that have no row.

    Names, and those of hours that come twice, are as transforms/scope.py writes them.
    """
    if not names or kind not in ("hour", "day"):
        return names
    first, last = (_begin_of(name, zone) for name in (names[0], names[-1]))
    if kind == "day":
        between = [str(first.date() + timedelta(days=step)) for step in range((last.date() - first.date()).days + 1)]
    else:
        begin, hours = first.astimezone(UTC), (last.astimezone(UTC) - first.astimezone(UTC)) // HOUR
        between = [_hour_name(begin + step * HOUR, zone) for step in range(hours + 1)]
    return between if set(names) <= set(between) else names


def _begin_of(name: str, zone: ZoneInfo) -> datetime:
    at = datetime.fromisoformat(name[:16] + name[17:])
    return at if at.tzinfo else at.replace(tzinfo=zone)


def _hour_name(at: datetime, zone: ZoneInfo) -> str:
    """As Scope.hour."""
    before, name, after = (f"{(at + step).astimezone(zone):%Y-%m-%d %H:00}" for step in (-HOUR, HOUR * 0, HOUR))
    if name not in (before, after):
        return name
    east = f"{at.astimezone(zone):%z}"
    return f"{name} {east[:3]}:{east[3:]}"


def _sum(before: float | None, value: float | None) -> float:
    return (before or 0) + (value or 0)


def _most(before: float | None, value: float | None) -> float | None:
    return value if before is None else max(before, before if value is None else value)


def csv_bytes(table: pa.Table) -> bytes:
    """The table as CSV, its text cells safe to open in a spreadsheet."""
    for index, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            values = table.column(index).combine_chunks()
            safe = pc.if_else(pc.match_substring_regex(values, FORMULA), _quoted(values), values)
            table = table.set_column(index, column.name, safe)
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue()


def _quoted(values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise("'", values, "")


def page_of(rows: list[dict[str, Any]], *, begin_ms: int, end_ms: int, notes: list[str]) -> dict[str, Any]:
    """The summary for the dashboard; its size does not depend on the number of rows."""
    topics: dict[str, dict[str, Any]] = {}
    for row in rows:
        total = topics.setdefault(
            row["topic"],
            {"topic": row["topic"], "kind": row["kind"], "messages": 0, "stored_bytes": 0, "body_bytes": 0, "hours": 0},
        )
        for name in ("messages", "stored_bytes", "body_bytes"):
            total[name] += row[name]
        total["hours"] += 1
    ranked = sorted(topics.values(), key=lambda total: (-total["messages"], total["topic"]))
    busiest = _busiest_hour(rows)
    return {
        "begin_ms": begin_ms,
        "end_ms": end_ms,
        "messages": sum(total["messages"] for total in ranked),
        "stored_bytes": sum(total["stored_bytes"] for total in ranked),
        "body_bytes": sum(total["body_bytes"] for total in ranked),
        "topic_count": len(ranked),
        "row_count": len(rows),
        "busiest_hour": busiest,
        "topics": ranked[:PAGE_TOPICS],
        "rows": rows[-PAGE_ROWS:][::-1],
        "chart": _chart_of(rows, [total["topic"] for total in ranked]),
        "notes": notes,
    }


def _busiest_hour(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    by_hour: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        by_hour[row["hour"]] += row["messages"]
    if not by_hour:
        return None
    hour = max(sorted(by_hour), key=lambda name: by_hour[name])
    return {"hour": hour, "messages": by_hour[hour]}


def _chart_of(rows: list[dict[str, Any]], ranked: list[str]) -> dict[str, Any]:
    """Messages for each hour: a series for each of the busiest topics, and one for all others."""
    hours = sorted({row["hour"] for row in rows})
    index = {hour: at for at, hour in enumerate(hours)}
    named = set(ranked[:CHART_TOPICS])
    series = {topic: [0] * len(hours) for topic in ranked[:CHART_TOPICS]}
    others = [0] * len(hours)
    for row in rows:
        values = series[row["topic"]] if row["topic"] in named else others
        values[index[row["hour"]]] += row["messages"]
    drawn: list[dict[str, Any]] = [{"topic": topic, "messages": values} for topic, values in series.items()]
    if len(ranked) > CHART_TOPICS:
        drawn.append({"topic": None, "count": len(ranked) - CHART_TOPICS, "messages": others})
    return {"hours": hours, "series": drawn}
