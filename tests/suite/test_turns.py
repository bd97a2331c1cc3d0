"""Four turns take all tests, each takes some of each expensive module, and the list names what is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_terminal_summary, pytest_testnodedown
from tests.suite.kinds import TESTS
from tests.suite.long_runs import ALL, FIRST, LONG, PART
from tests.suite.turns import EXPENSIVE, left_out, places_of, takers_of, waiting_of

TURNS = [f"{number}/4" for number in range(1, 5)]
HERE = Path(__file__)


@pytest.mark.slow
def test_four_turns_take_all_and_each_takes_some_of_each_expensive_module(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("selenium", "pyspark"):
        pytest.importorskip(name, reason="a module that needs it is skipped whole")
    cases = collected()
    assert set(EXPENSIVE) - set[str]().union(*map(places_of, cases)) == set()
    takers, missed = takers_of(cases), set(cases)
    assert len(takers) > 20
    for turn in TURNS:
        monkeypatch.setenv(LONG, turn)
        taken = set(cases) - waiting_of(cases)
        assert [name for name, those in takers.items() if not taken & set(those)] == []
        missed -= taken
    assert missed == set()


def collected() -> list[str]:
    """The cases of all modules that are named, or stand in a folder that is."""
    paths = {TESTS / place.partition("::")[0] for place in EXPENSIVE}
    assert [path for path in paths if not path.exists()] == []
    modules = sorted({each for path in paths for each in (path.rglob("test_*.py") if path.is_dir() else [path])})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *map(str, modules)]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.parametrize("turn", ["", *TURNS])
def test_a_run_leaves_out_what_has_another_turn(monkeypatch: pytest.MonkeyPatch, turn: str) -> None:
    monkeypatch.setattr("tests.suite.turns.EXPENSIVE", ("a/m.py", "a/n.py::x[2]", "b"))
    monkeypatch.setenv(LONG, turn) if turn else monkeypatch.delenv(LONG, raising=False)
    many = [f"tests/a/m.py::{case}" for case in ("x[1]", "x[2]", "y", "z")]
    few = ["tests/a/n.py::x[2]", "tests/b/c/m.py::x", "tests/b/c/m.py::y", "tests/b/m.py::x"]
    own = int((turn or FIRST)[0]) - 1
    waiting = waiting_of([*many, "tests/a/n.py::x[1]", "tests/c/m.py::x", *few])
    assert waiting == {*many, *few} - {many[own], few[own]}
    monkeypatch.setenv(LONG, ALL)
    assert waiting_of([*many, *few]) == set()


@pytest.mark.parametrize(
    "named", [str(HERE), f"{HERE}::test_a", f"{HERE.parent}/../suite/{HERE.name}", f"{HERE.parent}/"]
)
def test_a_module_or_folder_that_is_named_runs_whole(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setattr("tests.suite.turns.waiting_of", set)
    assert left_out([request.node], ["tests", str(TESTS), str(TESTS.parent), str(TESTS / "store")]) == {request.node}
    assert left_out([request.node], [named]) == set()


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ([7], ["Expensive tests took turn 1/4: 7 were left out. All: --long"]),
        ([7, 7], ["Expensive tests took turn 1/4: 7 were left out. All: --long"]),  # each of two workers
        ([0], []),
        ([], []),
    ],
)
def test_a_run_says_how_many_it_left_out_if_any(counts: list[int], told: list[str]) -> None:
    options: Mapping[str, object] = {"--fast": False, PART: FIRST}
    config: Any = SimpleNamespace(stash=pytest.Stash(), getoption=options.__getitem__)
    for count in counts:
        node: Any = SimpleNamespace(config=config, workeroutput={"left_out": count})
        pytest_testnodedown(node)
    said: list[str] = []
    reporter: Any = SimpleNamespace(write_line=said.append)
    pytest_terminal_summary(reporter, config)
    assert said == told
