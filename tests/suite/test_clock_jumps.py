"""A clock that jumps is still a clock: it goes forward, is the same again, and does not run away."""

from __future__ import annotations

import threading
import time

import pytest

from tests.suite.clock_jumps import AT_ONCE_NS, LONG_NS, LOST_PER_PASSED, OPTION, JumpingClock, _seed_of


def test_it_jumps_and_never_goes_back_in_any_thread() -> None:
    clock = JumpingClock("1")
    readings: list[list[int]] = [[], [], []]

    def read(mine: list[int]) -> None:
        mine.extend(clock.monotonic_ns() for _ in range(300))

    threads = [threading.Thread(target=read, args=(mine,)) for mine in readings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in readings)
    assert clock.jumps > 10
    assert clock.monotonic() * 1e9 >= max(map(max, readings))


def test_a_test_gets_the_same_jumps_again() -> None:
    def lost(name: str) -> list[int]:
        clock.begin(name)
        before = clock.lost_ns
        found = []
        for _ in range(200):
            clock.monotonic_ns()
            found.append(clock.lost_ns - before)
        return found

    clock = JumpingClock("1")
    assert lost("test_a") == lost("test_a") != lost("test_b")


def test_no_more_is_lost_than_on_a_machine_with_three_times_its_work() -> None:
    began = time.perf_counter_ns()
    clock = JumpingClock("1")
    for _ in range(20_000):
        clock.monotonic_ns()
    lost_at_most = AT_ONCE_NS + LOST_PER_PASSED * (time.perf_counter_ns() - began)
    assert AT_ONCE_NS - LONG_NS <= clock.lost_ns <= lost_at_most


@pytest.mark.parametrize("command", [["-q", f"{OPTION}=7"], [OPTION, "7", "-q"]])
def test_the_seed_is_read_from_the_command(command: list[str]) -> None:
    assert _seed_of(command) == "7"
    assert _seed_of(["-q"]) is None
