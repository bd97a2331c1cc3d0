"""Runs one report as a process of its own, with a time limit; its exit code decides about success.

The child is the leader of a session, which also contains its JVM and its Python workers, so that all of them can be
killed together. The environment must be complete before Java starts, so it is built here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance.reports.errors import JavaNotFound
from appliance.reports.java import Java, find_java
from appliance.reports.runs import RunFolder, RunSpec, RunStatus, remove_work_of_the_dead

PROJECT_ROOT = Path(__file__).resolve().parents[2]
EXECUTORS_PYTHON = "spark.pyspark.python"  # Spark's own setting, which it reads from the environment only
GRACE_S = 3.0  # between SIGTERM and SIGKILL


class Cancelled(Exception):
    """The launcher got SIGTERM or SIGINT."""


def launch(folder: RunFolder, spec: RunSpec) -> RunStatus:
    """Run the report, wait for its end, write and return its status. A failed run raises nothing."""
    remove_work_of_the_dead(Path(spec.data))
    with folder.held():
        return _launch(folder, spec)


def _launch(folder: RunFolder, spec: RunSpec) -> RunStatus:
    folder.write_spec(spec)
    folder.write_progress("starting", "Looking for Java")
    started_at = time.time()
    try:
        java = find_java(Path(spec.data) / "reports" / "jre", setting=spec.java_home or None)
    except JavaNotFound as failure:
        return _ended(folder, RunStatus(
            state="failed", started_at=started_at, finished_at=time.time(), exit_code=None, error=str(failure)
        ))  # fmt: skip
    folder.work_path.mkdir(parents=True, exist_ok=True)
    try:
        state, exit_code = _run_child(folder, spec, java)
    finally:
        shutil.rmtree(folder.work_path, ignore_errors=True)
    outcome = _outcome(folder)
    if state == "succeeded" and outcome.get("missing"):
        state = "incomplete"
    return _ended(
        folder,
        RunStatus(
            state=state,
            started_at=started_at,
            finished_at=time.time(),
            exit_code=exit_code,
            rows=outcome.get("rows", 0),
            ingested_rows=sum(item["rows"] for item in outcome.get("ingest", ())),
            ingest=tuple(outcome.get("ingest", ())),
            seconds=outcome.get("seconds", {}),
            error=_error(state, exit_code, spec, outcome),
        ),
    )


def environment(java: Java, work_folder: Path, *, local: bool, base: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process with a Spark session."""
    variables = {name: value for name, value in base.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    paths = [str(PROJECT_ROOT), *filter(None, [base.get("PYTHONPATH")])]
    variables |= {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,  # workers would take `python3` from PATH
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),  # workers don't see this process's sys.path
        "SPARK_LOCAL_DIRS": str(work_folder),
        "SPARK_CONF_DIR": str(work_folder),  # instead of a machine-wide Spark configuration
        "TMPDIR": str(work_folder),
    }
    if local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"  # else a host name that does not resolve stops Spark
    return variables


def _run_child(folder: RunFolder, spec: RunSpec, java: Java) -> tuple[str, int | None]:
    """State and exit code."""
    variables = environment(java, folder.work_path, local=spec.master.startswith("local"), base=os.environ)
    if EXECUTORS_PYTHON in spec.conf:
        variables["PYSPARK_PYTHON"] = spec.conf[EXECUTORS_PYTHON]
    with folder.log_path.open("ab") as log, _stop_signals_raise():
        child = subprocess.Popen(
            [sys.executable, "-m", "appliance.reports.jobs", str(folder.path)],
            cwd=folder.work_path,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            exit_code = child.wait(timeout=spec.timeout_s)
        except subprocess.TimeoutExpired:
            return "timeout", _kill_group(child)
        except Cancelled:
            return "cancelled", _kill_group(child)
        finally:
            _kill_rest(child.pid)  # the JVM may outlive its Python, and a worker both of them
    return ("succeeded" if exit_code == 0 else "failed"), exit_code


def _kill_group(child: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM to the group, and SIGKILL after GRACE_S. Returns the exit code."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    try:
        return child.wait(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        return child.wait()


def _kill_rest(session_id: int) -> None:
    """Kill the rest of the child's session. Spark's Python daemon leaves the process group, but not the session."""
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if pid != os.getpid() and os.getsid(pid) == session_id:
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def _stop_signals_raise() -> Iterator[None]:
    """While inside, SIGTERM and SIGINT raise Cancelled, so that the run's group is killed before this process ends."""

    def stop(signum: int, frame: object) -> None:
        raise Cancelled

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _outcome(folder: RunFolder) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads((folder.path / "outcome.json").read_bytes())
    except FileNotFoundError:
        return {}
    return value


def _error(state: str, exit_code: int | None, spec: RunSpec, outcome: Mapping[str, Any]) -> str:
    if state == "succeeded":
        return ""
    if state == "incomplete":
        return "; ".join(outcome["missing"])
    if state == "timeout":
        return f"the run took longer than {spec.timeout_s:g} s and was killed; give it more time or a shorter range"
    if state == "cancelled":
        return "the run was stopped before it ended"
    return str(outcome.get("error") or f"the process ended with exit code {exit_code}; see the end of run.log")


def _ended(folder: RunFolder, status: RunStatus) -> RunStatus:
    folder.write_status(status)
    return status
