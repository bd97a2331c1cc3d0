"""What goes to the executors of a cluster is all that a task needs, beside numpy and pyarrow."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext

from appliance.reports.java import Java
from appliance.reports.session import death_of_java, pack_code
from appliance.reports.sessions.spark_process import environment
from tests.appliance.reports.stores import Record, write_log
from tests.servers.own_names import require_own_names, with_names
from tests.waiting import WITHIN_S

ROOT = Path(__file__).parents[3]


class _Gateway:
    """Py4J's, as far as the process of its JVM goes."""

    def __init__(self, program: str) -> None:
        self.proc = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)


@pytest.fixture
def living(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Gateway]:
    gateway = _Gateway("import sys; sys.exit(len(sys.stdin.read()))")
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    yield gateway
    gateway.proc.kill()
    gateway.proc.communicate()


def test_the_death_of_the_jvm_is_told_in_words_and_its_life_is_not(living: _Gateway) -> None:
    assert death_of_java() == ""
    living.proc.kill()
    said = death_of_java(WITHIN_S)
    assert "killed by signal 9" in said and "out of memory" in said and "report_memory" in said


def test_a_jvm_that_ended_by_itself_is_told_with_its_exit_code(living: _Gateway) -> None:
    living.proc.communicate(b"abc")
    assert "exit code 3" in death_of_java(WITHIN_S)


def test_a_jvm_that_does_not_start_is_told_in_words(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho no room for the heap >&2\nexit 1\n")
    java.chmod(0o700)
    begin = (
        "from pathlib import Path; from appliance.reports.session import create_session; "
        "create_session(Path.cwd(), master='local[1]', driver_memory='1g', conf={})"
    )
    variables = {**os.environ, "JAVA_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", begin], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert "ReportError: Spark's Java process ended before it was ready" in ended.stderr
    assert "no room for the heap" in ended.stderr  # which the run's log keeps


@pytest.mark.parametrize(("folder", "said"), [(".", "sum 90"), ("./" + "long" * 20, "/etc/hosts")])
def test_a_session_counts_where_localhost_does_not_resolve(
    java: Java, tmp_path_factory: pytest.TempPathFactory, folder: str, said: str
) -> None:
    """As in a root without /etc/hosts; where Spark's sockets would have too long a name, the error says what to do."""
    require_own_names()
    work = tmp_path_factory.mktemp("w")
    count = (
        "from pathlib import Path; from appliance.reports.session import create_session; "
        f"session = create_session(Path({folder!r}).resolve(), master='local[1]', driver_memory='512m', conf={{}}); "
        "print('sum', session.sparkContext.parallelize(range(10), 2).map(lambda number: 2 * number).sum())"
    )
    variables = environment(java, work, work, local=True, base=os.environ)
    command = [*with_names(work, ""), sys.executable, "-c", count]
    done = subprocess.run(command, cwd=work, env=variables, capture_output=True, text=True, check=False)
    assert said in done.stdout + done.stderr


def test_without_a_jvm_none_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert death_of_java() == ""


def test_a_task_runs_from_what_is_shipped_without_the_checkout(tmp_path: Path) -> None:
    log = tmp_path / "commitlog"
    *_, end = write_log(log, [Record()] * 7)
    (tmp_path / "lake").mkdir()
    code = f"""
import sys
sys.path[:0] = [{str(pack_code(tmp_path))!r}]
from pathlib import Path
from appliance.reports.lake import range_reader
from appliance.reports.lake.place import Place
from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.log_ranges import ranges_of
assert ".zip" in range_reader.__file__
(pieces,) = ranges_of(CommitLogFiles([Path({str(log)!r})]).files(), 0, {end}, range_bytes=1 << 20)
target = range_reader.Target(Place(Path({str(tmp_path / "lake")!r})), "broker-a")
(stretch,) = range_reader.copy_range(pieces, target).stretches
print(sum(file.rows for file in stretch.files), "pyspark" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, timeout=WITHIN_S
    )
    assert done.stdout == "7 False\n", done.stderr
