"""A soak may take as long as it was asked to."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
BESIDE_S = 900  # for start and end, and for the round that is under way when the time is up


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seconds = float(config.getoption("--soak-seconds"))
    for item in items:
        if seconds and item.path.parent == HERE:
            item.add_marker(pytest.mark.timeout(seconds + BESIDE_S))
