"""Four turns take all tests, each takes something of each expensive module, and the lists name what is there."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.suite.kinds import TESTS
from tests.suite.long_runs import ALL, FIRST, LONG
from tests.suite.turns import CASE_BY_CASE, FEW, SHOWN_BY, first_of, left_out, places_of, waiting_of

TURNS = [f"{number}/4" for number in range(1, 5)]
HERE = Path(__file__)


@pytest.mark.slow
def test_four_turns_take_all_and_each_takes_some_of_each_module_and_what_shows_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("selenium", "pyspark"):
        pytest.importorskip(name, reason="a module that needs it is skipped whole")
    cases = collected()
    names = {place: {case for case in cases if place in places_of(case)} for place in named()}
    assert [place for place, those in names.items() if not those] == []
    by_case: defaultdict[str, set[str]] = defaultdict(set)
    for case in cases:
        if first_of(places_of(case), CASE_BY_CASE) and not first_of(places_of(case), (*SHOWN_BY, *SHOWN_BY.values())):
            by_case[case.partition("::")[0]].add(case)
    expensive: defaultdict[str, set[str]] = defaultdict(set)
    for module, those in by_case.items():
        expensive[module if len(those) >= FEW else module.rpartition("/")[0]] |= those
    missed = set(cases)
    for turn in TURNS:
        monkeypatch.setenv(LONG, turn)
        taken = set(cases) - waiting_of(cases)
        assert [place for place in SHOWN_BY.values() if not taken & names[place]] == []
        assert [place for place, those in expensive.items() if not taken & those] == []
        missed -= taken
    assert missed == set()


def named() -> set[str]:
    return {*CASE_BY_CASE, *SHOWN_BY, *SHOWN_BY.values()}


def collected() -> list[str]:
    """The cases of all modules that are named, or stand in a folder that is."""
    paths = {TESTS / place.partition("::")[0] for place in named()}
    assert [path for path in paths if not path.exists()] == []
    modules = sorted({each for path in paths for each in (path.rglob("test_*.py") if path.is_dir() else [path])})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *map(str, modules)]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.parametrize("turn", ["", FIRST, *TURNS])
def test_a_run_leaves_out_what_has_another_turn(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, turn: str
) -> None:
    monkeypatch.setattr("tests.suite.turns.SHOWN_BY", {f"suite/{HERE.name}": "-", "b": "-", "c": "-", "d": "-"})
    monkeypatch.setenv(LONG, turn) if turn else monkeypatch.delenv(LONG, raising=False)
    assert left_out([request.node], ["tests", str(HERE.parent)]) == (set() if turn in ("", "1/4") else {request.node})
    monkeypatch.setenv(LONG, ALL)
    assert left_out([request.node], ["tests"]) == set()


@pytest.mark.parametrize("named", [str(HERE), f"{HERE}::test_a", f"{HERE.parent}/../suite/{HERE.name}"])
def test_a_module_that_is_named_runs_whole(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setattr("tests.suite.turns.SHOWN_BY", dict.fromkeys("abc", "-") | {f"suite/{HERE.name}": "-"})
    monkeypatch.setenv(LONG, FIRST)
    assert left_out([request.node], ["tests"]) == {request.node}
    assert left_out([request.node], [named]) == set()


def test_a_case_waits_for_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.suite.turns.CASE_BY_CASE", ("a",))
    monkeypatch.setattr("tests.suite.turns.SHOWN_BY", dict.fromkeys("1234", "") | {"a/m.py::x[1]": "a/m.py::y"})
    monkeypatch.setenv(LONG, TURNS[2])
    cases = [f"tests/a/m.py::{case}" for case in ("x[1]", "x[2]", "x[3]", "x[4]", "x[5]", "y", "z")]
    assert waiting_of([*cases, "tests/b/m.py::x[1]"]) == {cases[0], cases[1], cases[2], cases[4], cases[6]}
