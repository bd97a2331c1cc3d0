"""What is known now: the newest snapshot of the cluster and the last fifteen minutes.

The sampler writes it; pages, REST and sockets read it.

A value carries the moment it was read. What could not be read this second keeps its old value and its old moment, so
that it can be shown greyed with its age; after FORGET_AFTER_S it becomes unknown, with the reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from dashboard.cluster.group_values import GroupPlace
from dashboard.cluster.values import TopicMetrics
from dashboard.language.sentences import gettext, joined
from dashboard.status.check import Check
from dashboard.status.failover import Failovers
from dashboard.status.processes import ProcessFacts
from dashboard.status.services import LaneCounts, Services

HISTORY_S = 15 * 60
FRESH_S = 3.0  # older than this is stale
SILENT_S = 1.5  # so long nothing was heard when one round in vain follows another
FORGET_AFTER_S = 120.0  # older than this is unknown

DISK_RATIOS = ("commitLogDiskRatio", "consumeQueueDiskRatio")  # of broker_runtime_info; the fuller one decides
DISK_MARKS = {  # these only GantryMQ's brokers tell
    "clean": "diskCleanMarkRatio",
    "force": "diskForceMarkRatio",
    "refuse": "diskRefuseMarkRatio",
}
LANES = (  # what a lane is called in broker_runtime_info: (name here, size, capacity, head wait)
    ("send", "sendThreadPoolQueueSize", "sendThreadPoolQueueCapacity", "sendThreadPoolQueueHeadWaitTimeMills"),
    ("pull", "pullThreadPoolQueueSize", "pullThreadPoolQueueCapacity", "pullThreadPoolQueueHeadWaitTimeMills"),
    ("query", "queryThreadPoolQueueSize", "queryThreadPoolQueueCapacity", "queryThreadPoolQueueHeadWaitTimeMills"),
    (
        "transaction",
        "EndTransactionQueueSize",
        "EndTransactionThreadPoolQueueCapacity",
        "EndTransactionQueueHeadWaitTimeMills",
    ),
    *(  # these only GantryMQ's brokers tell
        (name, f"{prefix}Size", f"{prefix}Capacity", f"{prefix}HeadWaitTimeMills")
        for name, prefix in (
            ("reply", "replyThreadPoolQueue"),
            ("heartbeat", "heartbeatThreadPoolQueue"),
            ("client", "clientManagerThreadPoolQueue"),
            ("consumer", "consumerManagerThreadPoolQueue"),
            ("admin", "adminBrokerThreadPoolQueue"),
        )
    ),
)
LANES_OF_ANY_BROKER = 4  # of any RocketMQ
LANE_COUNTS = (  # what the keys begin with that tell what became of a lane's requests
    ("send", "sendThreadPoolQueue"),
    ("pull", "pullThreadPoolQueue"),
    ("query", "queryThreadPoolQueue"),
    ("transaction", "EndTransactionQueue"),
    ("reply", "replyThreadPoolQueue"),
    ("heartbeat", "heartbeatThreadPoolQueue"),
    ("client", "clientManagerThreadPoolQueue"),
    ("consumer", "consumerManagerThreadPoolQueue"),
    ("admin", "adminBrokerThreadPoolQueue"),
)


FULL_SOON_S = 6 * 3600.0  # by the growth of the last half hour


@dataclass(frozen=True, slots=True)
class Lane:
    """A bounded queue of requests in a broker. None: the broker does not say."""

    name: str
    size: int | None
    capacity: int | None
    head_wait_ms: float | None


class DiskMarks(NamedTuple):
    """Used parts of a disk above which a broker acts; RocketMQ's defaults for one that does not say."""

    clean: float = 0.75  # expired messages go at once
    force: float = 0.85  # the oldest messages go early
    refuse: float = 0.90  # writes are refused


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """What one broker said at `at`. Rates are of `mean_rate`; those of now are the last second's alone, for charts."""

    name: str
    address: str
    at: float
    cluster: str = ""
    told: Mapping[str, str] = field(default_factory=dict)  # all that it said
    version: str = ""
    boot_ms: int | None = None
    put_total: int | None = None
    get_total: int | None = None
    in_rate: float | None = None
    out_rate: float | None = None
    rated_since: float = 0.0  # where the time begins that these are means of
    in_now: float | None = None
    out_now: float | None = None
    disk_ratio: float | None = None  # of the partition, 0…1
    disk_marks: DiskMarks = DiskMarks()
    disk_text: str = ""
    disk_growth: float | None = None  # bytes/s of all on the partition; only GantryMQ's brokers say, old enough ones
    disk_full_in_s: float | None = None  # until writes are refused; None when unknown or not filling up
    disk_full_earliest_s: float | None = None  # the likely range of that, where a broker says it
    disk_full_latest_s: float | None = None
    was_disk_full_soon: bool = False  # a second before
    store_trouble: str = ""  # why messages are refused or wait for the disk, in the broker's words
    disk_store_bytes: int | None = None  # of the disk's bytes, those of the store; only GantryMQ's brokers say
    disk_others_bytes: int | None = None
    disk_free_bytes: int | None = None  # with used and reserved ones the whole of the file system
    disk_reserved_bytes: int | None = None  # for the administrator: no broker can write there
    disk_device: str = ""  # what its host calls it; only GantryMQ's brokers say
    disk_filled_by_others: bool = False  # young messages stay, so only refusing is left
    memory_bytes: int | None = None  # resident; only GantryMQ's brokers say
    memory_mapped_bytes: int | None = None  # of these, from files: the log's and the queues' pages
    memory_swapped_bytes: int | None = None  # beside these
    memory_request_bytes: int | None = None  # of those that are not from files: requests being read, or waiting
    memory_subscription_bytes: int | None = None
    memory_timer_bytes: int | None = None
    memory_pool_bytes: int | None = None  # the transient pool's: messages that are not in a file yet
    memory_free_bytes: int | None = None  # freed by the program, kept for its next burst
    memory_other_bytes: int | None = None  # the rest: with these and the mapped ones it is all that is resident
    commit_log_bytes: int | None = None
    behind_bytes: int | None = None
    lanes: tuple[Lane, ...] = ()
    services: Services = field(default_factory=Services)
    refusing: tuple[LaneCounts, ...] = ()  # lanes that refused requests within the last minute, by how much at last
    refused_at: float = 0.0  # when that was

    @property
    def is_disk_full_soon(self) -> bool:
        """Whether it probably is; after that, as long as it may be: an alert must not come and go with each burst."""
        likely, earliest = self.disk_full_in_s, self.disk_full_earliest_s
        may_be = self.was_disk_full_soon and earliest is not None and earliest <= FULL_SOON_S
        return may_be or (likely is not None and likely <= FULL_SOON_S)

    @property
    def disk_full_within_s(self) -> float:
        """What alerts go by: infinite when it does not fill up, and no later than soon while it is full soon."""
        likely = float("inf") if self.disk_full_in_s is None else self.disk_full_in_s
        return min(likely, FULL_SOON_S) if self.is_disk_full_soon else likely

    @property
    def main_lanes(self) -> tuple[Lane, ...]:
        return self.lanes[:LANES_OF_ANY_BROKER]

    @property
    def side_lanes(self) -> tuple[Lane, ...]:
        return self.lanes[LANES_OF_ANY_BROKER:]


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker now: its last facts, and why they are not newer when they are not."""

    name: str  # BrokerRef.key
    address: str
    facts: BrokerFacts | None
    why: str | None = None
    failing_since: float | None = None
    broker_id: int = 0  # 0 is a master

    @property
    def broker_name(self) -> str:
        """The name that master and slaves share."""
        return self.name.rpartition(":")[0] if self.is_slave else self.name

    @property
    def is_slave(self) -> bool:
        return self.broker_id > 0

    @property
    def is_answering(self) -> bool:
        return self.why is None

    def is_silent(self, now: float) -> bool:
        """Whether more than one round was in vain."""
        return self.why is not None and (self.facts is None or now - self.facts.at > SILENT_S)

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0] or self.address

    @property
    def disk(self) -> tuple[str, str]:
        """What its log is on. Apache's brokers say no more of their disk than its size: on one host, those that say
        the same size share one."""
        device = self.facts.disk_device if self.facts is not None else ""
        size = self.facts.disk_text.partition(",")[0] if self.facts is not None else ""
        return self.host, device or size or self.name


@dataclass(frozen=True, slots=True)
class Stored:
    """Messages that can be read now, over all topics that are not the system's, as far as they were counted."""

    messages: int
    topics: int  # those of applications: retries and dead letters are counted with their groups
    at: float  # of the oldest part
    missing: tuple[str, ...] = ()  # brokers that are not in the sum
    dead_letters: tuple[tuple[str, int], ...] = ()  # group and number, most first


