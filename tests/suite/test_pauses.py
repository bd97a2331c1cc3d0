"""Pauses reach processes of this run only, and leave none of them standing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from tests.machine import RUN_VARIABLE
from tests.suite.pauses import processes_of_run, stand_still


@pytest.fixture
def process() -> Iterator[psutil.Process]:
    """It belongs to this run, and waits to be told to end."""
    command = [sys.executable, "-S", "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()  # its environment can be read now
        yield psutil.Process(started.pid)
        started.kill()


def test_processes_of_this_run_are_found_and_no_others(process: psutil.Process) -> None:
    folder = os.environ[RUN_VARIABLE]
    assert process in processes_of_run(folder, but=set())
    assert process not in processes_of_run(folder, but={process.pid})
    assert processes_of_run(f"{folder}-other", but=set()) == []


def test_a_process_stands_and_goes_on(process: psutil.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    monkeypatch.setattr("tests.suite.pauses.time.sleep", lambda _: seen.append(waits_until_stopped(process)))
    stand_still(process, 0.1)
    assert seen == [True]
    assert os.WIFCONTINUED(os.waitpid(process.pid, os.WCONTINUED)[1])


def test_what_a_test_stopped_stays_stopped(process: psutil.Process) -> None:
    process.suspend()
    assert waits_until_stopped(process)
    stand_still(process, 0.1)
    assert os.waitpid(process.pid, os.WCONTINUED | os.WNOHANG) == (0, 0)
    assert process.status() == psutil.STATUS_STOPPED


def waits_until_stopped(process: psutil.Process) -> bool:
    """A signal takes its time; a process that ends instead was not stopped."""
    return os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
