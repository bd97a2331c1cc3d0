"""What a rule can watch: a number for each subject, its unit, and where its history is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from django.utils.translation import gettext_noop

from appliance.settings.alert_names import RuleKind
from dashboard.cluster import units
from dashboard.history import series
from dashboard.language.sentences import gettext, ngettext
from dashboard.status.board import Snapshot, WatchedGroup
from dashboard.status.check import Harm, Level
from dashboard.status.failover import level_full
from dashboard.status.slave_checks import gone_slave

Readings = Mapping[str, float | None]  # subject → value; None: there, but not known now
Causes = Mapping[str, tuple[str, ...]]  # subject → what it is of
Levels = Mapping[str, Level]  # subject → how bad the check of the same thing finds it
CLUSTER = "cluster"
GONE_S = 60.0  # a subject that is not there for so long is over
A_DAY_S = 86_400.0


def _as_set(snapshot: Snapshot) -> Levels:
    """Alerts are as bad as their rule says."""
    return {}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of rule. is_below: it rings when the value is below the threshold. series: its history's kind.

    scale: of a reading to the unit that people write. gone_s: how long a subject that is not there any more still
    counts as it was: a dead broker leaves the list, and is no less dead for that. causes: subjects with the same one
    are one alert. levels: an alert is no worse than that, whatever its rule says. harm: as checks say it.
    """

    key: RuleKind
    label: str
    about: str  # what a subject is
    unit: str  # a person's: s, msg, %, h, msg/s
    read: Callable[[Snapshot], Readings]
    series: str
    page: str = ""  # the page of a subject: a name of dashboard/urls.py
    scale: float = 1.0
    is_below: bool = False
    gone_s: float = GONE_S
    causes: Callable[[Snapshot], Causes] = lambda snapshot: {}
    levels: Callable[[Snapshot], Levels] = _as_set
    harm: Harm = Harm.SLOWS

    def is_beyond(self, value: float, limit: float) -> bool:
        return value <= limit if self.is_below else value >= limit

    @property
    def words(self) -> str:
        """The label in the language of the page."""
        return gettext(self.label)

    def shown(self, value: float) -> str:
        """A value for people."""
        if self.unit == "s":
            return units.duration(round(value))
        if value == inf:  # a disk that no longer fills up
            return gettext("not filling up")
        if self.unit == "h":
            return units.duration(round(value * 3600))
        if self.unit == "%":
            return units.percent(value / 100)
        if self.unit == "msg/s":
            return gettext("%(rate)s msg/s") % {"rate": units.rate(value)}
        return ngettext("%(count)s message", "%(count)s messages", round(value)) % {"count": units.count(round(value))}


def _keeping_offsets(snapshot: Snapshot) -> list[WatchedGroup]:
    """The groups whose places brokers keep. One that broadcasts is not there: what it was is over, not unknown."""
    return [group for group in snapshot.groups if not group.is_broadcasting]


def _behind(snapshot: Snapshot) -> Readings:
    groups = _keeping_offsets(snapshot)
    return {group.name: None if group.lag_ms is None else group.lag_ms / 1000 for group in groups}


def _lag(snapshot: Snapshot) -> Readings:
    return {group.name: group.lag for group in _keeping_offsets(snapshot)}


def _alone(snapshot: Snapshot) -> Readings:
    return {group.name: series.seconds_alone(group, snapshot.at) for group in _keeping_offsets(snapshot)}


def _rising(snapshot: Snapshot) -> Readings:
    return {group.name: series.seconds_rising(group) for group in _keeping_offsets(snapshot)}


def _leased(snapshot: Snapshot) -> Readings:
    return {group.name: series.seconds_leased(group) for group in _keeping_offsets(snapshot)}


def _dead_letters(snapshot: Snapshot) -> Readings:
    if snapshot.stored is None or snapshot.stored.missing:
        return dict.fromkeys((group.name for group in snapshot.groups), None)
    return dict.fromkeys((group.name for group in snapshot.groups), 0) | dict(snapshot.stored.dead_letters)


def _disk_used(snapshot: Snapshot) -> Readings:
    ratios = {broker.name: broker.facts.disk_ratio if broker.facts else None for broker in snapshot.brokers}
    return {name: None if ratio is None else ratio * 100 for name, ratio in ratios.items()}


