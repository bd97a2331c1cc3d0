"""Brokers of one name that come and go, and a dashboard that asks them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dashboard.cluster.gateway import use_gateway
from tests.appliance.broker.replication.brokers import Group, group
from tests.dashboard.conftest import patient_gateway


@pytest_asyncio.fixture(loop_scope="session")
async def brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Group]:
    async with group(tmp_path) as running:
        instance = patient_gateway(running.namesrv_address, monkeypatch)
        use_gateway(instance)
        yield running
        use_gateway(None)
        await instance.close()
