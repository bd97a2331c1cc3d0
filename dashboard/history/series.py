"""What a snapshot says as numbers with names. Pure.

A series is named KIND or KIND:SUBJECT. What is not known this time has no number: it becomes a gap, never a zero.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from dashboard.status.board import FRESH_S, BrokerState, Snapshot, WatchedGroup
from dashboard.status.cluster_metrics import total_lag
from dashboard.status.failover import (
    Failover,
    seconds_full,
    seconds_of_etcd,
    seconds_paused,
    seconds_thin,
    seconds_unfilled,
)
from dashboard.status.readers import readers_of
from dashboard.status.slave_metrics import seen_slaves
from gantrymq.remoting.admin_bodies import SlaveDifference

SEEN_FRESH_S = 60.0  # groups are looked at in turn: with 5 000 of them, each once in some minutes
SUBJECTS_MAX = 100  # of one kind at one look; the busiest come first
SEPARATOR = ":"
MEAN, MOST, LEAST, LAST = "mean", "most", "least", "last"  # what a minute, and an hour, keeps of its values

IN, OUT, STORED, DISK = "in", "out", "stored", "disk"
LAG, DEAD = "lag", "dead"  # of all groups together; dead letters of all of them
BROKER_IN, BROKER_OUT, BROKER_DISK = "broker-in", "broker-out", "broker-disk"
BROKER_FULL_IN, BROKER_SILENT = "broker-full-in-s", "broker-silent-s"
SLAVE_BEHIND, SLAVE_BYTES, SLAVE_MESSAGES = "slave-behind-s", "slave-behind-bytes", "slave-behind-messages"
SLAVE_IN_SYNC, SLAVE_FED = "slave-in-sync", "slave-bytes-rate"  # 1: in sync, 0: not; bytes a second
TOPIC_IN, TOPIC_OUT, TOPIC_LAG, TOPIC_SIZE = "topic-in", "topic-out", "topic-lag", "topic-bytes"
GROUP_LAG, GROUP_BEHIND, GROUP_IN, GROUP_OUT = "group-lag", "group-behind-s", "group-in", "group-out"
GROUP_ALONE, GROUP_RISING, GROUP_LEASE = "group-alone-s", "group-rising-s", "group-lease-s"
DEAD_LETTERS = "dead-letters"
NO_SUCCESSOR, IN_SYNC_SMALL = "no-successor-s", "in-sync-small-s"
ETCD_ANSWER, ETCD_FULL, FAILOVER_PAUSED = "etcd-answer-s", "etcd-full-s", "failover-paused-s"

KEEPS = {  # kind → what is kept of the values of a longer step
    IN: MEAN, OUT: MEAN, STORED: LAST, DISK: MOST, LAG: MOST, DEAD: MOST,
    BROKER_IN: MEAN, BROKER_OUT: MEAN, BROKER_DISK: MOST,
    BROKER_FULL_IN: LEAST, BROKER_SILENT: MOST,
    SLAVE_BEHIND: MOST, SLAVE_BYTES: MOST, SLAVE_MESSAGES: MOST, SLAVE_IN_SYNC: MEAN, SLAVE_FED: MEAN,
    TOPIC_IN: MEAN, TOPIC_OUT: MEAN, TOPIC_LAG: MOST, TOPIC_SIZE: LAST,
    GROUP_LAG: MOST, GROUP_BEHIND: MOST, GROUP_IN: MEAN, GROUP_OUT: MEAN, GROUP_ALONE: MOST, GROUP_RISING: MOST,
    GROUP_LEASE: MOST,
    DEAD_LETTERS: MOST, NO_SUCCESSOR: MOST, IN_SYNC_SMALL: MOST, ETCD_ANSWER: MOST, ETCD_FULL: MOST,
    FAILOVER_PAUSED: MOST,
}  # fmt: skip
OF_SLAVES = (SLAVE_BEHIND, SLAVE_BYTES, SLAVE_MESSAGES, SLAVE_IN_SYNC, SLAVE_FED)
EACH_SECOND = frozenset((IN, OUT, BROKER_IN, BROKER_OUT, *OF_SLAVES))  # kinds that are kept by the second, too
Readings = dict[str, float]


def name_for(kind: str, subject: str = "") -> str:
    return f"{kind}{SEPARATOR}{subject}" if subject else kind


def kind_of(series: str) -> str:
    return series.partition(SEPARATOR)[0]


def subject_of(series: str) -> str:
    return series.partition(SEPARATOR)[2]


def each_second(snapshot: Snapshot) -> Readings:
    """What is known of this very second: the cluster's and each broker's rates, disks, slaves."""
    found: Readings = {}
    for name, fact in ((IN, "in_now"), (OUT, "out_now")):
        value, at, _ = snapshot.known_sum(fact)
        if value is not None and at is not None and snapshot.at - at < FRESH_S:
            found[name] = value
    disks = []
    for broker in snapshot.brokers:
        found[name_for(BROKER_SILENT, broker.name)] = seconds_silent(broker, snapshot.at)
        if broker.is_answering and broker.facts is not None:
            found |= _of_broker(broker)
            disks.append(broker.facts.disk_ratio)
    known = [ratio for ratio in disks if ratio is not None]
    if known:
        found[DISK] = max(known)
    if snapshot.stored is not None and not snapshot.stored.missing:
        found[STORED] = snapshot.stored.messages
    return found | of_slaves(snapshot)


def of_failover(snapshot: Snapshot, kind: str) -> dict[str, float | None]:
    """One of these kinds, by broker name; None: not known now."""
    return {name: _OF_FAILOVER[kind](each, snapshot.at) for name, each in snapshot.failovers.items()}


def now_and_then(snapshot: Snapshot) -> Readings:
    """What is looked at in turn: topics, groups, dead letters. The busiest of each kind."""
    found: Readings = {}
    found |= _busiest(TOPIC_IN, ((name, one.in_rate) for name, one in snapshot.topics.items()))
    found |= _busiest(TOPIC_SIZE, snapshot.topic_sizes.items())
    groups = [group for group in snapshot.groups if snapshot.at - group.at < SEEN_FRESH_S and not group.is_partial]
    readers = readers_of(groups)
    found |= _busiest(TOPIC_OUT, ((topic, one.out_rate) for topic, one in readers.items()))
    found |= _busiest(TOPIC_LAG, ((topic, one.lag) for topic, one in readers.items()))
    for kind, value in _OF_GROUPS.items():
        found |= _busiest(kind, ((group.name, value(group)) for group in groups))
    found |= _busiest(GROUP_ALONE, ((group.name, seconds_alone(group, snapshot.at)) for group in groups))
    found |= _busiest(GROUP_RISING, ((group.name, seconds_rising(group)) for group in groups))
    lag, is_whole = total_lag(snapshot)
    if lag is not None and is_whole:
        found[LAG] = lag
    for kind in _OF_FAILOVER:
        found |= _busiest(kind, of_failover(snapshot, kind).items())
    if snapshot.stored is not None:
        found[DEAD] = sum(count for _, count in snapshot.stored.dead_letters)
        found |= _busiest(DEAD_LETTERS, snapshot.stored.dead_letters)
    return found


def seconds_alone(group: WatchedGroup, now: float) -> float | None:
    """How long messages have waited with no member there; 0: that is not so."""
    if group.members is None or group.lag is None:
        return None
    return now - group.alone_since if group.alone_since is not None else 0.0


def seconds_rising(group: WatchedGroup) -> float | None:
    """How long its lag had grown at the last look; 0: it did not."""
    if group.lag is None or group.is_partial:
        return None
    return group.at - group.rising_since if group.rising_since is not None else 0.0


def seconds_leased(group: WatchedGroup) -> float | None:
    """How long its oldest message in flight has been with a member; 0: none is in flight."""
    return None if group.lag is None else group.oldest_lease_ms / 1000


def seconds_silent(broker: BrokerState, now: float) -> float:
    """How long a broker has not answered; 0: it answers."""
    return 0.0 if broker.is_answering else max(0.0, now - (broker.failing_since or now))


def of_slaves(snapshot: Snapshot, kinds: Iterable[str] = OF_SLAVES) -> Readings:
    """How far each slave is, and what it is fed. Of slaves that share a name, the worst."""
    found: Readings = {}
    for _, name, slave in islice(seen_slaves(snapshot), SUBJECTS_MAX):
        for kind in kinds:
            value, series = _OF_SLAVE[kind](slave), name_for(kind, name)
            if value is not None:
                worse = min if kind == SLAVE_IN_SYNC else max
                found[series] = worse(value, found.get(series, value))
    return found


_OF_SLAVE: dict[str, Callable[[SlaveDifference], float | None]] = {
    SLAVE_BEHIND: lambda slave: slave.behind_seconds,
    SLAVE_BYTES: lambda slave: slave.behind_bytes,
    SLAVE_MESSAGES: lambda slave: slave.behind_messages if slave.behind_messages >= 0 else None,
    SLAVE_IN_SYNC: lambda slave: float(slave.in_sync),
    SLAVE_FED: lambda slave: slave.bytes_per_second,
}
_OF_FAILOVER: dict[str, Callable[[Failover, float], float | None]] = {
    NO_SUCCESSOR: seconds_unfilled,
    IN_SYNC_SMALL: seconds_thin,
    ETCD_ANSWER: seconds_of_etcd,
    ETCD_FULL: seconds_full,
    FAILOVER_PAUSED: seconds_paused,
}
_OF_GROUPS: dict[str, Callable[[WatchedGroup], float | None]] = {
    GROUP_LAG: lambda group: group.lag,
    GROUP_BEHIND: lambda group: None if group.lag_ms is None else group.lag_ms / 1000,
    GROUP_IN: lambda group: group.in_rate,
    GROUP_OUT: lambda group: group.out_rate,
    GROUP_LEASE: seconds_leased,
}


def _of_broker(broker: BrokerState) -> Readings:
    assert broker.facts is not None
    values = {
        BROKER_IN: broker.facts.in_now,
        BROKER_OUT: broker.facts.out_now,
        BROKER_DISK: broker.facts.disk_ratio,
        BROKER_FULL_IN: broker.facts.disk_full_in_s,
    }
    return {name_for(kind, broker.name): value for kind, value in values.items() if value is not None}


def _busiest(kind: str, values: Iterable[tuple[str, float | None]]) -> Readings:
    known = ((subject, value) for subject, value in values if value is not None)
    return {
        name_for(kind, subject): value for subject, value in heapq.nlargest(SUBJECTS_MAX, known, key=lambda one: one[1])
    }


@dataclass(slots=True)
class Several:
    """The values of one step so far."""

    count: int = 0
    total: float = 0.0
    most: float = float("-inf")
    least: float = float("inf")
    last: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.most = max(self.most, value)
        self.least = min(self.least, value)
        self.last = value

    def kept(self, kind: str) -> float:
        """What the step keeps of them."""
        how = KEEPS.get(kind, MEAN)
        return {MEAN: self.total / self.count, MOST: self.most, LEAST: self.least, LAST: self.last}[how]
