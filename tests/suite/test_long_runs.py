"""Each of four turns has its own quarter of a list, and a usual run takes less of what has an amount."""

from __future__ import annotations

import pytest

from tests.suite.long_runs import ALL, LONG, in_all, in_turn, part_of

TURNS = [f"{number}/4" for number in range(1, 5)]


@pytest.mark.parametrize("count", range(20))
def test_four_turns_take_all_and_none_goes_without(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    cases, taken = list(range(count)), []
    for turn in TURNS:
        monkeypatch.setenv(LONG, part_of(turn))
        taken.append(in_turn(cases))
    assert all(count // 4 <= len(each) <= count // 4 + 1 for each in taken)
    assert {case for each in taken for case in each} == set(cases)
    assert all(taken) or not cases
    if count >= 4:
        assert sum(map(len, taken)) == count


def test_a_turn_has_every_value_of_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = [(kind, door) for kind in range(4) for door in range(4)]
    for turn in TURNS:
        monkeypatch.setenv(LONG, turn)
        assert {door for _, door in in_turn(grid)} == {kind for kind, _ in in_turn(grid)} == {0, 1, 2, 3}


@pytest.mark.parametrize("turn", [None, *TURNS, ALL])
def test_only_all_of_it_has_the_large_amounts(monkeypatch: pytest.MonkeyPatch, turn: str | None) -> None:
    monkeypatch.setenv(LONG, turn) if turn else monkeypatch.delenv(LONG, raising=False)
    assert in_all(2, long=10) == (10 if turn == ALL else 2)
    assert len(in_turn(range(8))) == (8 if turn == ALL else 2)


@pytest.mark.parametrize("wrong", ["", "x", "0/4", "5/4", "1/0", "1"])
def test_what_is_no_part_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):
        part_of(wrong)
