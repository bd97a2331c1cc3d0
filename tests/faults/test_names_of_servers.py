"""A name server known by a name that does not resolve, resolves later, and stops again: the broker serves on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from appliance.bench import rpc
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import GantryError
from tests.conftest import missing, require_tool
from tests.faults.kit.books import Books, log_of, small_files, until
from tests.harness import LocalCluster

NAME_SPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
NAME = "namesrv.gantry.test"
OWN_NAMES = 'mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@"'


class NamedCluster(LocalCluster):
    """The broker asks for its name server by name, and sees names of its own: a hosts file that the test writes."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, broker_properties=small_files())
        self._hosts = home.parent / "hosts"
        self._resolver = home.parent / "resolv.conf"
        self._resolver.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")  # where nobody answers
        self.resolve(False)

    def resolve(self, known: bool) -> None:
        self._hosts.write_text("127.0.0.1 localhost\n" + (f"127.0.0.1 {NAME}\n" if known else ""))

    def broker_properties(self) -> dict[str, str]:
        return {**super().broker_properties(), "namesrvAddr": f"{NAME}:{self._namesrv_port}"}

    def restart_namesrv(self) -> None:
        self.namesrv.stop()
        self.start_namesrv()

    def is_registered(self) -> bool:
        return self.broker_name in (rpc.registered_brokers(self.namesrv_address) or ())

    def broker_command(self, properties: Path) -> list[str | Path]:
        names = [*NAME_SPACE, "sh", "-c", OWN_NAMES, "sh", self._hosts, self._resolver]
        return [*names, *super().broker_command(properties)]


@pytest.fixture
def cluster(tmp_path: Path) -> NamedCluster:
    require_tool("unshare", "a broker gets names of its own in a name space")
    tried = subprocess.run(
        [*NAME_SPACE, "mount", "--bind", "/etc/hosts", "/etc/hosts"], capture_output=True, check=False
    )
    if tried.returncode:
        missing("the right to mount", "names of one's own need a hosts file in the place of the machine's")
    return NamedCluster(tmp_path / "cluster")


async def test_a_name_that_does_not_resolve_is_told_and_asked_for_again(cluster: NamedCluster) -> None:
    try:
        cluster.start_namesrv()
        cluster.relaunch_broker()
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
