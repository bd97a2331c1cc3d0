"""A slave of ours, of whatever master a module has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench.peer import Peer
from tests.harness import LocalCluster


@pytest.fixture
def slave(master: Peer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """Not started yet. Its log's files are as large as the module's FILES say."""
    peer = LocalCluster(tmp_path / "slave", broker_properties=request.module.FILES)
    peer.join_as_slave(master)
    yield peer
    peer.stop()
