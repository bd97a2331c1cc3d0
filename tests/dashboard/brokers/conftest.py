"""Brokers of one name that come and go, and a dashboard that asks them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.appliance.broker.replication.brokers import Group, group
from tests.dashboard.conftest import gateway_to


@pytest_asyncio.fixture(loop_scope="session")
async def brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Group]:
    async with group(tmp_path) as running, gateway_to(running.namesrv_address, monkeypatch):
        yield running
