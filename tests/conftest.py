"""What every test may lean on: tools that may be missing, and settings for a Django that touches nothing outside.

A tool the machine lacks is a skip on a developer's machine and a failure in CI, where `CI=true` says that `.ci/run`
has installed everything: a check that quietly stops running is worse than one that fails.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from pathlib import Path

import pytest

import tests.machine  # noqa: F401  # before any test, whether Django's settings were first or not

PRESSURE_PERCENT_MAX = 15.0  # of the time that somebody had to wait


def missing(what: str, reason: str) -> None:
    """Skip this test aloud because `what` is missing; in CI fail instead. Does not return."""
    sentence = f"{what} is missing: {reason}"
    if _is_ci():
        pytest.fail(f"{sentence} (CI installs everything it needs)", pytrace=False)
    pytest.skip(sentence)


def time_limit(seconds: float) -> float:
    """`seconds`, and six times as many while the machine is busy with other things: then a clock proves little."""
    return seconds * 6 if is_busy() else seconds


def is_busy() -> bool:
    """Whether who wants a core or the disk has to wait for it: the load of a minute, and the kernel's pressure of 10 s.

    The first alone is too slow: processes that come in bursts are over before it has noticed.
    """
    if os.getloadavg()[0] > 0.75 * (os.cpu_count() or 1):
        return True
    return any(_pressure(what) > PRESSURE_PERCENT_MAX for what in ("cpu", "io"))


def _pressure(what: str) -> float:
    """Percent of the last ten seconds in which somebody waited; 0 where the kernel does not tell."""
    try:
        text = Path("/proc/pressure", what).read_text(encoding="ascii")
    except OSError:  # also a kernel that was started without it
        return 0.0
    return float(text.partition("avg10=")[2].partition(" ")[0] or 0)


def require_tool(name: str, reason: str) -> Path:
    """The path of the program `name`; without it the test skips on a developer's machine and fails in CI."""
    found = shutil.which(name)
    if found is None:
        missing(name, reason)
    assert found is not None
    return Path(found)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz-seconds", default="60", help="seconds that tests/fuzz take in all (default 60)")
    parser.addoption("--fuzz-seed", default="1", help="where the seeds of tests/fuzz begin (default 1)")


def pytest_configure() -> None:
    """A run that is told to end cleans up as one that is interrupted: mounts, processes, folders."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def pytest_sessionstart() -> None:
    """Modules of tests that import what an extra brings skip themselves without it; in CI that must not happen."""
    absent = [name for name in ("numpy", "pyarrow", "pyspark", "selenium") if importlib.util.find_spec(name) is None]
    if absent and _is_ci():
        raise pytest.UsageError(f"CI installs everything it needs, but not {', '.join(absent)}")


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"
