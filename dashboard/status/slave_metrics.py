"""The metrics of replication on a broker's card: a master's slaves, a row each, or how a slave copies."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.cluster import units
from dashboard.language.sentences import gettext
from dashboard.status.board import BrokerState, Snapshot
from dashboard.status.metric import Metrics
from dashboard.status.words import in_words
from gantrymq.remoting.admin_bodies import SlaveDifference


def put_slaves(metrics: Metrics, broker: BrokerState, snapshot: Snapshot) -> None:
    """Add `broker.NAME.slave.ADDRESS.…` for each slave of a master, `broker.NAME.copying.…` for a slave."""
    facts, why = broker.facts, broker.why
    if facts is None:
        return
    prefix = f"broker.{broker.name}"
    for slave in facts.services.slaves:

        def put(name: str, text: str, reason: str | None = why, key: str = f"{prefix}.slave.{slave.address}") -> None:
            metrics.put(f"{key}.{name}", text, facts.at, reason)

        put("name", name_of(slave.address, broker, snapshot))
        put("in_sync", gettext("in sync") if slave.in_sync else gettext("behind"))
        put("bytes", units.size(slave.behind_bytes))
        is_known = slave.behind_messages >= 0
        messages = units.count(slave.behind_messages) if is_known else units.UNKNOWN
        put("messages", messages, why or gettext("the broker does not report it"))
        put("seconds", units.duration(round(slave.behind_seconds)))
        put("fed", f"{units.size(slave.bytes_per_second)}/s")
    copying = facts.services.copying
    if copying is not None:
        metrics.put(f"{prefix}.copying.state", in_words(copying.state), facts.at, why)
        metrics.put(
            f"{prefix}.copying.master", copying.master or units.UNKNOWN, facts.at, why or gettext("no master is known")
        )
        metrics.put(f"{prefix}.copying.received", units.size(copying.received_bytes), facts.at, why)


def name_of(connection: str, master: BrokerState, snapshot: Snapshot) -> str:
    """Which slave a connection is of; a slave that does not tell, or behind a proxy, has its address as name."""
    for slave in snapshot.slaves_of(master.name):
        copying = slave.facts.services.copying if slave.facts is not None else None
        if copying is not None and copying.connection == connection:
            return slave.name
    return connection


def seen_slaves(snapshot: Snapshot) -> Iterator[tuple[str, str, SlaveDifference]]:
    """(broker, name of the slave, how far it is) of each slave that is connected to a master that answers.

    The name stays over a new connection: a slave that does not tell has its host's address, without the port.
    """
    for master in snapshot.masters:
        if not master.is_answering or master.facts is None:
            continue
        for slave in master.facts.services.slaves:
            name = name_of(slave.address, master, snapshot)
            yield master.broker_name, name if name != slave.address else name.rpartition(":")[0], slave
