"""A worker leaves out the reports that say nothing, and no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_configure
from tests.machine import WORKER_VARIABLE
from tests.source_files import ROOT
from tests.suite import reports

TESTS = """
import pytest

@pytest.fixture
def broken():
    raise OSError

@pytest.fixture
def left():
    yield
    raise OSError

@pytest.fixture
def absent():
    pytest.skip("not here")

def test_good(): pass
def test_bad(): assert False
def test_of_broken(broken): pass
def test_of_left(left): pass
def test_of_absent(absent): pass
"""


def test_a_run_tells_of_all_that_failed_or_was_skipped_in_whatever_part(tmp_path: Path) -> None:
    module = tmp_path / "test_parts.py"
    module.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "-rA", "-p", "no:cacheprovider", "-p", "no:django"]
    done = subprocess.run(
        [*command, "-p", "tests.suite.reports", str(module)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    *_, last = done.stdout.splitlines()
    assert "1 failed, 2 passed, 1 skipped, 2 errors" in last, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("when", "outcome", "duration", "is_told"),
    [
        ("call", "passed", 0.0, True),
        ("setup", "passed", 0.004, False),
        ("teardown", "passed", 0.0, False),
        ("setup", "passed", 0.005, True),
        ("setup", "skipped", 0.0, True),
        ("teardown", "failed", 0.0, True),
    ],
)
def test_what_passed_at_once_is_told_by_the_test_alone(
    when: Any, outcome: Any, duration: float, *, is_told: bool
) -> None:
    report = pytest.TestReport("a", ("a", 0, "a"), {}, outcome, None, when, duration=duration)
    assert reports.is_told(report) is is_told


@pytest.mark.parametrize(
    ("worker", "file", "leaves_out"), [("gw1", None, True), ("", None, False), ("gw1", "x", False)]
)
def test_workers_leave_them_out_unless_a_file_is_to_have_all(
    monkeypatch: pytest.MonkeyPatch, worker: str, file: str | None, *, leaves_out: bool
) -> None:
    monkeypatch.setenv(WORKER_VARIABLE, worker)
    monkeypatch.setenv("GANTRY_TEST_LONG", "1/4")  # which the function sets
    monkeypatch.setattr("appliance.bench.processes.PORTS", SimpleNamespace(keep_share=lambda *_: None))
    options = {"--long": False, "--long-part": "1/4", "xmlpath": file}
    registered: list[object] = []
    manager = SimpleNamespace(register=registered.append)
    config: Any = SimpleNamespace(getoption=lambda name, *_: options[name], pluginmanager=manager)
    pytest_configure(config)
    assert registered == [reports] * leaves_out
