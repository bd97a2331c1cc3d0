"""How a run leaves the machine to the brokers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from appliance.reports.runner.giving_way import NICE, wait_while_busy
from appliance.reports.runs import PAUSE_S, ask_for_pause, is_pause_asked

SEEN = """
import json, os, sys
from appliance.reports.runner.giving_way import give_way
before = os.nice(0)
give_way(sys.argv[1], int(sys.argv[2]))
print(json.dumps([os.nice(0) - before, os.sched_getscheduler(0) == os.SCHED_IDLE, sorted(os.sched_getaffinity(0))]))
"""


@pytest.mark.parametrize(("priority", "cores"), [("low", 0), ("low", 1), ("idle", 0)])
def test_a_run_takes_its_priority_and_stays_on_its_cores(priority: str, cores: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEEN, priority, str(cores)], capture_output=True, text=True, check=True
    )
    own = sorted(os.sched_getaffinity(0))
    more, is_idle, on = json.loads(done.stdout)
    assert more == min(NICE, 19 - os.nice(0)) and is_idle == (priority == "idle")
    assert on == (own[-1:] if cores else own[1:] or own)


def test_a_pause_holds_while_it_is_asked_for_and_not_for_ever(tmp_path: Path) -> None:
    ask_for_pause(tmp_path)
    assert not is_pause_asked(tmp_path), "nothing has ever run there"
    (tmp_path / "reports").mkdir()
    assert wait_while_busy(tmp_path, time.monotonic() + 3600) < 3600
    ask_for_pause(tmp_path)
    assert is_pause_asked(tmp_path)
    assert wait_while_busy(tmp_path, time.monotonic()) < PAUSE_S, "the run's time is up"
    waited = wait_while_busy(tmp_path, time.monotonic() + 3600)
    assert waited > 0 and not is_pause_asked(tmp_path), "who asked has died"
    os.utime(tmp_path / "reports" / "pause", (time.time() + 3600, time.time() + 3600))
    assert not is_pause_asked(tmp_path), "a clock was set back"
