"""What a run of tests takes over from the machine it runs on: as little as can be. To be imported before all else.

Settings that somebody has for an appliance of theirs (GANTRY_…, ROCKETMQ_HOME) don't reach the tests;
GANTRY_TEST_FAST_PATH=off, on or sanitize is GANTRY_FAST_PATH for all that they start. Whatever asks for
a temporary file, browsers and tools too, gets it in a folder of this run, which is gone when the run ends; what a
killed run could not remove, the next one does.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import tests.suite.clock_jumps  # noqa: F401  # before anything of ours keeps a clock

# What is meant for the tests themselves: see the README of tests/interop, and the conftests.
OURS = re.compile(r"GANTRY_(INTEROP|CRASH|WRITE|SHRINK|TEST|BENCH)(_|$)")
FOREIGN = re.compile(r"GANTRY(MQ)?_|ROCKETMQ_|NAMESRV_ADDR$|MQ_|DJANGO_|SPARK_|PYSPARK_")
RUN_VARIABLE = "GANTRY_TEST_RUN"
WORKER_VARIABLE = "PYTEST_XDIST_WORKER"  # set in the processes that share a parallel run
PREFIX = "gantry-tests-"
LEFT_BEHIND_S = 6 * 3600.0  # no run takes so long, not even one in another container that shares the folder


def isolate() -> None:
    """Once in a process that runs tests; one that it starts belongs to it, even if it reads the tests' settings.

    A worker of a parallel run gets a folder inside the run's folder, so that workers share no files.
    """
    worker = os.environ.get(WORKER_VARIABLE, "")
    if RUN_VARIABLE in os.environ:
        run = Path(os.environ[RUN_VARIABLE])
        if worker and run.name != worker:
            _take(run / worker)
        return
    for name in [name for name in os.environ if FOREIGN.match(name) and not OURS.match(name)]:
        if name != "DJANGO_SETTINGS_MODULE":  # pytest-django has just put it there
            del os.environ[name]
    if fast_path := os.environ.get("GANTRY_TEST_FAST_PATH"):
        os.environ["GANTRY_FAST_PATH"] = fast_path
    parent = Path(tempfile.gettempdir())
    _remove_what_killed_runs_left(parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # pytest's own folder stays where it was, because what a failed test left there is worth a look.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(parent))
    _take(folder)


def _take(folder: Path) -> None:
    """Make `folder` the place of this process and its children for everything temporary."""
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    os.environ[RUN_VARIABLE] = str(folder)
    os.environ["GANTRY_DATA"] = str(folder / "data")
    (folder / "data").mkdir(mode=0o700)


def _remove_what_killed_runs_left(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            status = folder.stat()
            is_old = time.time() - status.st_mtime > LEFT_BEHIND_S
            if is_old and status.st_uid == os.geteuid() and not (owner.isdigit() and Path("/proc", owner).exists()):
                shutil.rmtree(folder, ignore_errors=True)


isolate()
