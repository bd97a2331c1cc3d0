"""Writes a report's table as JSON, CSV and Parquet, and a summary of limited size for the dashboard.

CSV cells that a spreadsheet would execute as a formula get a leading apostrophe, because clients choose topic names.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

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
            **table_page_of(REPORTS[spec.report], rows),
            "notes": notes,
            "facts": [*facts],
        }
    write_json(folder.path / "page.json", page)


def table_page_of(report: Report, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page of any report but traffic shows; its size does not depend on the number of rows."""
    chart = report.chart
    x = list(dict.fromkeys(row[chart.x] for row in rows))[-CHART_BARS:]
    totals: defaultdict[str | None, float] = defaultdict(float)
    for row in rows:
        totals[row[chart.series] if chart.series else None] += row[chart.y] or 0
    drawn = sorted(totals, key=lambda name: (-totals[name], name or ""))[:CHART_TOPICS]
    values: dict[Any, dict[Any, float]] = {name: dict.fromkeys(x, 0) for name in drawn}
    others: dict[Any, float] = dict.fromkeys(x, 0)
    for row in rows:
        if row[chart.x] in others:
            bars = values.get(row[chart.series] if chart.series else None, others)
            bars[row[chart.x]] += row[chart.y] or 0
    series = [{"name": name, "values": list(bars.values())} for name, bars in values.items()]
    if len(totals) > len(drawn):
        series.append({"name": f"{len(totals) - len(drawn)} others", "values": list(others.values())})
    return {"row_count": len(rows), "rows": rows[:PAGE_ROWS], "chart": {"x": x, "series": series}}


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
