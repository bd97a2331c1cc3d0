"""What more than one module of tests/appliance/broker starts from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from appliance.broker.controller import BrokerController
from tests.appliance.broker.caller import Caller, calling
from tests.appliance.broker.processors.tool import Tool, tool_at
from tests.appliance.broker.processors.unopened import unopened_broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerController]:
    with unopened_broker(tmp_path) as broker:
        yield broker


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[Tool]:
    """At a broker with a name server."""
    async with tool_at(tmp_path) as tool:
        yield tool


@pytest.fixture
async def caller(tmp_path: Path) -> AsyncIterator[Caller]:
    async with calling(tmp_path) as caller:
        yield caller
