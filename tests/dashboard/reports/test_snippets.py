"""The lines for DuckDB and notebooks that a page offers, each run over two lakes with files that don't count."""

from __future__ import annotations

import json
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

NOON = 1_795_262_400_000
RUN_ID = "20261121T130000Z-00ff00"
COUNTED = {"orders": (3, 30), "it's": (1, 10)}  # messages, bytes


def table(rows: list[tuple[str, int]]) -> Any:
    import pyarrow as pa

    names = {"topic": [row[0] for row in rows], "store_timestamp": [row[1] for row in rows]}
    return pa.table({**names, "size_bytes": pa.array([10] * len(rows), pa.int32())})


@pytest.fixture
def run(tmp_path: Path) -> ReportRun:
    """A run over the lakes of two brokers: an entry, one that takes files out, and a file that no entry names."""
    pq = pytest.importorskip("pyarrow.parquet", reason="the report stack is not installed")
    contents = {
        "broker-a": {
            "data/a.parquet": [("orders", NOON), ("orders", NOON + 1), ("late", NOON + HOUR_MS)],
            "data/gone.parquet": [("gone", NOON)],
            "data/unlisted.parquet": [("unlisted", NOON)],
        },
        "broker-b": {"data/a.parquet": [("orders", NOON), ("it's", NOON)]},
    }
    for broker, files in contents.items():
        lake = tmp_path / "reports" / "lake" / broker
        (lake / "_log").mkdir(parents=True)
        (lake / "data").mkdir()
        for name, rows in files.items():
            pq.write_table(table(rows), lake / name)
        listed = [{"path": name} for name in files if "unlisted" not in name]
        (lake / "_log" / f"{0:020}.json").write_text(json.dumps({"op": "append", "add": listed}))
    removal = {"op": "compact", "add": [], "remove": ["data/gone.parquet"]}
    (tmp_path / "reports" / "lake" / "broker-a" / "_log" / f"{1:020}.json").write_text(json.dumps(removal))
    result = RunFolder.in_data(tmp_path, RUN_ID).result("parquet", "sizes")
    result.parent.mkdir(parents=True)
    pq.write_table(table([("orders", NOON)]), result)
    return ReportRun(run_id=RUN_ID, report="sizes", begin_ms=NOON, end_ms=NOON + HOUR_MS, topics=[], zone="UTC")


def sql_of(line: str) -> str:
    program, option, sql = shlex.split(line)
    assert (program, option) == ("duckdb", "-c")
    return sql


def test_the_line_for_duckdb_counts_what_the_manifests_list(run: ReportRun, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    line, _ = snippets(run, tmp_path)
    rows = duckdb.connect().sql(sql_of(line.text)).fetchall()
    assert {topic: (messages, stored) for topic, messages, stored in rows} == COUNTED
    run.topics = ["it's"]
    line, _ = snippets(run, tmp_path)
    assert duckdb.connect().sql(sql_of(line.text)).fetchall() == [("it's", 1, 10)]


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
    assert "manifest" not in notebook.text and "pq.read_table" in notebook.text
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
    duckdb = pytest.importorskip("duckdb")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "reports" / "lake").rename(elsewhere / "lake")
    line, _ = snippets(run, tmp_path, str(elsewhere))
    assert len(duckdb.connect().sql(sql_of(line.text)).fetchall()) == len(COUNTED)
    line, notebook = snippets(run, tmp_path, "s3://bucket/history?region=eu-west-1")
    assert "read_json('s3://bucket/history/lake/*/_log/*.json'" in sql_of(line.text)
    assert "bucket" not in notebook.text


def test_the_line_for_s3_says_where_the_server_is_and_no_key(run: ReportRun, tmp_path: Path) -> None:
    """Run by hand against a server of S3 it counted what the report did. DuckDB's module for S3 comes as no wheel."""
    line, _ = snippets(run, tmp_path, "s3://bucket/history?region=eu-west-1")
    secret, _, rest = sql_of(line.text).partition(";")
    assert secret == "CREATE SECRET gantry (TYPE s3, PROVIDER credential_chain, REGION 'eu-west-1')"
    assert rest.strip().startswith("SET VARIABLE files")
    own = "s3://bucket/history?endpoint_override=127.0.0.1:9000&scheme=http"
    line, _ = snippets(run, tmp_path, own)
    assert "ENDPOINT '127.0.0.1:9000', URL_STYLE 'path', USE_SSL false)" in sql_of(line.text)


def test_of_a_lake_in_hdfs_the_result_alone_is_offered(run: ReportRun, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    line, notebook = snippets(run, tmp_path, "hdfs://127.0.0.1:8020/history")
    assert len(duckdb.connect().sql(sql_of(line.text)).fetchall()) == 1
    assert "hdfs://" not in line.text + notebook.text
