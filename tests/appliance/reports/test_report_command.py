"""`gantry report` as its own process: results on disk, exit code as status, nothing left when it is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.cli.report import rows_of, spark_conf
from appliance.reports.catalogue import Column, Kind
from appliance.reports.errors import ReportError
from appliance.reports.java import Java
from appliance.reports.runs import RunFolder
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
RUN_ID = "20261121T120000Z-0a1b2c"
WITHIN_S = 280.0  # a run alone takes 13 s, and was seen to take 97 where many others wanted the cores

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "brokers" / "broker-a"
    write_log(
        folder / "store" / "commitlog",
        [Record(topic=topic, stored_at=NOON + hour * HOUR_MS) for topic in ("orders", "=cmd()") for hour in range(3)],
    )
    (folder / "broker.properties").write_text("brokerName=shop-a\n")
    return tmp_path


def command(data: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "appliance", "report", "traffic", "--data", str(data), "--run-id", RUN_ID,
        "--from", "2026-11-21", "--to", "2026-11-22", "--driver-memory", "512m", *more,
    ]  # fmt: skip


def processes_of(data: Path) -> list[str]:
    """Command lines of processes that work in or on the data folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            folder = str((entry / "cwd").readlink())
        except OSError:
            continue
        if str(data) in line or folder.startswith(str(data)):
            found.append(line)
    return found


def left_behind(data: Path) -> list[str]:
    """Those that are still there after a while: what a killed JVM was just starting ends by itself, a moment later."""
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not processes_of(data), WITHIN_S)
    return processes_of(data)


def test_a_run_leaves_its_results_and_no_process(java: Java, data: Path) -> None:
    """Although one of two brokers can't be read: then the run is done, and incomplete."""
    damaged = data / "brokers" / "broker-b"
    offsets = write_log(damaged / "store" / "commitlog", [Record()] * 500, file_bytes=1 << 14)
    with (damaged / "store" / "commitlog" / f"{0:020}").open("r+b") as file:
        file.seek(offsets[3])
        file.write(bytes(8))
    (damaged / "broker.properties").write_text("brokerName=shop-b\n")
    done = subprocess.run(command(data), cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S, umask=0o022)
    assert done.returncode == 3, done.stderr
    assert f"at physical offset {offsets[3]} are damaged and not counted" in done.stderr
    made = list((data / "reports").rglob("*"))
    assert any(path.suffix == ".parquet" for path in made)
    assert [path for path in made if path.stat().st_mode & 0o077] == []  # others could read history there
    assert "505 messages" in done.stdout, "only the damaged one is not counted"
    folder = RunFolder.in_data(data, RUN_ID)
    status = folder.status()
    assert status is not None
    assert (status.state, status.rows, status.ingested_rows, status.exit_code) == ("incomplete", 6, 505, 0)
    rows = json.loads(folder.result("json").read_bytes())["rows"]
    assert rows[0] == {
        "hour": "2026-11-21T12:00:00Z", "topic": "=cmd()", "kind": "normal",
        "messages": 1, "stored_bytes": 102, "body_bytes": 5,
    }  # fmt: skip
    lines = folder.result("csv").read_text().splitlines()
    assert lines[0] == '"hour","topic","kind","messages","stored_bytes","body_bytes"'
    assert lines[1] == '"2026-11-21T12:00:00Z","\'=cmd()","normal",1,102,5'
    assert folder.result("parquet").is_file()
    assert not list((data / "reports" / "work").iterdir())
    assert (data / "reports" / "delta" / "messages" / "_delta_log").is_dir()
    assert left_behind(data) == []


def test_a_run_that_takes_too_long_is_killed_with_everything_it_started(java: Java, data: Path) -> None:
    """S52."""
    limit = command(data, "--timeout", "3")  # enough to start Java, too little for a report on any machine
    done = subprocess.run(limit, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode == 124
    assert "took longer than 3 s" in done.stderr
    status = RunFolder.in_data(data, RUN_ID).status()
    assert status is not None and status.state == "timeout"
    assert left_behind(data) == []


@pytest.mark.parametrize(("number", "graceful"), [(signal.SIGTERM, True), (signal.SIGKILL, False)])
def test_a_stopped_launcher_takes_its_run_with_it(java: Java, data: Path, number: int, graceful: bool) -> None:
    """S52."""
    launcher = subprocess.Popen(command(data), cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_until(
        lambda: launcher.poll() is not None or any("java" in line.split(" ", 1)[0] for line in processes_of(data)),
        WITHIN_S,
    )
    assert launcher.poll() is None
    launcher.send_signal(number)
    assert launcher.wait(timeout=WITHIN_S) == (130 if graceful else -number)
    assert left_behind(data) == []
    status = RunFolder.in_data(data, RUN_ID).status()
    assert (status is not None and status.state == "cancelled") if graceful else status is None


def test_a_wrong_java_fails_the_run_and_says_which_setting_is_wrong(java: Java, tmp_path: Path) -> None:
    environment = {**os.environ, "GANTRY_JAVA_HOME": str(tmp_path / "none")}
    done = subprocess.run(
        command(tmp_path), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WITHIN_S
    )
    assert done.returncode == 1
    assert "the setting: " in done.stderr
    status = RunFolder.in_data(tmp_path, RUN_ID).status()
    assert status is not None and status.state == "failed"


@pytest.mark.parametrize(
    ("setting", "conf"),
    [
        ("", {}),
        (
            "spark.jars=a.jar,b.jar, spark.executor.memory=2g",
            {"spark.jars": "a.jar,b.jar", "spark.executor.memory": "2g"},
        ),
        ("spark.x=y=z", {"spark.x": "y=z"}),
    ],
)
def test_a_setting_of_spark_may_hold_commas(setting: str, conf: dict[str, str]) -> None:
    assert spark_conf(setting, []) == conf
    assert spark_conf(setting, ["spark.y=1,2"]) == conf | {"spark.y": "1,2"}
    for wrong in ("spark.x", "executor.memory=2g", "spark.x="):
        with pytest.raises(ReportError, match="is not a setting of Spark"):
            spark_conf(wrong, [])


def test_a_line_that_asks_for_no_run_is_refused(java: Java, tmp_path: Path) -> None:
    serve = [sys.executable, "-m", "appliance", "report", "serve", "--data", str(tmp_path)]
    done = subprocess.run(serve, input="nonsense\n", cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode == 1 and "asks for no run" in done.stderr


def test_rows_are_aligned_with_shares_in_percent_and_a_dash_for_what_is_not_known() -> None:
    columns: tuple[Column, ...] = (Column("host", "Host", Kind.TEXT), Column("n", "Messages"))
    columns = (*columns, Column("c", "Change", Kind.CHANGE))
    rows = [{"host": "10.0.0.1", "n": 12_345, "c": 0.5}, {"host": "a", "n": 1, "c": None}]
    columns = (*columns, Column("s", "Share", Kind.SHARE), Column("t", "Last", Kind.TIME))
    assert rows_of(columns, [row | {"s": 0.256, "t": 86_400_000} for row in rows]) == [
        "HOST      MESSAGES  CHANGE  SHARE  LAST",
        "10.0.0.1    12,345  +50.0%  25.6%  1970-01-02 00:00:00",
        "a                1  -       25.6%  1970-01-02 00:00:00",
    ]
