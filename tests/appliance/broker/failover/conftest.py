"""A real etcd, and brokers of one name around it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.appliance.broker.replication.brokers import group as brokers_of
from tests.appliance.broker.replication.recorded import OnRecord
from tests.servers.etcd import etcd


@pytest.fixture
async def on_record(tmp_path: Path) -> AsyncIterator[OnRecord]:
    with etcd(tmp_path / "etcd") as (member,):
        async with brokers_of(tmp_path) as brokers:
            yield OnRecord(brokers, member)
