"""One lane's numbers: how long it is, how long requests waited, and its limits."""

from __future__ import annotations

import time
from typing import Any

import pytest

from appliance.process.fair_queue import UsageTable
from appliance.remoting.lane import Lane, LaneLimits, Turn


def test_requests_that_wait_or_run_make_its_size() -> None:
    lane = Lane("send", LaneLimits(10))
    assert lane.size == 0
    queued: Any = (None, None, None, None)
    lane.queue.extend([queued, queued])
    lane.running = 3
    assert lane.size == 5


def test_the_oldest_request_says_how_long_one_waits() -> None:
    lane = Lane("send", LaneLimits(10))
    assert lane.head_wait_ms() == 0, "nothing waits"
    for age_s in (2.0, 1.0):
        turn = Turn(UsageTable().open("127.0.0.1"))
        turn.arrived = time.monotonic() - age_s
        queued: Any = (turn, None, None, None)
        lane.queue.append(queued)
    assert 2000 <= lane.head_wait_ms() < 62_000


def test_peaks_are_told_once_and_begin_again_at_what_is_there() -> None:
    lane = Lane("send", LaneLimits(10))
    lane.running = 2
    lane.size_peak, lane.wait_peak = 7, 0.25
    assert lane.take_peaks() == (7, 250)
    assert lane.take_peaks() == (2, 0)


@pytest.mark.parametrize(("wait_ms_max", "seconds"), [(200, 0.2), (0, 0.0), (None, float("inf"))])
def test_limits_change_and_what_waits_stays(wait_ms_max: int | None, seconds: float) -> None:
    lane = Lane("send", LaneLimits(10))
    queued: Any = (None, None, None, None)
    lane.queue.append(queued)
    lane.set_limits(LaneLimits(3, wait_ms_max, 1000))
    assert (lane.capacity, lane.wait_seconds_max, lane.queued_bytes_max) == (3, seconds, 1000)
    assert lane.size == 1
