"""Three brokers of one name with automatic failover, as a program measures them."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from appliance.bench.peer import CLUSTER_NAME, Peer
from appliance.register.etcd import EtcdClient, endpoints_of
from appliance.register.register import Register
from tests.faults.kit.network import Network
from tests.faults.kit.nodes import BROKERS, Node
from tests.faults.kit.replicas import SYNC, Replica, is_on_record, make_topic, settled
from tests.harness import LocalCluster
from tests.interop.failover.gaps import routed_s
from tests.waiting import WITHIN_S, wait_until

QUEUES = 4


class Beside(LocalCluster):
    """A broker of another name at the same name server."""

    def __init__(self, home: Path, first: LocalCluster) -> None:
        super().__init__(home, broker_properties={"autoCreateTopicEnable": "false"})
        self._first, self.broker_name = first, "b"
        home.mkdir()

    @property
    def namesrv_address(self) -> str:
        return self._first.namesrv_address


class Group:
    """Three brokers of one name with automatic failover, maybe a broker of another name.

    properties: further ones. name_servers: others' that run; none: one of ours, which is started. net: the members and
    the name server are nodes of it, so that they can be cut off; None: all are on loopback.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        lease_s: int,
        *,
        names: int = 1,
        properties: Mapping[str, str] | None = None,
        name_servers: Sequence[Peer] = (),
        net: Network | None = None,
    ) -> None:
        known = SYNC | {
            "automaticFailover": "true",
            "readConfirmedOnly": "true",
            "etcdEndpoints": url,
            "failoverLeaseSeconds": str(lease_s),
            "autoCreateTopicEnable": "false",
            **(properties or {}),
        }
        if name_servers:
            known["namesrvAddr"] = ";".join(each.namesrv_address for each in name_servers)
        self._folder, self._known, self._names, self.net = folder, known, names, net
        self.first = self._master()
        self.first.broker_name = "a"
        self._name_servers = name_servers
        self._register = Register(
            EtcdClient(endpoints_of(url), deadline_s=WITHIN_S), CLUSTER_NAME, self.first.broker_name
        )
        self.members: list[LocalCluster] = [self.first]
        self._other: LocalCluster | None = None
        self._stack = contextlib.ExitStack()

    @property
    def name_server(self) -> str:
        return self.first.namesrv_address

    def __enter__(self) -> Group:
        self._stack.callback(self.first.stop)
        if self._name_servers:
            self.first.share_name_server(self._name_servers[0])
            self.first.start_broker()
        else:
            self.first.start()
        for number in (1, 2):
            slave = self._slave(number)
            self._stack.callback(slave.stop)
            slave.start_broker()
            self.members.append(slave)
        self._put_on_record()
        if self._names == 2:
            other = Beside(self._folder / "other", self.first)
            self._stack.callback(other.stop)
            other.start_broker()
            self._other = other
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _master(self) -> LocalCluster:
        home = self._folder / BROKERS[0]
        if self.net is not None:
            return Node(home, self.net, BROKERS[0], 0, self._known)
        return LocalCluster(home, broker_properties=self._known)

    def _slave(self, number: int) -> LocalCluster:
        home = self._folder / f"slave{number}"
        if self.net is None:
            return Replica(home, self.first, number, self._known)
        node = Node(home, self.net, BROKERS[number], number, self._known)
        assert isinstance(self.first, Node)
        node.follow(self.first)
        return node

    def _put_on_record(self) -> None:
        command = [sys.executable, "-m", "appliance", "admin", "-n", self.name_server, "ha", "init", "a"]
        command += ["--accept-unknown", "--yes"]
        # A starved member may answer too late for the first time.
        wait_until(lambda: subprocess.run(command, check=False, capture_output=True).returncode == 0)

        def have_joined() -> bool:
            term = asyncio.run(self._register.view()).term
            return term is not None and len(term.holders) == 3

        wait_until(have_joined)

    def routed_s(self, lost_ms: int) -> float | None:
        """Seconds from the loss of the master until the name server had the next one."""
        with (self.first.home / "namesrv.log").open() as log:
            return routed_s(log, lost_ms, self.first.broker_name)

    def owners(self) -> list[str]:
        """The master of each epoch on record."""
        return [change.owner for change in asyncio.run(self._register.view()).history]

    def new_topic(self, name: str) -> str:
        """At each broker name."""
        for each in filter(None, (self.master(), self._other)):
            make_topic(each, name, QUEUES)
        return name

    def master(self) -> LocalCluster:
        """The only one, once both others are in sync with it."""
        return settled(self.members, is_on_record)
