"""How a master is struck, and what ends it."""

from __future__ import annotations

import os
import signal

from tests.faults.kit.nodes import CLIENTS, ETCD, NAMES, Node
from tests.harness import LocalCluster
from tests.interop.failover.group import Group

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
CUTS = ("cut", "apart")  # from everybody; from its slaves and etcd, while clients and the name server reach it
BLOWS = (*SIGNALS, *CUTS)


def strike(group: Group, master: LocalCluster, blow: str) -> None:
    """blow: of BLOWS; those of CUTS need a group in a network."""
    if blow == "kill":
        master.kill_broker()
    elif blow == "stop":
        os.kill(master.broker.pid, signal.SIGSTOP)
    else:
        _cut(group, master, with_clients=blow == "cut")


def heal(group: Group, master: LocalCluster, blow: str) -> None:
    """The struck member is there again."""
    if blow == "kill":
        master.start_broker()
    elif blow == "stop":
        os.kill(master.broker.pid, signal.SIGCONT)
    elif group.net is not None:
        group.net.heal()


def _cut(group: Group, master: LocalCluster, *, with_clients: bool) -> None:
    assert isinstance(master, Node), "a cut needs a group in a network"
    others = [each.node for each in group.members if isinstance(each, Node) and each is not master]
    master.cut(*others, ETCD, *((NAMES, CLIENTS) if with_clients else ()))