@dataclass(frozen=True, slots=True)
class WatchedGroup:
    """A consumer group at the last look. alone_since: messages wait, and no member was there from then on.

    at 0: it was never looked at. Rates: messages a second since the look before, None when that is not known.
    seen_since: offsets since then follow from one another; it was first seen then, or moved by hand.
    """

    name: str
    lag: int | None
    lag_ms: int | None
    members: int | None
    at: float
    alone_since: float | None = None
    is_partial: bool = False  # a broker was not heard: at least so much
    places: tuple[GroupPlace, ...] = ()
    in_rate: float | None = None  # of about the last minute (groups/trend.py): stored in its topics, but for retries
    out_rate: float | None = None
    disagrees: bool = False
    is_suspended: bool = False
    last_consumed_ms: int = 0
    why: str | None = None  # what is not known, and why
    history: tuple[tuple[float, int], ...] = ()  # (when, lag), the oldest first
    minutes: tuple[tuple[float, int], ...] = ()  # the same, one a minute
    idle_since: float | None = None  # nothing was consumed from then on
    rising_since: float | None = None  # its lag has grown from then on
    seen_since: float = 0.0
    oldest_lease_ms: int = 0  # how long ago the message was delivered that is longest in flight; 0: none is
    is_broadcasting: bool = False  # each member keeps its own offsets


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at `at` (epoch seconds)."""

    at: float
    namesrv: str
    namesrv_why: str | None
    brokers: tuple[BrokerState, ...]
    processes: tuple[ProcessFacts, ...]
    stored: Stored | None
    stored_why: str | None = None
    problems: tuple[Check, ...] = ()  # of the appliance itself
    groups: tuple[WatchedGroup, ...] = ()
    topics: Mapping[str, TopicMetrics] = field(default_factory=dict)  # as counted last, without the system's
    failovers: Failovers = field(default_factory=dict)  # by broker name, of those with a record in etcd
    topic_sizes: Mapping[str, int] = field(default_factory=dict)  # bytes in the logs, of those that are known
    open_of_rules: int = 0  # alerts that rules have opened
    alerts_of_rules: tuple[Check, ...] = ()  # the same
    muted: tuple[int, datetime] | None = None  # how many of them are, and when the first mute ends
    acknowledged: frozenset[str] = frozenset()  # identities of checks whose alerts are acknowledged

    @property
    def masters(self) -> tuple[BrokerState, ...]:
        """Those that take messages."""
        return tuple(broker for broker in self.brokers if not broker.is_slave)

    @property
    def has_slaves(self) -> bool:
        return len(self.masters) < len(self.brokers)

    @property
    def had_masters_changed(self) -> bool:
        """Whether a master had slaves that are away now, or took over from another: its epochs are past the first."""
        known = [broker.facts for broker in self.masters if broker.facts is not None]
        return any(facts.services.slaves_gone or _is_later_epoch(facts.told.get("epoch", "")) for facts in known)

    @property
    def has_master_page(self) -> bool:
        """Whether there is, or was, something to choose a master from."""
        return self.has_slaves or self.had_masters_changed

    @property
    def members(self) -> list[BrokerState]:
        """All brokers, each master before its slaves."""
        return sorted(self.brokers, key=lambda broker: (broker.broker_name, broker.broker_id))

    def slaves_of(self, name: str) -> tuple[BrokerState, ...]:
        """The slaves of a broker, by its name."""
        return tuple(broker for broker in self.brokers if broker.is_slave and broker.broker_name == name)

    def known_sum(self, name: str) -> tuple[float | None, float | None, str | None]:
        """(sum over masters of a fact, the age-giving oldest moment, why it is unknown or partial).

        What slaves hand out counts as far as it is known; what they take in are copies.
        """
        if not self.masters:
            return None, None, self.namesrv_why or gettext("no master is registered")
        values, moments = [], []
        if name in ("out_rate", "out_now"):
            slaves = (broker.facts for broker in self.brokers if broker.is_slave and broker.is_answering)
            values += [getattr(facts, name) or 0.0 for facts in slaves if facts is not None]
        for broker in self.masters:
            value = getattr(broker.facts, name) if broker.facts is not None else None
            if broker.facts is None or value is None:
                return None, None, joined([broker.name, broker.why or gettext("known in a second")], ": ")
            values.append(value)
            moments.append(broker.facts.at)
        late = next((joined([broker.name, broker.why], ": ") for broker in self.masters if broker.why), None)
        return sum(values), min(moments), late


def _is_later_epoch(told: str) -> bool:
    return told.isdecimal() and int(told) > 1


class Point(NamedTuple):
    """One second of the chart; None leaves a gap."""

    at: float
    in_rate: float | None
    out_rate: float | None


class Board:
    """The newest snapshot, and the points of the chart."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.open_of_rules = 0  # alerts, as of the last look; the next snapshot carries it
        self.alerts_of_rules: tuple[Check, ...] = ()
        self.muted: tuple[int, datetime] | None = None
        self.present_of_alerts: dict[int, str] = {}  # what shows the open ones now, by row
        self.acknowledged: frozenset[tuple[int | None, str]] = frozenset()  # open alerts: rule (None: a check), subject
        self.of_rules_too: frozenset[str] = frozenset()  # identities of checks whose alerts rules have opened
        self.points: deque[Point] = deque(maxlen=HISTORY_S)

    def put(self, snapshot: Snapshot) -> Point:
        """Take a new snapshot; returns the point that it adds. Values that are not of this second leave a gap."""
        self.snapshot = snapshot
        point = Point(snapshot.at, _fresh(snapshot, "in_now"), _fresh(snapshot, "out_now"))
        self.points.append(point)
        return point

    def clear(self) -> None:
        self.snapshot = None
        self.open_of_rules = 0
        self.alerts_of_rules = ()
        self.muted = None
        self.acknowledged = frozenset()
        self.present_of_alerts = {}
        self.of_rules_too = frozenset()
        self.points.clear()


def _fresh(snapshot: Snapshot, name: str) -> float | None:
    value, at, _ = snapshot.known_sum(name)
    return value if at is not None and snapshot.at - at < FRESH_S else None


board = Board()
