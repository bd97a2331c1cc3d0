"""A name server known by a name that does not resolve, resolves later, and stops again: the broker serves on."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.bench import rpc
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import GantryError
from tests.faults.kit.books import Books, log_of, small_files, until
from tests.harness import LocalCluster
from tests.servers.own_names import require_own_names, with_names

NAME = "namesrv.gantry.test"
UNKNOWN = "127.0.0.1 localhost\n"


class NamedCluster(LocalCluster):
    """The broker asks for its name server by name, and sees names of its own: a hosts file that the test writes."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, broker_properties=small_files())
        self._folder = home.parent
        self._names = with_names(self._folder, UNKNOWN)

    def resolve(self, known: bool) -> None:
        (self._folder / "hosts").write_text(UNKNOWN + (f"127.0.0.1 {NAME}\n" if known else ""))

    def broker_properties(self) -> dict[str, str]:
        return {**super().broker_properties(), "namesrvAddr": f"{NAME}:{self._namesrv_port}"}

    def restart_namesrv(self) -> None:
        self.namesrv.stop()
        self.start_namesrv()

    def is_registered(self) -> bool:
        return self.broker_name in (rpc.registered_brokers(self.namesrv_address) or ())

    def broker_command(self, properties: Path) -> list[str | Path]:
        return [*self._names, *super().broker_command(properties)]


@pytest.fixture
def cluster(tmp_path: Path) -> NamedCluster:
    require_own_names()
    return NamedCluster(tmp_path / "cluster")


async def test_a_name_that_does_not_resolve_is_told_and_asked_for_again(cluster: NamedCluster) -> None:
    try:
        cluster.start_namesrv()
        cluster.launch_broker()
        await until(lambda: NAME in log_of(cluster) and "READY" in log_of(cluster), "the log names what fails")
        assert not cluster.is_registered()
        async with AdminClient(cluster.namesrv_address) as admin:
            info = await admin.brokers.runtime_info(cluster.broker_address)
            assert info["nameServersRegistered"].startswith("0"), info["nameServersRegistered"]
        cluster.resolve(True)
        await until(cluster.is_registered, "it registers once the name resolves")
        async with Books(cluster) as books:
            await books.send(20)
            cluster.resolve(False)
            cluster.restart_namesrv()  # all connections are lost, and the name is asked for again
            await books.send(20)
            assert len(books.acknowledged) == 40, "who knows the broker is served"
            assert not cluster.is_registered()
            cluster.resolve(True)
            await until(cluster.is_registered, "it registers again")
        cluster.stop_broker()
        books.check()
    finally:
        cluster.stop()


async def test_a_client_whose_name_server_does_not_resolve_is_told(tmp_path: Path) -> None:
    async with AdminClient(f"{NAME}:9876") as admin:
        with pytest.raises(GantryError, match=NAME):
            await admin.cluster.info()
