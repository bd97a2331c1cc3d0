"""How long timer is: what a clock shows is not what a process could have used."""

from __future__ import annotations

import os

from appliance.supervisor.hang_timer import CpuWait, HangTimer


def test_a_process_that_could_have_spoken_and_did_not_is_silent() -> None:
    timer = HangTimer(0.25)
    for _ in range(8):
        timer.tick(0.25, 0.0)
    assert timer.silent_s == 2.0
    timer.reset()
    assert timer.silent_s == 0.0


def test_an_hour_in_which_the_watcher_stood_still_itself_is_one_tick() -> None:
    timer = HangTimer(0.25)
    timer.tick(3600.0, 0.0)
    assert timer.silent_s == 0.25


def test_time_without_a_core_does_not_count() -> None:
    timer = HangTimer(0.25)
    timer.tick(0.25, 0.2)
    timer.tick(0.25, 9.0)
    assert abs(timer.silent_s - 0.05) < 1e-9


def test_the_kernel_tells_what_a_process_waits_for_a_core() -> None:
    waits = CpuWait(os.getpid())
    assert waits.since_last_s(1.0) in (0.0, 1.0)  # 1.0: a thread of ours just waits for the disk
    assert waits.since_last_s(1.0) >= 0.0
    assert CpuWait(2**22 + 1).since_last_s(1.0) == 0.0  # no such process
