"""The brokers that the client's tests share: GantryMQ's, then Apache's, each started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from appliance.bench.peer import Peer
from tests.gantrymq.client.peers import running_peer


@pytest.fixture(scope="session", params=["gantry", "apache"])
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with running_peer(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running
