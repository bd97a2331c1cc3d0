"""How a run leaves the machine to the brokers: its priority, its cores, and pauses while requests wait there.

Priority and cores hold for Spark's processes and threads too, which inherit them. Of the disk the kernel gives a nice
process its turn later, and one of the idle class when no other wants it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from appliance.reports.runs import is_pause_asked

NICE = 10
LOW, IDLE = "low", "idle"
PAUSE_S_MAX = 30.0  # before one job: a run goes on with brokers that are always busy, only more slowly
LOOK_EACH_S = 0.25


def give_way(priority: str, cores: int) -> None:
    """Take the priority, and stay on the last `cores` of this process's cores; 0: on all but one, where there are two.

    A core without a run keeps a broker's latency: it need not wait for what the kernel does for a run.
    """
    os.nice(NICE)
    if priority == IDLE:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    own = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, own[-(cores or max(1, len(own) - 1)) :])


def wait_while_busy(data: Path, until: float) -> float:
    """Wait while a pause is asked for, but not for long, nor beyond the steady clock's `until`. Seconds waited."""
    began = time.monotonic()
    end = min(until, began + PAUSE_S_MAX)
    while is_pause_asked(data) and time.monotonic() < end:
        time.sleep(LOOK_EACH_S)
    return time.monotonic() - began