def _disk_full_in(snapshot: Snapshot) -> Readings:
    """Hours. A disk that does not fill up never is full; a broker that does not tell is not known."""
    found: dict[str, float | None] = {}
    for broker in snapshot.brokers:
        facts = broker.facts
        if facts is None or not broker.is_answering or facts.disk_growth is None:
            found[broker.name] = None
        else:
            found[broker.name] = facts.disk_full_within_s / 3600
    return found


def _disks(snapshot: Snapshot) -> Causes:
    return {broker.name: broker.disk for broker in snapshot.brokers}


def _silent(snapshot: Snapshot) -> Readings:
    return {broker.name: series.seconds_silent(broker, snapshot.at) for broker in snapshot.brokers}


def _slave_behind(snapshot: Snapshot) -> Readings:
    """Seconds; a slave that is gone falls behind by each second that it is gone."""
    behind = series.of_slaves(snapshot, [series.SLAVE_BEHIND])
    found: dict[str, float | None] = {series.subject_of(name): value for name, value in behind.items()}
    for master in snapshot.masters:
        if master.is_answering and master.facts is not None:
            found |= {gone_slave(host): float(seconds) for host, seconds in master.facts.services.slaves_gone}
    return found


def _failover(kind: str) -> Callable[[Snapshot], Readings]:
    return lambda snapshot: series.of_failover(snapshot, kind)


def _levels_of_etcd(snapshot: Snapshot) -> Levels:
    """One that is good again, or did not tell this time, is no worse than before until its alert is over."""
    return {name: max(level_full(failover), Level.WARN) for name, failover in snapshot.failovers.items()}


def _cluster_in(snapshot: Snapshot) -> Readings:
    return {CLUSTER: series.each_second(snapshot).get(series.IN)}


def _cluster_out(snapshot: Snapshot) -> Readings:
    return {CLUSTER: series.each_second(snapshot).get(series.OUT)}


def _topic_in(snapshot: Snapshot) -> Readings:
    return {name: topic.in_rate for name, topic in snapshot.topics.items()}


