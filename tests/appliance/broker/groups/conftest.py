"""Consumers by a clock that stands still until a test moves it."""

from __future__ import annotations

import pytest

from appliance.broker.groups.consumer_groups import ConsumerManager
from tests.waiting import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def consumers(clock: Clock) -> ConsumerManager:
    return ConsumerManager(clock=clock)
