"""How long silence is: what a clock shows is not what a process could have used."""

from __future__ import annotations

import os

from appliance.supervisor.hang_timer import CoreWait, Silence


def test_a_process_that_could_have_spoken_and_did_not_is_silent() -> None:
    silence = Silence(0.25)
    for _ in range(8):
        silence.tick(0.25, 0.0)
    assert silence.counted_s == 2.0
    silence.heard()
    assert silence.counted_s == 0.0


def test_an_hour_in_which_the_watcher_stood_still_itself_is_one_tick() -> None:
    silence = Silence(0.25)
    silence.tick(3600.0, 0.0)
    assert silence.counted_s == 0.25


def test_time_without_a_core_does_not_count() -> None:
    silence = Silence(0.25)
    silence.tick(0.25, 0.2)
    silence.tick(0.25, 9.0)
    assert abs(silence.counted_s - 0.05) < 1e-9


def test_the_kernel_tells_what_a_process_waits_for_a_core() -> None:
    waits = CoreWait(os.getpid())
    assert waits.since_last_s(1.0) in (0.0, 1.0)  # 1.0: a thread of ours just waits for the disk
    assert waits.since_last_s(1.0) >= 0.0
    assert CoreWait(2**22 + 1).since_last_s(1.0) == 0.0  # no such process
