"""What is marked long, and further combinations, wait for --long, or for who names their module."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.suite.long_runs import ALL, EACH_VALUE, LONG, MARKER, in_all, left_out, part_of

HERE = Path(__file__)


def test_a_usual_run_leaves_out_what_is_marked_long(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LONG, raising=False)
    assert left_out([request.node], ["tests"]) == set()
    request.node.add_marker(MARKER)
    assert left_out([request.node], ["tests", str(HERE.parent)]) == {request.node}
    monkeypatch.setenv(LONG, ALL)
    assert left_out([request.node], ["tests"]) == set()


def test_each_module_is_in_one_of_the_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    request.node.add_marker(MARKER)
    taken = []
    for number in range(1, 5):
        monkeypatch.setenv(LONG, part_of(f"{number}/4"))
        taken.append(left_out([request.node], ["tests"]) == set())
        assert in_all(2, long=10) == 2
    assert taken.count(True) == 1


@pytest.mark.parametrize("wrong", ["", "x", "0/4", "5/4", "1/0", "1"])
def test_what_is_no_part_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):
        part_of(wrong)


@pytest.mark.parametrize("named", [str(HERE), f"{HERE}::test_a", f"{HERE.parent}/../suite/{HERE.name}"])
def test_a_module_that_is_named_runs_whole(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.delenv(LONG, raising=False)
    request.node.add_marker(MARKER)
    assert left_out([request.node], [named]) == set()


class Case:
    """As pytest makes one of a parametrized test."""

    path = HERE

    def __init__(self, **params: object) -> None:
        self.nodeid = f"test_a[{params}]"
        self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name: str) -> object:
        return name == EACH_VALUE


@pytest.mark.parametrize(
    ("grid", "taken"),
    [
        ({"a": [1, 2], "b": ["x", "y", "z"]}, 3),
        ({"a": [{}, {"k": "v"}]}, 2),
        ({"a": [True, False], "b": [9, 19], "c": ["master", "slave"]}, 2),
    ],
)
def test_a_usual_run_takes_as_few_combinations_as_have_each_value(
    monkeypatch: pytest.MonkeyPatch, grid: dict[str, list[object]], taken: int
) -> None:
    monkeypatch.delenv(LONG, raising=False)
    cases: list[Any] = [Case(**dict(zip(grid, values, strict=True))) for values in itertools.product(*grid.values())]
    kept = set(cases) - left_out(cases, ["tests"])
    assert len(kept) == taken
    for name, values in grid.items():
        assert all(any(case.callspec.params[name] == value for case in kept) for value in values)
