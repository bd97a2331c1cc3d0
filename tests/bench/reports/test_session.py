"""The benchmark's session of reports, with a program in place of `gantry report serve` that answers as that does."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bench.reports import session as session_module
from tests.bench.reports.measure import Measured, Taken
from tests.bench.reports.session import ReportFailed, ReportSession, Run
from tests.bench.reports.table import render

ANSWERING = """
import json, pathlib, sys, time
for number, line in enumerate(sys.stdin):
    asked = json.loads(line)
    if asked["report"] == "none":
        sys.exit(1)
    folder = pathlib.Path("reports/runs", str(number))
    folder.mkdir(parents=True)
    while time.process_time() < 0.1 * (number + 1):
        pass
    state = "failed" if asked["report"] == "broken" else "succeeded"
    status = {"state": state, "error": "no such luck", "rows": 3, "ingested_rows": 7, "seconds": {"report": 0.5}}
    (folder / "status.json").write_text(json.dumps(status))
    print(json.dumps({"run_id": str(number), "state": state}), flush=True)
"""


def test_a_run_is_measured_from_outside_and_one_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "command", lambda data: [sys.executable, "-c", ANSWERING])
    with ReportSession(tmp_path) as session:
        first, second = session.run("traffic", 0, 1), session.run("days", 0, 1)
        assert (first.report, first.rows, first.ingested_rows, first.seconds) == ("traffic", 3, 7, {"report": 0.5})
        assert first.cpu_s >= 0.09 and first.wall_s > 0 and second.wall_s > 0
        assert first.cpu_s + second.cpu_s >= 0.18
        with pytest.raises(ReportFailed, match="a run is failed: no such luck"):
            session.run("broken", 0, 1)
        with pytest.raises(ReportFailed, match=r"has ended; see .*serve\.log"):
            session.run("none", 0, 1)


def test_a_session_that_is_ended_at_once_fails_the_run_that_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "command", lambda data: [sys.executable, "-c", "import sys; sys.stdin.read()"])
    with ReportSession(tmp_path) as session, ThreadPoolExecutor(1) as pool:
        run = pool.submit(session.run, "traffic", 0, 1)
        session.end_at_once()
        with pytest.raises(ReportFailed, match="has ended"):
            run.result()


def test_the_table_has_a_column_for_each_size() -> None:
    run = Run("traffic", 2.0, 3.0, 5, 1000, {"ingest": 0.5, "report": 0.25})
    first = run._replace(cpu_s=5.0)
    small = Measured(1000, 1 << 20, 1 << 20, Taken(0.1, 0.2), run, first, {"traffic": run}, run, Taken(0.01, 0.02))
    text = render([small, small._replace(messages=2000, duckdb=None, start=None)])
    lines = text.splitlines()
    assert lines[1].split() == ["messages", "1,000", "2,000"]
    assert len({len(line) for line in lines[1:]}) == 1
    assert "2000.00" in next(line for line in lines if "CPU us a message" in line)  # 2 s more for 1 000 messages
    assert next(line for line in lines if line.startswith("very first start")).split()[-1] == "-"
    assert "not installed" in next(line for line in lines if "DuckDB" in line)
    assert json.loads(json.dumps(small.as_json()))["warm traffic"]["rows"] == 5
