"""The lines for DuckDB and notebooks that a page offers, each run over a lake with files that don't count."""

from __future__ import annotations

import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import RequestFactory

from appliance.reports.runs import HOUR_MS, RunFolder
from dashboard.models.reports import ReportRun
from dashboard.reports.snippets import run_commands, snippets
from tests.appliance.reports.lakes import with_delta_scan

NOON = 1_795_262_400_000
RUN_ID = "20261121T130000Z-00ff00"
COUNTED = {"orders": (3, 30), "it's": (1, 10)}  # messages, bytes


def table(rows: list[tuple[str, int]]) -> Any:
    import pyarrow as pa

    times = pa.array([row[1] * 1000 for row in rows]).cast(pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "broker_name": ["broker-a"] * len(rows),
            "topic": [row[0] for row in rows],
            "store_timestamp": times,
            "size_bytes": pa.array([10] * len(rows), pa.int32()),
        }
    )


@pytest.fixture
def run(tmp_path: Path) -> ReportRun:
    """A run over a lake with files that it lists, one that was taken out, and one that it never listed."""
    pq = pytest.importorskip("pyarrow.parquet", reason="the report stack is not installed")
    deltalake = pytest.importorskip("deltalake", reason="the report stack is not installed")
    lake = tmp_path / "reports" / "delta" / "messages"
    deltalake.write_deltalake(lake, table([("gone", NOON)]))
    deltalake.DeltaTable(lake).delete("topic = 'gone'")
    for rows in (
        [("orders", NOON), ("orders", NOON + 1), ("late", NOON + HOUR_MS)],
        [("orders", NOON), ("it's", NOON)],
    ):
        deltalake.write_deltalake(lake, table(rows), mode="append")
    pq.write_table(table([("unlisted", NOON)]), lake / "unlisted.parquet")
    result = RunFolder.in_data(tmp_path, RUN_ID).result("parquet", "sizes")
    result.parent.mkdir(parents=True)
    pq.write_table(table([("orders", NOON)]).drop_columns("store_timestamp"), result)
    return ReportRun(run_id=RUN_ID, report="sizes", begin_ms=NOON, end_ms=NOON + HOUR_MS, topics=[], zone="UTC")


def sql_of(line: str) -> str:
    program, option, sql = shlex.split(line)
    assert (program, option) == ("duckdb", "-c")
    return sql


def test_the_line_for_duckdb_counts_what_the_lake_lists(run: ReportRun, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    line, _ = snippets(run, tmp_path)
    rows = with_delta_scan(sql_of(line.text))
    assert {topic: (messages, stored) for topic, messages, stored in rows} == COUNTED
    run.topics = ["it's"]
    line, _ = snippets(run, tmp_path)
    assert with_delta_scan(sql_of(line.text)) == [("it's", 1, 10)]


def test_the_program_for_a_notebook_runs_and_counts_the_same(run: ReportRun, tmp_path: Path) -> None:
    _, notebook = snippets(run, tmp_path)
    ended = subprocess.run([sys.executable, "-c", notebook.text], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    head, *lines = ended.stdout.splitlines()
    assert sorted(lines) == sorted(f"{topic} {messages} {stored}" for topic, (messages, stored) in COUNTED.items())
    assert "'topic': 'orders'" in head


def test_a_report_of_samples_offers_its_result_alone(run: ReportRun, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    old = RunFolder.in_data(tmp_path, RUN_ID).result("parquet", "sizes")
    run.report = "lag"
    old.rename(old.with_name("lag.parquet"))
    line, notebook = snippets(run, tmp_path)
    assert len(duckdb.connect().sql(sql_of(line.text)).fetchall()) == 1
    assert "DeltaTable" not in notebook.text and "pq.read_table" in notebook.text
    compile(notebook.text, "notebook", "exec")


def test_the_same_run_from_a_shell_has_its_range_topics_and_zone(run: ReportRun) -> None:
    run.topics, run.zone = ["a b"], "Europe/Berlin"
    line, curl = run_commands(RequestFactory().get("/"), run)
    moment = datetime.fromtimestamp(NOON / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert shlex.split(line)[:5] == ["gantry", "report", "sizes", "--from", moment]
    assert "--topic 'a b' --zone Europe/Berlin" in line
    assert "/api/v1/reports/runs" in curl and '"zone": "Europe/Berlin"' in curl and moment in curl
    run.report = "ingest"
    assert run_commands(RequestFactory().get("/"), run) == []


def test_the_line_reads_the_lake_where_it_is(run: ReportRun, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "reports" / "delta").rename(elsewhere / "delta")
    line, _ = snippets(run, tmp_path, str(elsewhere))
    assert len(with_delta_scan(sql_of(line.text))) == len(COUNTED)
    line, notebook = snippets(run, tmp_path, "s3://bucket/history?region=eu-west-1")
    assert "delta_scan('s3://bucket/history/delta/messages')" in sql_of(line.text)
    assert "bucket" not in notebook.text


def test_the_line_for_s3_says_where_the_server_is_and_no_key(run: ReportRun, tmp_path: Path) -> None:
    """Run by hand against a server of S3 it counted what the report did. DuckDB's module for S3 comes as no wheel."""
    line, _ = snippets(run, tmp_path, "s3://bucket/history?region=eu-west-1")
    secret, _, rest = sql_of(line.text).partition(";")
    assert secret == "CREATE SECRET gantry (TYPE s3, PROVIDER credential_chain, REGION 'eu-west-1')"
    assert rest.strip().startswith("SELECT topic")
    own = "s3://bucket/history?endpoint_override=127.0.0.1:9000&scheme=http"
    line, _ = snippets(run, tmp_path, own)
    assert "ENDPOINT '127.0.0.1:9000', URL_STYLE 'path', USE_SSL false)" in sql_of(line.text)


def test_of_a_lake_in_hdfs_the_result_alone_is_offered(run: ReportRun, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    line, notebook = snippets(run, tmp_path, "hdfs://127.0.0.1:8020/history")
    assert len(duckdb.connect().sql(sql_of(line.text)).fetchall()) == 1
    assert "hdfs://" not in line.text + notebook.text
