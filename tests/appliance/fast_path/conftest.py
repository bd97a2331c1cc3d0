"""The compiled module for tests of what it does; without a compiler they skip, and fail in CI."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from appliance.fast_path.loader import SANITIZE, VARIABLE, load
from tests.appliance.fast_path.compiling import build_or_skip
from tests.appliance.fast_path.rig import Pair, pair_of_brokers


@pytest.fixture(scope="package", autouse=True)
def switched_on() -> Iterator[None]:
    """Also in a run that leaves the fast path out of all other tests."""
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get(VARIABLE) != SANITIZE:
            patch.delenv(VARIABLE, raising=False)
        yield


@pytest.fixture(scope="package")
def compiled(switched_on: None) -> ModuleType:
    build_or_skip()
    module = load()
    assert module is not None
    return module


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with pair_of_brokers(tmp_path) as pair:
        yield pair
