"""gantrymq/log_limit.py: which repeated log lines are written, and how many are reported as left out."""

from __future__ import annotations

import pytest

from gantrymq.log_limit import KEYS_MAX, LINES_MAX, WINDOW_S, LogLimit
from tests.waiting import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


def test_what_was_left_out_is_told_with_the_next_line(clock: Clock) -> None:
    limit = LogLimit(clock=clock)
    told = [limit.left_out("e", "a") for _ in range(LINES_MAX + 7)]
    assert told == [0] * LINES_MAX + [None] * 7
    assert limit.allows("e", "b")
    assert limit.allows("other", "a")
    clock.now += WINDOW_S
    assert limit.left_out("e", "a") == 7


def test_the_limit_itself_is_bounded() -> None:
    limit = LogLimit()
    for number in range(20_000):
        assert limit.allows("e", str(number))
    assert len(limit._counts) <= KEYS_MAX


def test_lines_are_counted_by_kind_and_window(clock: Clock) -> None:
    limit = LogLimit(clock=clock)
    assert [limit.allows("a") for _ in range(LINES_MAX + 2)] == [True] * LINES_MAX + [False] * 2
    assert limit.allows("b")
    clock.now += WINDOW_S - 0.1
    assert limit.end_windows() == {}
    clock.now += 0.1
    assert limit.end_windows() == {"a": 2}
    assert limit.end_windows() == {}
    assert limit.allows("a")
    assert [limit.allows("a") for _ in range(LINES_MAX)].count(False) == 1
    assert limit.end_windows() == {}
    assert limit.end_windows(at_end=True) == {"a": 1}


def test_windows_of_one_kind_are_added_up_over_addresses(clock: Clock) -> None:
    limit = LogLimit(clock=clock)
    for number in range(2 * LINES_MAX):
        limit.left_out("e", f"address {number % 2}")
        limit.left_out("e", "flood")
    assert limit.end_windows(at_end=True) == {"e": LINES_MAX}
