"""What is compared: three brokers of one name, of which one is the master, and what they need beside them."""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import SyncAdminClient
from gantrymq.client.admin.members import Member
from gantrymq.errors import GantryError
from tests.appliance_process import RunningAppliance
from tests.interop.failover.group import Group
from tests.servers.etcd import etcd, urls_of
from tests.waiting import wait_until

NAME = "a"
QUEUES = 8
FILES = {"mappedFileSizeCommitLog": str(1 << 30)}  # as installed; tests have smaller ones


class Three(abc.ABC):
    """name: of the brokers. addresses: of all three."""

    name = NAME
    name_server: str
    addresses: Sequence[str]

    @abc.abstractmethod
    def settled(self) -> str:
        """The address of the master, once both others have its log."""

    @abc.abstractmethod
    def strike(self, address: str, blow: signal.Signals) -> float:
        """Kill or stop that broker's process; it does nothing more when this returns. When (monotonic) it was struck:
        to find the process takes a while."""

    @abc.abstractmethod
    def heal(self) -> None:
        """Have the struck one go on, or start it again where nobody else does."""

    @abc.abstractmethod
    def pids(self) -> Mapping[str, Sequence[int]]:
        """Of all its processes, by what they are: "master", "others", "beside"."""

    def new_topic(self, name: str) -> str:
        rpc.create_topic(self.settled(), name, QUEUES)
        return name


class OfProcesses(Three):
    """Three that are started one by one, and no supervisor sees them die."""

    def __init__(self, members: Sequence[Peer]) -> None:
        self._members = members
        self.addresses = [each.broker_address for each in members]
        self.name_server = members[0].namesrv_address
        self._killed: Peer | None = None
        self._stopped: Peer | None = None

    def strike(self, address: str, blow: signal.Signals) -> float:
        struck, struck_at = self._at(address), time.monotonic()
        if blow == signal.SIGKILL:
            self._killed = struck
            struck.kill_broker()
        else:
            self._stopped = struck
            _signal(psutil.Process(struck.broker.pid), blow)
        return struck_at

    def heal(self) -> None:
        if self._killed is not None:
            self._killed.launch_broker()
        if self._stopped is not None:
            os.kill(self._stopped.broker.pid, signal.SIGCONT)
        self._killed = self._stopped = None

    def pids(self) -> Mapping[str, Sequence[int]]:
        master = self._at(self.settled())
        return {
            "master": [master.broker.pid],
            "others": [each.broker.pid for each in self._members if each is not master],
            "beside": [self._members[0].namesrv.pid],
        }

    def _at(self, address: str) -> Peer:
        return self._members[self.addresses.index(address)]


class Ours(OfProcesses):
    """automaticFailover, SYNC_MASTER, every member of the set acknowledges; one member of etcd."""

    def __init__(self, group: Group, etcd_pids: Sequence[int]) -> None:
        super().__init__(group.members)
        self._group, self._etcd_pids = group, etcd_pids

    def settled(self) -> str:
        return self._group.master().broker_address

    def pids(self) -> Mapping[str, Sequence[int]]:
        found = super().pids()
        return {**found, "beside": [*found["beside"], *self._etcd_pids]}


@contextlib.contextmanager
def ours(folder: Path, lease_s: int) -> Iterator[Three]:
    with etcd(folder / "etcd") as members, Group(folder, urls_of(members), lease_s, properties=FILES) as group:
        yield Ours(group, [each.pid for each in members])


class Supervised(Three):
    """`gantry up --replicas 3`: its supervisor sees a broker die, and starts it again."""

    name = "broker-a"

    def __init__(self, gantry: RunningAppliance) -> None:
        self._gantry = gantry
        self.name_server = gantry.namesrv
        self.addresses = [each.address for each in self._view()]
        self._stopped: psutil.Process | None = None

    def settled(self) -> str:
        found: list[str] = []

        def is_settled() -> bool:
            with contextlib.suppress(GantryError):  # one has just died
                found[:] = [each.address for each in self._view() if each.is_master]
                return len(found) == 1 and self._is_whole(found[0])
            return False

        wait_until(is_settled)
        return found[0]

    def strike(self, address: str, blow: signal.Signals) -> float:
        struck = self._process(address)
        if blow == signal.SIGSTOP:
            self._stopped = struck
        struck_at = time.monotonic()
        _signal(struck, blow)
        return struck_at

    def heal(self) -> None:
        if self._stopped is not None:
            with contextlib.suppress(psutil.NoSuchProcess):  # the supervisor has killed what stood still
                self._stopped.send_signal(signal.SIGCONT)
        self._stopped = None

    def pids(self) -> Mapping[str, Sequence[int]]:
        master = self._process(self.settled()).pid
        brokers = [each.pid for each in self._gantry.workers("broker")]
        every = [each.pid for each in psutil.Process(self._gantry.process.pid).children(recursive=True)]
        beside = [self._gantry.process.pid, *(pid for pid in every if pid not in brokers)]
        return {"master": [master], "others": [pid for pid in brokers if pid != master], "beside": beside}

    def _view(self) -> list[Member]:
        with SyncAdminClient(self.name_server) as admin:
            return admin.succession.view(self.name)

    def _is_whole(self, master: str) -> bool:
        with SyncAdminClient(self.name_server) as admin:
            info = admin.brokers.runtime_info(master)
        return info.get("slavesInSyncSet", "").count(",") == 1 and info["inSyncSetPublished"] == "on record"

    def _process(self, address: str) -> psutil.Process:
        port = int(address.rpartition(":")[2])
        (found,) = (
            process
            for process in self._gantry.workers("broker")
            if any(each.laddr.port == port and not each.raddr for each in process.net_connections())
        )
        return found


@contextlib.contextmanager
def supervised(folder: Path) -> Iterator[Three]:
    with RunningAppliance(folder / "data", "--replicas", "3") as gantry:
        yield Supervised(gantry)


def _signal(process: psutil.Process, blow: signal.Signals) -> None:
    process.send_signal(blow)
    wait_until(lambda: _does_nothing(process))


def _does_nothing(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True
