"""Three brokers that take over by themselves and three members of etcd: each is a node with a disk of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from appliance.bench.gantry_peer import CHECKOUT
from tests.faults.failover.loop_disk import LoopDisk, loop_disk
from tests.faults.failover.recorded import holders
from tests.faults.kit.books import clocked_by, library
from tests.faults.kit.network import Network, network
from tests.faults.kit.nodes import BROKERS, NAMES, Node
from tests.faults.kit.replicas import SYNC, is_master, is_on_record, settled, takes_messages
from tests.servers.etcd import EtcdMember, urls_of
from tests.waiting import wait_until

REGISTER = ("etcd0", "etcd1", "etcd2")
LEASE_S = 3
AUTOMATIC = SYNC | {
    "automaticFailover": "true",
    "readConfirmedOnly": "true",
    "failoverLeaseSeconds": str(LEASE_S),
    "slaveTimeout": "2000",
    "fileReservedTime": "10000",  # clocks that are set delete nothing
    "cleanFileForciblyEnable": "false",  # nor does a disk that is full: the checker wants each log whole
}


@dataclass
class Group:
    """disks: of the nodes, by name; empty where none may be mounted. clocks: files, by broker; empty without
    faketime."""

    net: Network
    brokers: list[Node]
    etcd: list[EtcdMember]
    disks: dict[str, LoopDisk]
    clocks: dict[str, Path]
    killed: list[Node | EtcdMember] = field(default_factory=list)  # maybe in vain, as long as a disk is frozen

    def kill(self, struck: Node | EtcdMember) -> None:
        """SIGKILL, without waiting for its end."""
        if struck not in self.killed:
            self.killed.append(struck)
            struck.signal(signal.SIGKILL) if isinstance(struck, EtcdMember) else os.kill(
                struck.broker.pid, signal.SIGKILL
            )

    @property
    def logs(self) -> dict[str, Path]:
        brokers = {node.node: node.home / "broker.log" for node in self.brokers}
        return brokers | {member.name: member.log for member in self.etcd}

    @property
    def namesrv_pid(self) -> int:
        return self.brokers[0].namesrv.pid

    def heal(self) -> None:
        """All is as it was, but for what is to come back by itself."""
        self.net.heal()
        for disk in self.disks.values():
            disk.thaw()
            disk.empty()
        for member in self.etcd:
            if member in self.killed:
                member.kill()
                member.start(self.etcd)
            else:
                member.signal(signal.SIGCONT)
        os.kill(self.namesrv_pid, signal.SIGCONT)
        self.brokers[0].return_namesrv()
        for node in self.brokers:
            if node not in self.killed:
                os.kill(node.broker.pid, signal.SIGCONT)
        for node in self.brokers:
            if node in self.killed:  # a start waits for its end: all others go on meanwhile
                node.kill_broker()
                node.start_broker()
        self.killed.clear()

    def masters(self) -> list[Node]:
        return [each for each in self.brokers if is_master(each)]

    def settled(self) -> Node:
        """The only master, once both others are in sync with it, on record, and it takes messages."""
        return settled(self.brokers, lambda info: is_on_record(info) and takes_messages(info))


@contextlib.contextmanager
def group(folder: Path) -> Iterator[Group]:
    """The first broker is the master at first, the others are in sync; etcd has all on record."""
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network([*BROKERS, NAMES, *REGISTER]))
        disks = {}
        for name in (*BROKERS, *REGISTER):
            path = folder / name / "store" if name in BROKERS else folder / name
            if (disk := stack.enter_context(loop_disk(path))) is not None:
                disks[name] = disk
        etcd = [
            EtcdMember(folder / name, name, None, host=net.address[name], runner=net.command(name)) for name in REGISTER
        ]
        for member in etcd:
            stack.callback(member.kill)
            member.start(etcd)
        for member in etcd:
            wait_until(lambda member=member: member.answers(""))  # type: ignore[misc]
        brokers = [
            Node(folder / name, net, name, number, AUTOMATIC | {"etcdEndpoints": urls_of(etcd)})
            for number, name in enumerate(BROKERS)
        ]
        made = Group(net, brokers, etcd, disks, _clocks(folder, brokers))
        for node in brokers:
            stack.callback(node.stop)
        brokers[0].start()
        for node in brokers[1:]:
            node.follow(brokers[0])
            node.start_broker()
        _put_on_record(brokers[0], etcd[0])
        stack.callback(lambda: (net.heal(), made.heal()))
        yield made


def _clocks(folder: Path, brokers: list[Node]) -> dict[str, Path]:
    """A file for each broker's time of day; the time that has passed is the real one."""
    found = library("*/faketime/libfaketime.so.1")
    if found is None:
        return {}
    clocks = {}
    for node in brokers:
        clocks[node.node] = folder / f"{node.node}.clock"
        clocks[node.node].write_text("+0\n")
        node.environment |= clocked_by(found, clocks[node.node])
    return clocks


def _put_on_record(master: Node, member: EtcdMember) -> None:
    command = [sys.executable, "-P", "-m", "appliance", "admin", "-n", master.namesrv_address, "ha", "init"]
    command += [master.broker_name, "--accept-unknown", "--yes"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    # A starved member may answer too late for the first time.
    wait_until(lambda: subprocess.run(command, check=False, capture_output=True, env=environment).returncode == 0)
    wait_until(lambda: len(holders(member, master)) == len(BROKERS))
