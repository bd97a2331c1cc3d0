"""A process with a Spark session that computes one report after the other; seen from the process that owns it.

The child is the leader of a session, which also contains its JVM and its Python workers, so that all of them can be
killed together. The environment must be complete before Java starts, so it is built here. The child reads lines: first
its settings, then folders of runs. It answers each folder with its exit code, and says when it takes no other one
because its session may be hurt. When its input ends, so does it.

What it says, and what its JVM says, goes to one file; the part that belongs to a run is copied to the run's log.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from appliance.reports.java import Java
from appliance.reports.runs import RunFolder, lock_of_work
from appliance.reports.sessions.class_archive import ClassArchive

PROJECT_ROOT = Path(__file__).resolve().parents[3]
EXECUTORS_PYTHON = "spark.pyspark.python"  # Spark's own setting, which it reads from the environment only
GRACE_S = 3.0  # between SIGTERM and SIGKILL
ENDING_S = 30.0  # for a child whose input has ended
ARCHIVING_S = 300.0  # for one that also writes the class archive, at the lowest priority of a busy machine
ENDING = "ending"  # after the exit code of the last run that the child takes: its own end may take a while
LOG_BYTES_MAX = 4 << 20  # of a run's part of the log


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionSettings:
    """What a session can't change later. `java_options`: of its JVM, beside those that session.py sets.

    priority, cores: as runner/giving_way.py has them.
    """

    master: str
    driver_memory: str
    conf: Mapping[str, str] = field(default_factory=dict)
    java_options: str = ""
    priority: str = "low"
    cores: int = 0


class SparkProcess:
    """One child. `run` it as often as it `is_usable`, then `close` it; nothing of it is left then."""

    def __init__(self, work_folder: Path, settings: SessionSettings, java: Java, archive: ClassArchive) -> None:
        self.settings = settings
        self._archive = archive
        self._stack = contextlib.ExitStack()
        self._work_folder = work_folder
        self._stack.enter_context(lock_of_work(work_folder))
        self._stack.callback(shutil.rmtree, work_folder, ignore_errors=True)
        self._log_path = work_folder / "session.log"
        self._logged_bytes = 0
        self._is_asked = False
        is_local = settings.master.startswith("local")
        variables = environment(java, work_folder, archive.conf_folder, local=is_local, base=os.environ)
        if EXECUTORS_PYTHON in settings.conf:
            variables["PYSPARK_PYTHON"] = settings.conf[EXECUTORS_PYTHON]
        log: IO[bytes] = self._stack.enter_context(self._log_path.open("ab"))
        self._child = subprocess.Popen(
            [sys.executable, "-m", "appliance.reports.runner.jobs", str(work_folder)],
            cwd=work_folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        self._tell(json.dumps(asdict(settings)))

    @property
    def is_usable(self) -> bool:
        return self._child.poll() is None and not self._is_asked

    def run(self, folder: RunFolder, timeout_s: float) -> int | None:
        """The run's exit code; None: it took too long, and the process was killed."""
        self._is_asked = True
        try:
            self._tell(str(folder.path))
            answer = self._answer(time.monotonic() + timeout_s)
            if answer is None:
                self._kill()
                return None
            if not answer.strip():  # it has died
                return self._child.wait()
            exit_code, *words = answer.decode().split()
            self._is_asked = words == [ENDING]
            return int(exit_code)
        finally:
            self._copy_log(folder)

    def close(self, *, at_once: bool = False) -> None:
        """End it: kindly when it waits for work, else at once."""
        try:
            if self.is_usable and not at_once:
                assert self._child.stdin is not None
                with contextlib.suppress(BrokenPipeError):
                    self._child.stdin.close()
                self._child.wait(timeout=ARCHIVING_S if self._archive.is_wanted_in(self.settings) else ENDING_S)
        except subprocess.TimeoutExpired:
            pass  # killed below
        finally:
            self._kill()
            self._stack.close()

    def _tell(self, line: str) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then the answer is missing, too
            self._child.stdin.write(line.encode() + b"\n")
            self._child.stdin.flush()

    def _answer(self, until: float) -> bytes | None:
        """A line; empty when the child has died, None when the time is up."""
        assert self._child.stdout is not None
        poll = select.poll()
        poll.register(self._child.stdout, select.POLLIN)
        answer = b""
        while not answer.endswith(b"\n"):
            left_s = until - time.monotonic()
            if left_s <= 0 or not poll.poll(left_s * 1000):
                return None
            part = os.read(self._child.stdout.fileno(), 100)
            if not part:
                return b""
            answer += part
        return answer

    def _kill(self) -> None:
        """End the child and all of its session: the JVM may outlive its Python, and a worker both of them."""
        if self._child.poll() is None:
            _kill_group(self._child)
        kill_session(self._child.pid)
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _copy_log(self, folder: RunFolder) -> None:
        with self._log_path.open("rb") as log, folder.log_path.open("ab") as copy:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._logged_bytes, end - LOG_BYTES_MAX))
            copy.write(log.read(LOG_BYTES_MAX))
            self._logged_bytes = end


def environment(
    java: Java, work_folder: Path, conf_folder: Path, *, local: bool, base: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a process with a Spark session."""
    variables = {name: value for name, value in base.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    paths = [str(PROJECT_ROOT), *filter(None, [base.get("PYTHONPATH")])]
    variables |= {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,  # workers would take `python3` from PATH
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),  # workers don't see this process's sys.path
        "SPARK_LOCAL_DIRS": str(work_folder),
        "SPARK_CONF_DIR": str(conf_folder),  # instead of a machine-wide Spark configuration
        "TMPDIR": str(work_folder),
    }
    if local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"  # else a host name that does not resolve stops Spark
    return variables


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


def kill_session(session_id: int) -> None:
    """Kill the rest of the child's session. Spark's Python daemon leaves the process group, but not the session."""
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if pid != os.getpid() and os.getsid(pid) == session_id:
                os.kill(pid, signal.SIGKILL)
