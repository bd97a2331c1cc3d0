"""A process is its number and its start time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from appliance.process.process_identity import (
    children_of,
    identity,
    is_of_same_boot,
    is_running,
    is_same,
    kill_same,
    new_session,
    start_ticks,
)
from tests.waiting import WITHIN_S


def test_a_number_that_somebody_else_has_by_now_is_not_the_same_process_and_gets_no_signal() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        ticks = start_ticks(process.pid)
        assert ticks is not None and is_same(process.pid, ticks)
        assert process.pid in children_of(os.getpid())
        kill_same(process.pid, ticks - 1, signal.SIGKILL)  # who had this number before started earlier
        assert process.poll() is None
        kill_same(process.pid, ticks, signal.SIGKILL)
        assert process.wait(WITHIN_S) == -signal.SIGKILL
    assert start_ticks(process.pid) is None


def test_a_session_tells_whether_another_process_that_has_it_still_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        ticks = start_ticks(process.pid)
        assert ticks is not None
        assert is_running(f"{identity(process.pid, ticks)}/a")
        assert not is_running(f"{identity(process.pid, ticks - 1)}/a")
        assert not is_running(f"another {identity(process.pid, ticks)}/a")
        process.kill()
    assert not is_running(f"{identity(process.pid, ticks)}/a")
    assert not any(map(is_running, (new_session(), "", "/a", "boot/ns/x/1/a")))


def test_a_process_that_has_ended_and_is_not_reaped_yet_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert start_ticks(process.pid) is None


def test_sessions_tell_whether_their_processes_are_of_one_machine_since_its_boot() -> None:
    assert is_of_same_boot(new_session(), new_session())
    assert not is_of_same_boot("boot/ns/1/2/a", "boot two/ns/1/2/a")
    assert not is_of_same_boot("/a", "/b")  # neither could tell
