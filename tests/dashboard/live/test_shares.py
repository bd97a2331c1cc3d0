"""Places that accounts share: one that opens many leaves the others theirs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.live.shares import NoPlace, Seat, Shares
from tests.bounded import bounded

PLACES = 4
GREEDY, MODEST, THIRD = 1, 2, 3


def taken(shares: Shares[str], account: int, thing: str, gone: list[str]) -> Seat[str]:
    return shares.take(thing, account, PLACES, lambda: gone.append(thing))


def test_the_account_with_most_gives_up_its_newest() -> None:
    shares: Shares[str] = Shares()
    gone: list[str] = []
    seats = [taken(shares, GREEDY, thing, gone) for thing in "abcd"]
    taken(shares, MODEST, "e", gone)
    assert (gone, shares.things) == (["d"], frozenset("abce"))
    shares.give_back(seats[-1])  # it is told later, and gives back what it lost
    assert shares.things == frozenset("abce")


def test_who_has_most_takes_from_nobody() -> None:
    shares: Shares[str] = Shares()
    gone: list[str] = []
    for account, thing in ((GREEDY, "a"), (GREEDY, "b"), (GREEDY, "c"), (MODEST, "d")):
        taken(shares, account, thing, gone)
    assert not shares.has_place("e", GREEDY, PLACES)
    with pytest.raises(NoPlace):
        taken(shares, GREEDY, "e", gone)
    assert not gone and shares.has_place("e", MODEST, PLACES)


def test_what_others_show_too_is_given_up_last() -> None:
    shares: Shares[str] = Shares()
    gone: list[str] = []
    for thing in "abcd":
        taken(shares, GREEDY, thing, gone)
    taken(shares, MODEST, "d", gone)  # a place that is there costs none
    taken(shares, THIRD, "e", gone)
    assert gone == ["c"]


def test_a_seat_that_was_lost_gives_back_nothing_of_the_next_holder() -> None:
    shares: Shares[str] = Shares()
    gone: list[str] = []
    *_, lost = [taken(shares, GREEDY, thing, gone) for thing in "abcd"]
    taken(shares, MODEST, "e", gone)
    taken(shares, MODEST, "d", gone)
    shares.give_back(lost)
    assert gone == ["d", "c"] and "d" in shares


@bounded(500)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30), st.booleans()), max_size=200))
def test_no_account_ends_with_two_more_than_one_that_was_refused(steps: list[tuple[int, int, bool]]) -> None:
    shares: Shares[tuple[int, int]] = Shares()
    held: list[Seat[tuple[int, int]]] = []
    for account, number, is_end in steps:
        if is_end and held:
            shares.give_back(held.pop())
            continue
        try:
            held.append(shares.take((account, number), account, PLACES, lambda: None))
        except NoPlace:
            mine = sum(one == account for one, _ in shares.things)
            assert all(sum(one == other for one, _ in shares.things) <= mine + 1 for other in range(1, 5))
    assert len(shares.things) <= PLACES
