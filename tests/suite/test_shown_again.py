"""What stands in the list of what is shown again marks its tests, and names none that does not exist."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import pytest

from tests.suite.kinds import TESTS
from tests.suite.shown_again import SHOWN_BY, is_shown_elsewhere


def test_a_module_a_function_or_a_case_is_named() -> None:
    module = TESTS / "e2e" / "test_sign_in.py"
    assert is_shown_elsewhere(module, "test_a", "test_a[1]")
    deadline, lost = TESTS / "faults/failover/test_deadline.py", "test_one_of_three_members_of_etcd_may_be_lost"
    assert is_shown_elsewhere(deadline, lost, f"{lost}[19]")
    assert not is_shown_elsewhere(deadline, lost, f"{lost}[9]")
    assert not is_shown_elsewhere(TESTS.parent / "test_elsewhere.py", "test_a", "test_a")


@pytest.mark.slow
def test_what_is_left_out_exists_and_so_does_what_shows_the_same_in_every_usual_run() -> None:
    for name in ("selenium", "pyspark"):
        pytest.importorskip(name, reason="a module that needs it is skipped whole")
    cases = collected({f"tests/{place.partition('::')[0]}" for place in (*SHOWN_BY, *SHOWN_BY.values())})
    left_out = {case for place in SHOWN_BY for case in cases if stands_for(place, case)}
    for place, other in SHOWN_BY.items():
        assert any(stands_for(place, case) for case in cases), f"there is no {place}"
        assert any(stands_for(other, case) for case in cases - left_out), f"no usual run takes {other}"


def collected(modules: Iterable[str]) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *sorted(modules)]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line}


def stands_for(place: str, case: str) -> bool:
    return case == place or case.startswith((f"{place}::", f"{place}["))
