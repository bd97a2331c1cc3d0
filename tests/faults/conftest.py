"""How long the crash tests run: `--rounds N` or GANTRY_CRASH_ROUNDS=N; and which dice they throw."""

from __future__ import annotations

import os
import time

import pytest

USUAL_ROUNDS = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=None, help="rounds of kill -9 and of power cuts (usual: 12)")
    parser.addoption("--seed", type=int, default=None, help="the dice of such a run again")
    parser.addoption("--still", type=float, default=None, help="for so long a frozen master stands still, s")


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How often to crash."""
    asked = request.config.getoption("--rounds", default=None) or os.environ.get("GANTRY_CRASH_ROUNDS")
    return int(asked or USUAL_ROUNDS)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Printed with every failure: `--seed N` or GANTRY_CRASH_SEED=N throws the same dice again."""
    asked = request.config.getoption("--seed", default=None) or os.environ.get("GANTRY_CRASH_SEED")
    value = int(asked or time.time_ns() % 1_000_000)
    print(f"GANTRY_CRASH_SEED={value}")
    return value
