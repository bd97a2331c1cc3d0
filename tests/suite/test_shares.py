"""How a fast run is shared out: each module runs in one worker."""

from __future__ import annotations

import pytest

from tests.suite.kinds import TESTS, is_reader, kind_of
from tests.suite.shares import share_of


@pytest.mark.parametrize("workers", [1, 2, 3, 9, 33])
def test_each_unit_module_is_in_one_share_and_the_readers_in_the_same(workers: int) -> None:
    shares = [share_of(worker, workers) for worker in range(workers)]
    shared = sorted(module for share in shares for module in share)
    assert shared == sorted(path for path in TESTS.rglob("test_*.py") if kind_of(path) == "unit")
    assert sum(any(map(is_reader, share)) for share in shares) == 1
