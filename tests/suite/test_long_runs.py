"""What is marked long waits for --long, or for who names its module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite.long_runs import LONG, MARKER, left_out

HERE = Path(__file__)


def test_a_usual_run_leaves_out_what_is_marked_long(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LONG, raising=False)
    assert left_out([request.node], ["tests"]) == []
    request.node.add_marker(MARKER)
    assert left_out([request.node], ["tests", str(HERE.parent)]) == [request.node]
    monkeypatch.setenv(LONG, "1")
    assert left_out([request.node], ["tests"]) == []


@pytest.mark.parametrize("named", [str(HERE), f"{HERE}::test_a", f"{HERE.parent}/../suite/{HERE.name}"])
def test_a_module_that_is_named_runs_whole(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.delenv(LONG, raising=False)
    request.node.add_marker(MARKER)
    assert left_out([request.node], [named]) == []
