"""Result files: cells are safe in a spreadsheet, and the page is bounded whatever the report's size."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from appliance.reports import results
from appliance.reports.catalogue import REPORTS
from appliance.reports.errors import ReportError
from appliance.reports.runs import RunFolder, RunSpec, new_run_id


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_s21_a_cell_that_a_spreadsheet_would_run_becomes_text(cell: str) -> None:
    written = results.csv_bytes(pa.table({"topic": [cell, "plain", None], "messages": [-5, 0, 7]})).decode()
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows[1:] == [["'" + cell, "-5"], ["plain", "0"], ["", "7"]]


def rows(topics: int, hours: int) -> list[dict[str, object]]:
    return [
        {
            "hour": f"2026-11-{1 + hour // 24:02}T{hour % 24:02}:00:00Z",
            "topic": f"t{topic:04}",
            "kind": "normal",
            "messages": topics - topic,
            "stored_bytes": 10,
            "body_bytes": 5,
        }
        for hour in range(hours)
        for topic in range(topics)
    ]


def test_the_page_of_a_huge_report_stays_small_and_its_totals_whole() -> None:
    page = results.page_of(rows(500, 100), begin_ms=0, end_ms=1, notes=[])
    assert (len(page["topics"]), len(page["rows"])) == (results.PAGE_TOPICS, results.PAGE_ROWS)
    assert (page["topic_count"], page["row_count"]) == (500, 50_000)
    assert page["messages"] == 100 * 500 * 501 // 2
    assert [series["topic"] for series in page["chart"]["series"][:2]] == ["t0000", "t0001"]
    assert page["chart"]["series"][-1]["count"] == 500 - results.CHART_TOPICS
    assert sum(sum(series["messages"]) for series in page["chart"]["series"]) == page["messages"]
    assert page["busiest_hour"] == {"hour": "2026-11-01T00:00:00Z", "messages": 125_250}
    assert len(json.dumps(page)) < 300_000


def test_an_empty_report_has_an_empty_page() -> None:
    page = results.page_of([], begin_ms=0, end_ms=1, notes=["a note"])
    assert (page["messages"], page["busiest_hour"], page["chart"]) == (0, None, {"hours": [], "series": []})
    assert page["notes"] == ["a note"]


@pytest.mark.parametrize("report", ["traffic", "sizes"])
def test_the_page_of_every_report_says_what_its_readers_should_know(tmp_path: Path, report: str) -> None:
    folder = RunFolder(tmp_path)
    kinds = {"topic": pa.string(), "hour": pa.timestamp("s"), "kind": pa.string()}
    names = [column.name for column in REPORTS[report].columns]
    table = pa.table({name: pa.array([], kinds.get(name, pa.int64())) for name in names})
    spec = RunSpec(report=report, data=str(tmp_path), begin_ms=0, end_ms=1)
    results.write_results(folder, table, spec, notes=["a note"], facts=["the lake keeps five days"])
    page = folder.page()
    assert page is not None
    assert (page["notes"], page["facts"]) == (["a note"], ["the lake keeps five days"])


@pytest.mark.parametrize("run_id", ["", "..", "../../etc", "20261121T120000Z-0a1b2c/..", "20261121T120000Z-0A1B2C"])
def test_a_run_id_that_could_leave_the_folder_is_refused(tmp_path: Path, run_id: str) -> None:
    """S53."""
    with pytest.raises(ReportError, match="is not a run id"):
        RunFolder.in_data(tmp_path, run_id)


def test_a_run_folder_gives_back_what_was_asked(tmp_path: Path) -> None:
    folder = RunFolder.in_data(tmp_path, new_run_id())
    spec = RunSpec(report="traffic", data="d", begin_ms=1, end_ms=2, topics=("a",), conf={"k": "v"})
    folder.write_spec(spec)
    assert folder.spec() == spec
    assert (folder.status(), folder.progress(), folder.page()) == (None, None, None)
    with pytest.raises(ReportError, match="no result as"):
        folder.result("exe")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"report": "x"}, "unknown"),
        ({"end_ms": 1}, "empty"),
        ({"timeout_s": 0}, "greater than 0"),
        ({"zone": "Nowhere"}, "time zone"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(change: dict[str, object], sentence: str) -> None:
    """S50."""
    values = {"report": "traffic", "data": "d", "begin_ms": 1, "end_ms": 2} | change
    with pytest.raises(ReportError, match=sentence):
        RunSpec(**values)


def test_the_page_of_any_report_stays_small_and_its_chart_whole() -> None:
    every = [
        {
            "day": str(date(2026, 1, 1) + timedelta(days=day)),
            "group": f"g{group:02}",
            "cause": "E",
            "retried": 1 + group,
        }
        | {"dead_letters": 0, "attempts_max": 1}
        for day in range(results.CHART_BARS + 50)
        for group in range(results.CHART_TOPICS + 3)
    ]
    page = results.table_page_of(REPORTS["retries"], every)
    assert (len(page["rows"]), page["row_count"]) == (results.PAGE_ROWS, len(every))
    assert page["rows"][: results.CHART_TOPICS + 3] == every[-results.CHART_TOPICS - 3 :], (
        "the newest day is seen first"
    )
    assert page["chart"]["x"] == [
        row["day"] for row in every[-results.CHART_BARS * (results.CHART_TOPICS + 3) :: results.CHART_TOPICS + 3]
    ]
    assert [series["name"] for series in page["chart"]["series"]][:2] == ["g10", "g09"]
    assert page["chart"]["series"][-1] == {"name": None, "count": 3, "values": [1 + 2 + 3] * results.CHART_BARS}
    assert results.table_page_of(REPORTS["days"], [])["chart"] == {"x": [], "series": []}


def test_of_groups_that_share_a_bar_the_worst_is_drawn_and_an_hour_without_a_sample_is_a_hole() -> None:
    seen = [
        {"hour": f"2026-10-25 {hour}", "group": f"g{group:02}", "behind_seconds": late + group}
        for hour, late in (("01:00", 100.0), ("03:00", 200.0))
        for group in range(results.CHART_TOPICS + 3)
    ]
    seen[2]["behind_seconds"] = None
    chart = results.table_page_of(REPORTS["lag"], seen, "Europe/Berlin")["chart"]
    assert chart["x"] == [
        "2026-10-25 01:00", "2026-10-25 02:00 +02:00", "2026-10-25 02:00 +01:00", "2026-10-25 03:00",
    ]  # fmt: skip
    assert chart["series"][0] == {"name": "g10", "values": [110.0, None, None, 210.0]}
    assert chart["series"][-1] == {"name": None, "count": 3, "values": [101.0, None, None, 202.0]}


def test_a_chart_of_many_hosts_has_the_busiest() -> None:
    hosts = [{"host": f"10.0.{at >> 8}.{at & 255}", "messages": 1000 - at} for at in range(results.CHART_BARS + 50)]
    page = results.table_page_of(REPORTS["producers"], hosts)
    assert page["chart"]["x"] == [row["host"] for row in hosts[: results.CHART_BARS]]
    assert page["rows"] == hosts


def test_every_report_has_a_transform_and_every_chart_its_columns() -> None:
    pytest.importorskip("pyspark")
    from appliance.reports.transforms import TRANSFORMS

    assert set(TRANSFORMS) == set(REPORTS)
    for report in REPORTS.values():
        names = {column.name for column in report.columns}
        assert {report.chart.x, report.chart.y, report.chart.series or report.chart.x} <= names
        assert len(report.name) <= 16
