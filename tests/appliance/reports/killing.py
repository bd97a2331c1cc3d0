"""Reading a log into a lake without Spark, in a process of its own that is killed at a certain point."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))
RANGE_BYTES = 1 << 14


def have_tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker of Spark would do is done here, and every second range is committed."""
    from appliance.reports import lake_writer
    from appliance.reports.runner import ingest

    monkeypatch.setattr(ingest, "run_on_a_worker", lambda spark, function, value: function(value))
    monkeypatch.setattr(lake_writer, "COMMIT_BYTES", 2 * RANGE_BYTES)


def killed_at(point: int, folder: Path, run: Callable[[Callable[[], None]], None]) -> bool:
    """Whether `run` was killed: it calls what it is given before each step, and dies before that one."""
    folder.mkdir(parents=True)
    outcome = folder / "outcome"
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        said = outcome.read_text() if outcome.exists() else ""
        assert said in ("", "done")
        return not said
    calls = itertools.count()

    def step() -> None:
        if next(calls) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        run(step)
        outcome.write_text("done")
    except BaseException as failure:
        outcome.write_text(repr(failure))
    finally:
        os.kill(os.getpid(), signal.SIGKILL)  # it must not go on as a second pytest
    raise AssertionError("a killed process runs on")
