"""What is done to a group, each for some seconds; `Group.heal` ends all of it."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable

from tests.faults.failover.group import REGISTER, Group
from tests.faults.kit.network import CUT
from tests.faults.kit.nodes import CLIENTS, NAMES, Node

Nemesis = Callable[[Group, Node, random.Random], str]

STEPS = ("+4d", "-1h", "+30s", "-30s", "+0 x1.05", "+0 x0.95", "+0")  # of the time of day, and its rate
LEFT_FREE_BYTES = 64 << 10
DELAYS_S = (0.05, 0.4)


def kill_master(group: Group, master: Node, dice: random.Random) -> str:
    group.kill(master)
    return f"kill -9 {master.node}"


def stop_master(group: Group, master: Node, dice: random.Random) -> str:
    os.kill(master.broker.pid, signal.SIGSTOP)
    return f"SIGSTOP {master.node}"


def strike_slave(group: Group, master: Node, dice: random.Random) -> str:
    slave = dice.choice([each for each in group.brokers if each is not master])
    if dice.random() < 0.5:
        group.kill(slave)
        return f"kill -9 of slave {slave.node}"
    os.kill(slave.broker.pid, signal.SIGSTOP)
    return f"SIGSTOP of slave {slave.node}"


def isolate_master(group: Group, master: Node, dice: random.Random) -> str:
    """From all but the clients."""
    for other in (*(each.node for each in group.brokers if each is not master), *REGISTER, NAMES):
        _late(group, master.node, other, "both", CUT)
    return f"{master.node} reaches clients only"


def cut_master_from_etcd(group: Group, master: Node, dice: random.Random) -> str:
    how = dice.choice(("to", "from", "both"))
    for name in REGISTER:
        _late(group, master.node, name, how, CUT)
    return f"{master.node} cut {how} etcd"


def cut_links(group: Group, master: Node, dice: random.Random) -> str:
    """One to three, in one direction or both, or slow."""
    nodes = [each.node for each in group.brokers]
    links = [(one, other) for one in nodes for other in (*nodes, *REGISTER, NAMES, CLIENTS) if one != other]
    told = []
    for link in dice.sample(links, dice.choice((1, 2, 3))):
        how, seconds = dice.choice(("to", "from", "both")), dice.choice((CUT, CUT, *DELAYS_S))
        _late(group, *link, how, seconds)
        told.append(f"{link[0]} {how} {link[1] or 'clients'} {'cut' if seconds == CUT else f'{seconds:g} s late'}")
    return ", ".join(told)


def cut_etcd_apart(group: Group, master: Node, dice: random.Random) -> str:
    one, two, three = dice.sample(REGISTER, 3)
    _late(group, one, two, "both", CUT)
    _late(group, one, three, dice.choice(("to", "from", "both")), CUT)
    return f"{one} apart from etcd's others"


def freeze_disk(group: Group, master: Node, dice: random.Random) -> str:
    node = dice.choice((master.node, master.node, *REGISTER))
    if node not in group.disks:
        return "no disk to freeze"
    group.disks[node].freeze()
    return f"disk of {node} frozen"


def fill_disk(group: Group, master: Node, dice: random.Random) -> str:
    disk = group.disks.get(master.node)
    if disk is None or disk.is_frozen:  # then this process would wait, too
        return "no disk to fill"
    disk.leave(LEFT_FREE_BYTES)
    return f"disk of {master.node} full"


def set_clock(group: Group, master: Node, dice: random.Random) -> str:
    if not group.clocks:
        return "no clock to set"
    node, step = dice.choice(sorted(group.clocks)), dice.choice(STEPS)
    group.clocks[node].write_text(f"{step}\n")
    return f"clock of {node} {step}"


def strike_etcd(group: Group, master: Node, dice: random.Random) -> str:
    """One of its three, maybe the leader."""
    member = dice.choice(group.etcd)
    if dice.random() < 0.5:
        group.kill(member)
        return f"kill -9 {member.name}"
    member.signal(signal.SIGSTOP)
    return f"SIGSTOP {member.name}"


def strike_etcds_leader(group: Group, master: Node, dice: random.Random) -> str:
    leaders = [member for member in group.etcd if member not in group.killed and member.is_leader]
    if not leaders:
        return "no leader of etcd to strike"
    if dice.random() < 0.5:
        group.kill(leaders[0])
        return f"kill -9 {leaders[0].name}, which leads"
    leaders[0].signal(signal.SIGSTOP)
    return f"SIGSTOP {leaders[0].name}, which leads"


def strike_all_of_etcd(group: Group, master: Node, dice: random.Random) -> str:
    how = dice.choice((signal.SIGKILL, signal.SIGSTOP))
    for member in group.etcd:
        group.kill(member) if how is signal.SIGKILL else member.signal(how)
    return f"{how.name} to all of etcd"


def strike_name_server(group: Group, master: Node, dice: random.Random) -> str:
    how = dice.choice((signal.SIGKILL, signal.SIGSTOP))
    os.kill(group.namesrv_pid, how)
    return f"{how.name} to the name server"


ALL: tuple[Nemesis, ...] = (
    kill_master,
    stop_master,
    strike_slave,
    isolate_master,
    cut_master_from_etcd,
    cut_links,
    cut_etcd_apart,
    freeze_disk,
    fill_disk,
    set_clock,
    strike_etcd,
    strike_etcds_leader,
    strike_all_of_etcd,
    strike_name_server,
)


def _late(group: Group, one: str, other: str, how: str, seconds: float) -> None:
    """how: "to": what `one` sends; "from": what it is sent."""
    if how != "from":
        group.net.late(one, other, seconds)
    if how != "to":
        group.net.late(other, one, seconds)
