"""The compiled module for tests of what it does; without a compiler they skip, and fail in CI."""

from __future__ import annotations

from types import ModuleType

import pytest

from appliance.fast_path.loader import load
from tests.appliance.fast_path.compiling import build_or_skip


@pytest.fixture(scope="session")
def compiled() -> ModuleType:
    build_or_skip()
    module = load()
    assert module is not None
    return module
