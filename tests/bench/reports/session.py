"""`gantry report serve` as a child of the benchmark: reports are asked for, and what they take is seen from outside."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from gantrymq.errors import GantryError

CHECKOUT = Path(__file__).parents[3]
LOOK_EACH_S = 1.0
TIMEOUT_S = 36_000.0  # of a run; as much is never meant


def command(data: Path) -> list[str]:
    """What is started."""
    return [sys.executable, "-m", "appliance", "report", "serve", "--data", str(data), "--timeout", str(TIMEOUT_S)]


class ReportFailed(GantryError):
    """A run that was to be measured did not succeed; the text is its error."""


class Run(NamedTuple):
    """`wall_s` and `cpu_s` of the first run of a session have its start in them."""

    report: str
    wall_s: float
    cpu_s: float  # of all processes of the session
    rows: int
    ingested_rows: int
    seconds: dict[str, float]  # session, ingest, report
    memory_bytes: int = 0  # of all processes together at most, as seen each second; what they share counts once


class ReportSession:
    """One process with one Spark session. Use as a context manager."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._began, self._cpu_s = time.monotonic(), 0.0
        with (data / "serve.log").open("ab") as log:
            self._process = subprocess.Popen(
                command(data),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=data,  # no gantry.toml of another folder
                env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            )

        self._cpu = CostOfAll(self._process.pid)

    def __enter__(self) -> ReportSession:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """It ends in its own time: what it writes then makes the next start faster. After a failure at once."""
        assert self._process.stdin is not None and self._process.stdout is not None
        if failure is not None:
            self._process.terminate()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def end_at_once(self) -> None:
        """Have the process stop, whatever it does; from any thread. A run that is waited for raises ReportFailed."""
        self._process.terminate()

    def run(self, report: str, begin_ms: int, end_ms: int) -> Run:
        """Compute a report, with all that is new in the log. Raises ReportFailed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        asked = {"run_id": "", "report": report, "begin_ms": begin_ms, "end_ms": end_ms}
        with contextlib.suppress(BrokenPipeError):  # then there is no answer
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        while not select.select([self._process.stdout], [], [], LOOK_EACH_S)[0]:
            self._cpu.look()
        now, cpu_s = time.monotonic(), self._cpu.look()
        line = self._process.stdout.readline()
        if not line:
            raise ReportFailed(f"gantry report serve has ended; see {self._data / 'serve.log'}")
        status = self._status(json.loads(line)["run_id"])
        run = Run(
            report,
            now - self._began,
            cpu_s - self._cpu_s,
            status["rows"],
            status["ingested_rows"],
            status["seconds"],
            self._cpu.take_memory(),
        )
        self._began, self._cpu_s = now, cpu_s
        return run

    def _status(self, run_id: str) -> dict[str, Any]:
        path = self._data / "reports" / "runs" / run_id / "status.json"
        status: dict[str, Any] = json.loads(path.read_bytes())
        if status["state"] != "succeeded":
            raise ReportFailed(f"a run is {status['state']}: {status['error']}")
        return status


class CostOfAll:
    """CPU seconds and memory of a process and of all below it, the ended ones too, as far as a look has seen them.

    Spark's Python daemon does not wait for its workers, so their time is in no parent's.
    """

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._seen: dict[psutil.Process, float] = {}
        self._memory_bytes = 0

    def look(self) -> float:
        memory_bytes = 0
        with contextlib.suppress(psutil.NoSuchProcess):
            for each in (self._process, *self._process.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
                    self._seen[each] = sum(each.cpu_times()[:2])
                    memory_bytes += each.memory_full_info().pss
        self._memory_bytes = max(self._memory_bytes, memory_bytes)
        return sum(self._seen.values())

    def take_memory(self) -> int:
        """The most memory since the last time."""
        taken, self._memory_bytes = self._memory_bytes, 0
        return taken
