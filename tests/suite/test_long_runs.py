"""What is marked long, and further combinations, wait for --long, or for who names their module."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.suite.long_runs import EACH_VALUE, LONG, MARKER, left_out

HERE = Path(__file__)


def test_a_usual_run_leaves_out_what_is_marked_long(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LONG, raising=False)
    assert left_out([request.node], ["tests"]) == set()
    request.node.add_marker(MARKER)
    assert left_out([request.node], ["tests", str(HERE.parent)]) == {request.node}
    monkeypatch.setenv(LONG, "1")
    assert left_out([request.node], ["tests"]) == set()


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
