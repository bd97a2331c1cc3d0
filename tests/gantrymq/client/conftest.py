"""The brokers that the client's tests share: GantryMQ's and Apache's, each started once in a process of tests.

They end with the folder's last test: Apache's broker takes 3 % of a core also when no client is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from appliance.bench.peer import Peer
from tests.gantrymq.client.peers import running_peer


@pytest.fixture(scope="package")
def peer_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Peer]]:
    """The running peer of a make, started when it is first asked for.

    It stays when the parameter of `peer` changes: a worker of a parallel run takes file by file, so that is often.
    """
    running: dict[str, Peer] = {}
    with ExitStack() as stack:

        def of(make: str) -> Peer:
            if make not in running:
                running[make] = stack.enter_context(running_peer(make, tmp_path_factory.mktemp(make)))
            return running[make]

        yield of


@pytest.fixture(scope="package", params=["gantry", "apache"])
def peer(request: pytest.FixtureRequest, peer_of: Callable[[str], Peer]) -> Peer:
    return peer_of(request.param)
