"""What more than one module of tests/appliance/broker starts from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.broker.controller import BrokerController
from tests.appliance.broker.processors.unopened import unopened_broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerController]:
    with unopened_broker(tmp_path) as broker:
        yield broker
