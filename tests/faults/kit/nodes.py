"""Brokers of one name, each in a network namespace of its own, with a name server and maybe etcd in others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from appliance.bench.peer import CLUSTER_NAME
from appliance.register.etcd import EtcdClient, endpoints_of
from appliance.register.register import Register
from tests.faults.kit.network import CUT, Network, network
from tests.faults.kit.replicas import runtime_info
from tests.harness import LocalCluster
from tests.servers.etcd import etcd
from tests.waiting import WITHIN_S, wait_until

BROKERS = ("one", "two", "three")
NAMES, ETCD, CLIENTS = "names", "etcd", ""


class Node(LocalCluster):
    """One broker; the first one's also starts the name server."""

    def __init__(self, home: Path, net: Network, node: str, number: int, properties: dict[str, str]) -> None:
        host = {"brokerIP1": net.address[node], "brokerIP2": net.address[node], "bindAddress": "0.0.0.0"}
        super().__init__(home, broker_properties=properties | host)
        self.net, self.node, self.number = net, node, number

    def follow(self, master: Node) -> None:
        self.join_as_slave(master)
        self._extra_properties["brokerId"] = str(self.number)

    @property
    def namesrv_address(self) -> str:
        return f"{self.net.address[NAMES]}:{self._namesrv_port}"

    @property
    def broker_address(self) -> str:
        return f"{self.net.address[self.node]}:{self._broker_port}"

    @property
    def is_up(self) -> bool:
        return self._broker is not None

    def cut(self, *others: str) -> None:
        """Lose all between this node and those."""
        for other in others:
            self.net.late(self.node, other, CUT)
            self.net.late(other, self.node, CUT)

    def return_namesrv(self) -> None:
        """Start the name server again, at its port, if it was killed."""
        if self.namesrv.exit_code is not None:
            self.namesrv.stop()
            self.start_namesrv()

    def namesrv_properties(self) -> dict[str, str]:
        return super().namesrv_properties() | {"bindAddress": "0.0.0.0", "writeAccess": "any"}

    def _namesrv_command(self, properties: Path) -> list[str | Path]:
        return [*self.net.command(NAMES), *super()._namesrv_command(properties)]

    def broker_command(self, properties: Path) -> list[str | Path]:
        return [*self.net.command(self.node), *super().broker_command(properties)]


@contextlib.contextmanager
def nodes(folder: Path, properties: dict[str, str], *, with_etcd: bool) -> Iterator[list[Node]]:
    """Three brokers, the first the master, the others in sync with it; in etcd's record, too, if there is one."""
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network([*BROKERS, NAMES, ETCD]))
        url = ""
        if with_etcd:
            (member,) = stack.enter_context(etcd(folder / "etcd", host=net.address[ETCD], runner=net.command(ETCD)))
            url, properties = member.url, properties | {"etcdEndpoints": member.url}
        made = [Node(folder / node, net, node, number, properties) for number, node in enumerate(BROKERS)]
        stack.callback(net.heal)
        for node in reversed(made):
            stack.callback(node.stop)
        made[0].start()
        for node in made[1:]:
            node.follow(made[0])
            node.start_broker()
        if with_etcd:
            asyncio.run(_init(made[0], url))
        wait_until(lambda: runtime_info(made[0]).get("slavesInSyncSet", "").count(",") == 1)
        if with_etcd:
            wait_until(lambda: runtime_info(made[0]).get("inSyncSetPublished") == "on record")
        yield made


async def _init(master: Node, url: str) -> None:
    """As `gantry admin ha init` does it."""
    info = runtime_info(master)
    register = Register(EtcdClient(endpoints_of(url), deadline_s=WITHIN_S), CLUSTER_NAME, master.broker_name)
    await register.init(int(info["epoch"]), info["epochId"], master.broker_address)