KINDS: dict[str, Kind] = {
    kind.key: kind
    for kind in (
        Kind(
            RuleKind.GROUP_BEHIND,
            gettext_noop("Group is behind by time"),
            "group",
            "s",
            _behind,
            series.GROUP_BEHIND,
            "group",
        ),
        Kind(
            RuleKind.GROUP_LAG,
            gettext_noop("Group is behind by messages"),
            "group",
            "messages",
            _lag,
            series.GROUP_LAG,
            "group",
        ),
        Kind(
            RuleKind.GROUP_ALONE,
            gettext_noop("Messages are waiting and the group has no members"),
            "group",
            "s",
            _alone,
            series.GROUP_ALONE,
            "group",
            harm=Harm.STOPS,
        ),
        Kind(
            RuleKind.GROUP_RISING,
            gettext_noop("Lag is growing"),
            "group",
            "s",
            _rising,
            series.GROUP_RISING,
            "group",
        ),
        Kind(
            RuleKind.GROUP_LEASE,
            gettext_noop("Oldest message in flight"),
            "group",
            "s",
            _leased,
            series.GROUP_LEASE,
            "group",
        ),
        Kind(
            RuleKind.DEAD_LETTERS,
            gettext_noop("Dead letters"),
            "group",
            "messages",
            _dead_letters,
            series.DEAD_LETTERS,
            "dead-letters-group",
        ),
        Kind(
            RuleKind.DISK_FULL_IN,
            gettext_noop("Disk is full within"),
            "broker",
            "h",
            _disk_full_in,
            series.BROKER_FULL_IN,
            scale=1 / 3600,
            is_below=True,
            causes=_disks,
            harm=Harm.WILL,
        ),
        Kind(
            RuleKind.DISK_USED,
            gettext_noop("Disk is used up to"),
            "broker",
            "%",
            _disk_used,
            series.BROKER_DISK,
            scale=100,
            causes=_disks,
            harm=Harm.WILL,
        ),
        Kind(
            RuleKind.BROKER_SILENT,
            gettext_noop("Broker does not answer"),
            "broker",
            "s",
            _silent,
            series.BROKER_SILENT,
            gone_s=A_DAY_S,
            harm=Harm.STOPS,
        ),
        Kind(
            RuleKind.SLAVE_BEHIND,
            gettext_noop("Slave is behind its master"),
            "slave",
            "s",
            _slave_behind,
            series.SLAVE_BEHIND,
        ),
        *(
            Kind(key, label, "broker", "s", _failover(kept), kept, "broker-succession", levels=levels)
            for key, label, kept, levels in (
                (RuleKind.NO_SUCCESSOR, gettext_noop("No member could take over"), series.NO_SUCCESSOR, _as_set),
                (
                    RuleKind.IN_SYNC_SMALL,
                    gettext_noop("In-sync set has no spare member"),
                    series.IN_SYNC_SMALL,
                    _as_set,
                ),
                (RuleKind.ETCD_SLOW, gettext_noop("etcd answers late or not at all"), series.ETCD_ANSWER, _as_set),
                (
                    RuleKind.ETCD_FULL,
                    gettext_noop("etcd is full or never compacted"),
                    series.ETCD_FULL,
                    _levels_of_etcd,
                ),
                (RuleKind.FAILOVER_PAUSED, gettext_noop("Failover is paused"), series.FAILOVER_PAUSED, _as_set),
            )
        ),
        Kind(
            RuleKind.IN_ABOVE, gettext_noop("Messages arrive faster than"), "cluster", "msg/s", _cluster_in, series.IN
        ),
        Kind(
            RuleKind.IN_BELOW,
            gettext_noop("Messages arrive slower than"),
            "cluster",
            "msg/s",
            _cluster_in,
            series.IN,
            is_below=True,
        ),
        Kind(
            RuleKind.OUT_BELOW,
            gettext_noop("Messages are consumed slower than"),
            "cluster",
            "msg/s",
            _cluster_out,
            series.OUT,
            is_below=True,
        ),
        Kind(
            RuleKind.TOPIC_ABOVE,
            gettext_noop("A topic receives more than"),
            "topic",
            "msg/s",
            _topic_in,
            series.TOPIC_IN,
            "topic",
        ),
        Kind(
            RuleKind.TOPIC_BELOW,
            gettext_noop("A topic receives less than"),
            "topic",
            "msg/s",
            _topic_in,
            series.TOPIC_IN,
            "topic",
            is_below=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A rule that is on from the start."""

    name: str
    kind: str
    threshold: float
    clear: float
    for_s: float
    clear_s: float
    level: Level


PRESETS = (
    Preset(gettext_noop("A group is behind"), RuleKind.GROUP_BEHIND, 300, 240, 10, 60, Level.WARN),
    Preset(gettext_noop("A group has no members"), RuleKind.GROUP_ALONE, 20, 0, 0, 10, Level.WARN),
    Preset(gettext_noop("A group's lag is growing"), RuleKind.GROUP_RISING, 600, 0, 0, 60, Level.WARN),
    Preset(gettext_noop("A group has dead letters"), RuleKind.DEAD_LETTERS, 1, 0, 0, 60, Level.WARN),
    Preset(gettext_noop("A disk will be full"), RuleKind.DISK_FULL_IN, 6, 8, 300, 600, Level.BAD),
    Preset(gettext_noop("A disk is 75 % used"), RuleKind.DISK_USED, 75, 72, 300, 600, Level.WARN),
    Preset(gettext_noop("A broker does not answer"), RuleKind.BROKER_SILENT, 15, 0, 0, 5, Level.BAD),
    Preset(gettext_noop("A slave is behind"), RuleKind.SLAVE_BEHIND, 30, 5, 30, 60, Level.WARN),
    Preset(gettext_noop("No member could take over"), RuleKind.NO_SUCCESSOR, 30, 0, 0, 10, Level.BAD),
    Preset(gettext_noop("One more lost member stops sends"), RuleKind.IN_SYNC_SMALL, 60, 0, 0, 10, Level.WARN),
    Preset(gettext_noop("etcd is slow or away"), RuleKind.ETCD_SLOW, 1, 0.5, 10, 30, Level.BAD),
    Preset(gettext_noop("etcd is full or never compacted"), RuleKind.ETCD_FULL, 5, 0, 0, 30, Level.BAD),
    Preset(gettext_noop("A pause of failover was forgotten"), RuleKind.FAILOVER_PAUSED, 3600, 0, 0, 0, Level.WARN),
)


def is_named_by_its_kind(name: str, kind: str, threshold: float) -> bool:
    """Whether the name says the condition already: a preset's, as it was made."""
    return any((name, kind, threshold) == (preset.name, preset.kind, preset.threshold) for preset in PRESETS)


def name_in_words(name: str) -> str:
    """A rule's name: those of the rules that are on from the start in the language of the page, a person's as it is."""
    return gettext(name) if any(name == preset.name for preset in PRESETS) else name
