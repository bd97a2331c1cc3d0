"""What more than one module of tests/appliance starts from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from appliance.register import etcd as client
from tests.appliance.code_scene import Scene, open_scene
from tests.servers.etcd import EtcdMember, etcd
from tests.waiting import WITHIN_S


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """A cluster for requests of every code; once a module, for a request leaves it as it was."""
    async with open_scene(tmp_path_factory.mktemp("codes")) as opened:
        yield opened


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdMember]:
    with etcd(tmp_path_factory.mktemp("etcd")) as (member,):
        yield member


@pytest.fixture
def patient_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of etcd that wait: else it is not known after 0.7 s without a core whether a change was made."""
    monkeypatch.setattr(client, "TRY_S", 10.0)
    monkeypatch.setitem(client.EtcdClient.__init__.__kwdefaults__, "deadline_s", WITHIN_S)
