"""The metrics of the whole cluster: the Overview's tiles, and the table of brokers there and on the brokers' page."""

from __future__ import annotations

from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined, ngettext
from dashboard.status.board import BrokerState, Snapshot
from dashboard.status.metric import Metrics
from dashboard.status.slave_metrics import name_of

# What a broker's own memory consists of, as it counts it; with mapped files it is all that is resident.
OWN_PARTS = ("request", "subscription", "timer", "pool", "free", "other")


def put_totals(metrics: Metrics, snapshot: Snapshot) -> None:
    """Add `cluster.…`: rates, lag, dead letters, stored messages, the fullest disk, how many brokers answer."""
    for name, key in (("in_rate", "cluster.in"), ("out_rate", "cluster.out")):
        value, at, why = snapshot.known_sum(name)
        metrics.put(key, units.rate(value), at, why)
    _put_stored(metrics, snapshot)
    _put_lag(metrics, snapshot)
    disks = [facts.disk_ratio for facts in (broker.facts for broker in snapshot.brokers) if facts is not None]
    fullest = max((ratio for ratio in disks if ratio is not None), default=None)
    metrics.put("cluster.disk", units.percent(fullest), snapshot.at, gettext("no broker reports it"))
    answering = sum(1 for broker in snapshot.brokers if broker.is_answering)
    all_answer = gettext("%(known)s of %(all)s") % {"known": answering, "all": len(snapshot.brokers)}
    metrics.put("cluster.brokers", all_answer, snapshot.at, snapshot.namesrv_why)


def _put_stored(metrics: Metrics, snapshot: Snapshot) -> None:
    stored, why, least = snapshot.stored, snapshot.stored_why, ""
    if stored is not None and stored.missing:
        least, why = units.AT_LEAST, gettext("without %(brokers)s") % {"brokers": joined(stored.missing)}
    numbers = {
        "stored": stored.messages if stored else None,
        "dead": sum(count for _, count in stored.dead_letters) if stored else None,
    }
    for key, number in numbers.items():
        text = units.count(number)
        text = text if text == units.UNKNOWN else least + text
        metrics.put(f"cluster.{key}", text, stored.at if stored else None, why)


def _put_lag(metrics: Metrics, snapshot: Snapshot) -> None:
    """What all groups have yet to consume. Groups are looked at in turn: that one is older is no fault."""
    lag, is_whole = total_lag(snapshot)
    text = units.count(lag)
    why = None if is_whole else gettext("some brokers did not answer")
    metrics.put("cluster.lag", text if is_whole or lag is None else units.AT_LEAST + text, snapshot.at, why)


def total_lag(snapshot: Snapshot) -> tuple[int | None, bool]:
    """(messages that groups have yet to consume, whether that is all of them); None: no group was looked at yet.

    Groups that broadcast have no part in it: no broker knows a lag of theirs.
    """
    groups = [group for group in snapshot.groups if not group.is_broadcasting]
    known = [group for group in groups if group.lag is not None]
    if not known and (groups or snapshot.stored is None):
        return None, True
    return sum(group.lag or 0 for group in known), not any(group.is_partial for group in known)


def put_broker(metrics: Metrics, broker: BrokerState, snapshot: Snapshot) -> None:
    """Add `broker.NAME.memory` with its parts, and `broker.NAME.state`, a few words."""
    at = broker.facts.at if broker.facts is not None else None
    _put_memory(metrics, broker, snapshot)
    silent = broker.why is not None
    text = gettext("does not answer") if silent else _copies(broker, snapshot)
    metrics.put(f"broker.{broker.name}.state", text, snapshot.at if silent else at, broker.why)


def _put_memory(metrics: Metrics, broker: BrokerState, snapshot: Snapshot) -> None:
    """As the broker says it; Apache's brokers don't: of their process, when that runs on this machine."""
    facts, prefix = broker.facts, f"broker.{broker.name}.memory"
    process = next((one for one in snapshot.processes if one.address == broker.address), None)
    if facts is not None and facts.memory_bytes is not None and facts.memory_mapped_bytes is not None:
        metrics.put(prefix, units.size(facts.memory_bytes), facts.at, broker.why)
        metrics.put(f"{prefix}.own", units.size(facts.memory_bytes - facts.memory_mapped_bytes), facts.at, broker.why)
        metrics.put(f"{prefix}.mapped", units.size(facts.memory_mapped_bytes), facts.at, broker.why)
        metrics.put(f"{prefix}.swapped", units.size(facts.memory_swapped_bytes), facts.at, broker.why)
        for part in OWN_PARTS if facts.memory_other_bytes is not None else ():
            size = getattr(facts, f"memory_{part}_bytes")
            metrics.put(f"{prefix}.{part}", units.size(size), facts.at, broker.why)
        return
    rss = process.rss_bytes if process is not None else None
    elsewhere = gettext("its process runs elsewhere")
    metrics.put(prefix, units.size(rss), snapshot.at, process.why if process else elsewhere)


def _copies(broker: BrokerState, snapshot: Snapshot) -> str:
    """A master: how many of its slaves are in sync; a slave: how far it is behind."""
    facts = broker.facts
    if broker.is_slave:
        master = next((one for one in snapshot.masters if one.name == broker.broker_name), None)
        seen = master.facts.services.slaves if master is not None and master.facts is not None else ()
        mine = next((one for one in seen if master and name_of(one.address, master, snapshot) == broker.name), None)
        if mine is None:
            return gettext("not connected to its master")
        behind = {"size": units.size(mine.behind_bytes)}
        return (gettext("in sync, %(size)s behind") if mine.in_sync else gettext("%(size)s behind")) % behind
    if facts is None:
        return units.UNKNOWN
    slaves = facts.services.slaves
    if not slaves:
        return gettext("accepts messages")
    numbers = {"in_sync": sum(slave.in_sync for slave in slaves), "count": len(slaves)}
    text = ngettext("%(in_sync)s of %(count)s slave in sync", "%(in_sync)s of %(count)s slaves in sync", len(slaves))
    return text % numbers
