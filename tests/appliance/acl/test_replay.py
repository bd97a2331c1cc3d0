"""Stamps: good once."""

from __future__ import annotations

import pytest

from appliance.acl import replay
from appliance.acl.replay import ReplayGuard, StampRefused
from tests.waiting import Clock


def stamp(clock: Clock, number: int, *, client: str = "c1", age_s: float = 0, code: int = 310) -> str:
    return f"{int((clock.now - age_s) * 1000)}.{client}.{number}.{code}"


def test_a_stamp_is_good_once_and_in_order_only() -> None:
    clock = Clock(1_700_000_000.0)
    guard = ReplayGuard(60_000, clock=clock)
    guard.check("key", stamp(clock, 1), 310, 1)
    guard.check("key", stamp(clock, 5), 310, 1)
    for number in (5, 4, 1):
        with pytest.raises(StampRefused, match="used before"):
            guard.check("key", stamp(clock, number), 310, 1)
    guard.check("key", stamp(clock, 6), 310, 1)


@pytest.mark.parametrize("age_s", [61, 3600, -61])
def test_a_stamp_from_another_time_is_refused(age_s: float) -> None:
    clock = Clock(1_700_000_000.0)
    with pytest.raises(StampRefused, match="clocks"):
        ReplayGuard(60_000, clock=clock).check("key", stamp(clock, 1, age_s=age_s), 310, 1)


def test_a_stamp_belongs_to_a_connection_a_code_and_an_account() -> None:
    clock = Clock(1_700_000_000.0)
    guard = ReplayGuard(60_000, clock=clock)
    guard.check("key", stamp(clock, 1), 310, 1)
    with pytest.raises(StampRefused, match="another connection"):
        guard.check("key", stamp(clock, 2), 310, 2)
    with pytest.raises(StampRefused, match="another request code"):
        guard.check("key", stamp(clock, 3), 215, 1)
    guard.check("other", stamp(clock, 1), 310, 2)


@pytest.mark.parametrize("text", ["", "1.2.3", "a.b.c.d", "1." * 100, "1.c.2.3.4", "..."])
def test_what_is_no_stamp_is_refused(text: str) -> None:
    with pytest.raises(StampRefused, match="malformed"):
        ReplayGuard().check("key", text, 310, 1)


def test_the_table_is_bounded_and_forgets_only_what_is_too_old_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "IDS_PER_ACCOUNT_MAX", 10)
    clock = Clock(1_700_000_000.0)
    guard = ReplayGuard(60_000, clock=clock)
    for number in range(10):
        guard.check("key", stamp(clock, 1, client=f"c{number}"), 310, number)
    with pytest.raises(StampRefused, match="more than 10"):
        guard.check("key", stamp(clock, 1, client="new"), 310, 11)
    first = stamp(clock, 1, client="c0")
    clock.now += 61
    guard.check("key", stamp(clock, 1, client="new"), 310, 11)
    with pytest.raises(StampRefused):
        guard.check("key", first, 310, 12)


def test_what_is_remembered_goes_by_the_last_stamp_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that began before the window is still remembered for what it sent within."""
    monkeypatch.setattr(replay, "IDS_PER_ACCOUNT_MAX", 2)
    clock = Clock(1_700_000_000.0)
    guard = ReplayGuard(60_000, clock=clock)
    guard.check("key", stamp(clock, 1, client="long"), 310, 1)
    guard.check("key", stamp(clock, 1, client="short"), 310, 2)
    clock.now += 50
    last = stamp(clock, 2, client="long")
    guard.check("key", last, 310, 1)
    clock.now += 20
    guard.check("key", stamp(clock, 1, client="new"), 310, 3)  # "short" is forgotten for it
    with pytest.raises(StampRefused, match="another connection"):
        guard.check("key", last, 310, 4)


def test_an_account_is_forgotten_once_none_of_its_stamps_can_come_again() -> None:
    clock = Clock(1_700_000_000.0)
    guard = ReplayGuard(60_000, clock=clock)
    for number in range(10):  # each is deleted and the next one made
        clock.now += 50
        guard.check(f"key-{number}", stamp(clock, 1), 310, number)
    assert len(guard) == 2
    with pytest.raises(StampRefused, match="another connection"):
        guard.check("key-8", stamp(clock, 1), 310, 11)


@pytest.mark.parametrize("ids_max", [1, 10])
def test_a_clock_set_back_lets_no_forgotten_stamp_come_again(monkeypatch: pytest.MonkeyPatch, ids_max: int) -> None:
    monkeypatch.setattr(replay, "IDS_PER_ACCOUNT_MAX", ids_max)
    clock = Clock(1_700_000_000.0)
    guard = ReplayGuard(60_000, clock=clock)
    first = stamp(clock, 1)
    guard.check("key", first, 310, 1)
    clock.now += 61
    guard.check("key" if ids_max == 1 else "other", stamp(clock, 1, client="c2"), 310, 2)  # "c1" is forgotten for it
    clock.now -= 60
    guard.check("new", stamp(clock, 1), 310, 3)
    with pytest.raises(StampRefused, match="clock set back"):
        guard.check("key", first, 310, 4)
