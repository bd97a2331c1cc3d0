"""The timer's broker and its clock as fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.appliance.broker.timer.timer_broker import Broker
from tests.waiting import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(tmp_path: Path, clock: Clock) -> Iterator[Broker]:
    broker = Broker(tmp_path / "store", clock)
    yield broker
    broker.store.close()
