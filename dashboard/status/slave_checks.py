"""Checks of replication: slaves that are behind, gone or copy nothing, and brokers without a master. Pure."""

from __future__ import annotations

from dashboard.cluster import units
from dashboard.status.board import BrokerState, Snapshot
from dashboard.status.problems import Level, Problem
from dashboard.status.services import Services

NAMED_MAX = 5  # slaves named in one line
FINE = ("copying", "comparing logs")  # states of a slave
NEEDS_A_PERSON = ("diverged", "left behind", "ahead of the master", "disk full")


def slave_problems(name: str, services: Services) -> list[Problem]:
    """What a master says of its slaves, or a slave of itself."""
    found = (_slave_behind(name, services), _slave_gone(name, services), _not_copying(name, services))
    return [problem for problem in found if problem is not None]


def what_goes_on(broker: BrokerState, snapshot: Snapshot) -> str:
    """What clients do while a broker does not answer."""
    if broker.is_slave:
        return "Its master goes on without it; what the master's disk loses meanwhile is lost."
    readable = [slave.name for slave in snapshot.slaves_of(broker.name) if slave.is_answering]
    if not readable:
        return "Its messages are safe on disk, and clients use other brokers meanwhile."
    return (
        f"Its messages are safe on disk. Meanwhile producers use other brokers, and consumers read from its slave "
        f"{', '.join(readable[:NAMED_MAX])}."
    )


def without_master(snapshot: Snapshot) -> list[Problem]:
    """Brokers of which only slaves are left."""
    masters = {broker.name for broker in snapshot.masters}
    slaves = [broker for broker in snapshot.brokers if broker.is_slave and broker.broker_name not in masters]
    return [
        Problem(
            Level.BAD,
            f"{name} has no master",
            f"slaves: {', '.join(slave.address for slave in slaves if slave.broker_name == name)}",
            "Consumers read from its slaves, producers use other brokers. Start the master again. If it is lost, an "
            "administrator promotes a slave, by “Master” on its card; see docs/operations.md, “A slave takes over”.",
        )
        for name in sorted({slave.broker_name for slave in slaves})
    ]


def _slave_behind(name: str, services: Services) -> Problem | None:
    behind = [slave for slave in services.slaves if not slave.in_sync]
    if not behind:
        return None
    texts = [
        f"{slave.address}: {units.size(slave.behind_bytes)}, {units.duration(round(slave.behind_seconds))} behind"
        for slave in behind
    ]
    return Problem(
        Level.WARN,
        f"{name}: {units.count(len(behind))} of {units.count(len(services.slaves))} slaves far behind",
        ", ".join(texts[:NAMED_MAX]),
        "What a slave lacks is lost with the master's disk. See whether its disk or the network is slow; a new slave "
        "catches up by itself. With SYNC_MASTER sends don't wait for it.",
        name=f"{name}: slaves behind",
    )


def _slave_gone(name: str, services: Services) -> Problem | None:
    if not services.slaves_gone:
        return None
    hosts = ", ".join(f"{host} {units.duration(seconds)} ago" for host, seconds in services.slaves_gone[:NAMED_MAX])
    left = len(services.slaves)
    return Problem(
        Level.WARN if left else Level.BAD,
        f"A slave of {name} is gone",
        f"{hosts}; {units.count(left) if left else 'none'} connected",
        "Start it again, or look at the network and its log. A slave that was taken away for good is forgotten after a "
        "day, or when the master restarts.",
        name=f"{name}: slave gone",
    )


def _not_copying(name: str, services: Services) -> Problem | None:
    copying = services.copying
    if copying is None or copying.state in FINE:
        return None
    is_stuck = copying.state in NEEDS_A_PERSON
    why = f": {copying.why}" if copying.why else ""
    return Problem(
        Level.BAD if is_stuck else Level.WARN,
        f"Slave {name} does not copy",
        f"{copying.state}{why}" + (f" (master at {copying.master})" if copying.master else ""),
        "A person has to act: docs/operations.md, “Master and slaves”, says what this state means."
        if is_stuck
        else "It tries again by itself. What its master stores meanwhile is on the master's disk alone.",
    )
