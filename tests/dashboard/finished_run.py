"""A report run that has finished, with the files it leaves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from appliance.reports.runs import HOUR_MS, RunFolder, write_json
from dashboard.models.reports import ReportRun
from dashboard.reports.runs.queue import enqueue
from tests.appliance.reports.stores import NOON

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
NASTY = "</script><img src=x onerror=alert(1)>"


def result_of(run: ReportRun, data: Path) -> RunFolder:
    """The files that a finished run leaves."""
    folder = RunFolder.in_data(data, run.run_id)
    folder.path.mkdir(parents=True)
    row = {"hour": "2026-11-21T12:00:00Z", "topic": NASTY, "kind": "normal"}
    numbers = {"messages": 1234, "stored_bytes": 2048, "body_bytes": 1024}
    page = {
        "begin_ms": NOON, "end_ms": NOON + HOUR_MS, "topic_count": 1, "row_count": 1, **numbers,
        "busiest_hour": {"hour": row["hour"], "messages": 1234}, "topics": [{**row, **numbers, "hours": 1}],
        "rows": [{**row, **numbers}], "notes": ["broker-a: 7 bytes of the log were deleted"],
        "chart": {"hours": [row["hour"]], "series": [{"topic": NASTY, "messages": [1234]}]},
    }  # fmt: skip
    write_json(folder.path / "page.json", page)
    folder.result("csv").write_text('"hour","topic"\n"2026-11-21T12:00:00Z","\'=evil"\n')
    return folder


async def finished_run(data: Path) -> ReportRun:
    run = await enqueue("traffic", 1, requested_by=None, now=NOW)
    result_of(run, data)
    run.state, run.rows, run.ingested_rows = ReportRun.State.SUCCEEDED, 1, 1234
    run.started_at, run.finished_at = NOW, NOW + timedelta(seconds=13)
    await run.asave()
    return run
