"""Where a group is heading: rates between two looks, the direction of its lag, its state, the time to zero."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dashboard.cluster.group_values import GroupPlace, GroupSummary
from dashboard.groups.trend import (
    HISTORY_EACH_S,
    HISTORY_MAX,
    LASTING_STEPS,
    STUCK_S,
    Direction,
    State,
    direction,
    retries,
    seconds_to_zero,
    state,
    watched,
)
from dashboard.status.board import WatchedGroup

NOW = 10_000.0


def look(lag: int, done: int = 1000, *, members: int = 1, **changes: object) -> GroupSummary:
    place = GroupPlace("orders", "broker-a", done, lag, lag * 100)
    return replace(GroupSummary("g", lag, lag * 100, members=members, places=(place,)), **changes)  # type: ignore[arg-type]


def seen(*looks: GroupSummary, each_s: float = 10.0) -> WatchedGroup:
    """The group after these looks, the last of them at NOW."""
    group = None
    for number, row in enumerate(looks):
        group = watched(row, group, NOW - each_s * (len(looks) - 1 - number))
    assert group is not None
    return group


def headed(looks: Sequence[GroupSummary], each_s: float) -> list[Direction]:
    """The direction at each of these looks."""
    group: WatchedGroup | None = None
    headings = []
    for at, row in enumerate(looks):
        group = watched(row, group, NOW + each_s * at)
        headings.append(direction(group))
    return headings


def test_rates_begin_with_two_looks_and_follow_within_a_minute() -> None:
    first = seen(look(50, done=1000))
    assert (first.in_rate, first.out_rate, first.history) == (None, None, ((NOW, 50),))
    second = seen(look(50, done=1000), look(70, done=1100))
    assert (second.out_rate, second.in_rate) == (10.0, 12.0)
    burst = seen(look(0, done=0), look(0, done=100), look(0, done=1000))
    assert burst.out_rate is not None and 50.0 < burst.out_rate < 60.0, "each look counts for its time"
    late = seen(*[look(0, done=0)] * 7, look(0, done=900))
    assert late.out_rate is not None and 10.0 < late.out_rate < 30.0, "one look is no minute"
    minutes = seen(look(0, done=0), look(0, done=1000), *[look(0, done=1000)] * 60)
    assert minutes.out_rate == 0.0, "what is left of a rate that ended long ago is nothing"
    moved_back = seen(look(50, done=1000), look(1050, done=0))
    assert (moved_back.out_rate, moved_back.in_rate) == (None, 0.0)
    waiting = GroupPlace("%RETRY%g", "broker-a", 7, 3, 5)
    later = watched(look(53, places=(*look(50).places, replace(waiting, lag=9))),
                    watched(look(53, places=(*look(50).places, waiting)), None, NOW - 10), NOW)  # fmt: skip
    assert (later.in_rate, retries(later)) == (0.0, 9), "a retry is nothing new"


def test_a_lag_rises_until_it_is_steady_and_a_look_at_one_broker_alone_changes_nothing() -> None:
    growing = [look(100 * number) for number in range(1, 5)]
    assert seen(growing[0]).rising_since is None
    assert seen(*growing).rising_since == NOW - 20, "from the first look that found it greater"
    half = look(10, is_partial=True)
    assert seen(*growing, half).rising_since == NOW - 30
    assert seen(*growing, half, look(500)).rising_since == NOW - 40
    assert seen(*growing, *[look(400)] * 8).rising_since is None
    assert seen(*growing, look(90)).rising_since is None


@pytest.mark.parametrize(
    ("lags", "heading", "doing", "zero_s"),
    [
        ((100,), Direction.UNKNOWN, State.STEADY, None),
        ((100, 200), Direction.GROWING, State.FALLING_BEHIND, None),
        ((200, 100), Direction.SHRINKING, State.CATCHING_UP, 10.0),
        ((300, 200, 100), Direction.SHRINKING, State.CATCHING_UP, 10.0),
        ((100, 0), Direction.SHRINKING, State.UP_TO_DATE, 0.0),
        ((0, 2), Direction.STEADY, State.STEADY, None),
    ],
)
def test_the_last_minute_decides(lags: tuple[int, ...], heading: Direction, doing: State, zero_s: float | None) -> None:
    group = seen(*(look(lag, done=1000 + at) for at, lag in enumerate(lags)))
    assert (direction(group), state(group), seconds_to_zero(group)) == (heading, doing, zero_s)


def test_a_lag_is_steady_by_what_arrived_meanwhile_however_large_it_is() -> None:
    """A group that consumed a third of its messages was called steady once it was half an hour behind."""
    even = seen(*(look(1000 + 10 * at, done=10_000 * at) for at in range(7)))
    assert (direction(even), state(even)) == (Direction.STEADY, State.STEADY)
    losing = seen(*(look(1_000_000 + 80 * at, done=40 * at) for at in range(7)))
    assert (direction(losing), state(losing)) == (Direction.GROWING, State.FALLING_BEHIND)


def test_a_group_that_loses_a_little_of_much_falls_behind() -> None:
    """1.9 % of 10 000 a second are 684 000 an hour, which was steady for ever."""
    looks = [look(500_000 + 1900 * at, done=98_100 * at) for at in range(180)]
    headings = headed(looks, each_s=10.0)
    assert set(headings[1:48]) == {Direction.STEADY}, "no few minutes say how long it lasts"
    assert set(headings[60:]) == {Direction.GROWING}, "within ten minutes, and as long as it loses"
    losing = seen(*looks)
    assert state(losing) is State.FALLING_BEHIND and len(losing.minutes) == LASTING_STEPS + 1
    assert losing.rising_since is not None and NOW - losing.rising_since >= 1200.0
    assert direction(seen(*(replace(one, lag_ms=9000) for one in looks))) is Direction.STEADY
    ended = [*looks, *(look(840_100 - 9000 * at, done=20_000_000 + 100_000 * at) for at in range(7))]
    assert direction(seen(*ended)) is Direction.SHRINKING, "at once"
    small = seen(*(replace(look(20 + at % 2, done=200 * at), lag_ms=2600) for at in range(7)))
    assert (direction(small), state(small)) == (Direction.STEADY, State.STEADY)


@pytest.mark.parametrize("spread", [0.01, 0.02])
@pytest.mark.parametrize("rho", [0.9, 0.95, 0.98])
def test_noise_that_lasts_longer_than_a_look_is_no_growth(rho: float, spread: float) -> None:
    """A lag of 20 s that wanders was called growing at every fifth look."""
    chance, noise, looks = random.Random(f"{rho} {spread}"), 0.0, []
    for at in range(5000):
        noise = rho * noise + chance.gauss(0.0, spread * 200_000 * math.sqrt(1 - rho * rho))
        looks.append(look(200_000 + round(noise), done=50_000 * at, lag_ms=20_000))
    headings = headed(looks, each_s=5.0)
    assert headings.count(Direction.GROWING) < len(headings) / 100


def test_a_lag_of_a_few_seconds_is_no_falling_behind_however_it_grows() -> None:
    group = seen(*(look(lag, done=lag) for lag in (10, 20, 30, 40)))
    assert (direction(group), group.lag_ms, state(group)) == (Direction.STEADY, 4000, State.STEADY)


def test_a_lag_that_jumps_about_has_no_direction_and_one_that_climbs_has() -> None:
    jumping = seen(*(look(200 + change, done=at) for at, change in enumerate((0, 80, -60, 90, -70, 60))))
    assert jumping.lag == 260 and (direction(jumping), state(jumping)) == (Direction.STEADY, State.STEADY)
    climbing = seen(*(look(200 + 30 * at + change, done=at) for at, change in enumerate((0, 5, -6, 4, -3, 5))))
    assert (direction(climbing), state(climbing)) == (Direction.GROWING, State.FALLING_BEHIND)


def test_a_group_that_broadcast_stays_so_while_it_has_no_members() -> None:
    """What brokers have of it is of a time when its members shared the queues: it is no lag, and no alarm."""
    casting = GroupSummary("g", members=2, why="each keeps its own", is_broadcasting=True)
    group = seen(casting, look(50, members=0))
    assert (state(group), group.lag, group.places, group.alone_since) == (State.BROADCASTING, None, (), None)
    assert group.why == "each keeps its own"
    back = seen(casting, look(50, members=0), look(50))
    assert (back.is_broadcasting, back.lag) == (False, 50)


def test_what_keeps_it_from_consuming_comes_first() -> None:
    growing = (look(100), look(200))
    assert state(seen(*growing)) is State.FALLING_BEHIND
    assert state(seen(growing[0], replace(growing[1], is_suspended=True))) is State.HELD_BACK
    assert state(seen(growing[0], replace(growing[1], members=0))) is State.NO_MEMBERS
    assert state(seen(look(0, members=0))) is State.OFFLINE
    assert state(seen(replace(look(5), members=None))) is State.UNKNOWN
    assert state(seen(replace(look(5), lag=None))) is State.UP_TO_DATE


def test_a_group_that_takes_nothing_while_messages_wait_is_stuck_after_a_while() -> None:
    assert state(seen(look(9), look(9), each_s=STUCK_S - 1)) is State.STEADY
    assert state(seen(look(9), look(9), each_s=STUCK_S)) is State.STUCK
    assert state(seen(look(9), look(9, done=1001), each_s=STUCK_S)) is State.STEADY
    assert state(seen(look(9), look(9), look(9, done=1001), look(9, done=1001))) is State.STEADY


def test_the_history_is_bounded_and_has_no_look_that_lacks_a_broker() -> None:
    many = seen(*(look(lag) for lag in range(3 * HISTORY_MAX)))
    assert [lag for _, lag in many.history] == list(range(2 * HISTORY_MAX, 3 * HISTORY_MAX))
    assert len(seen(*[look(1)] * 5, each_s=HISTORY_EACH_S / 4).history) == 2
    assert len(seen(look(1), replace(look(0), is_partial=True)).history) == 1
