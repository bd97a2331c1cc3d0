"""What the gateway hands out: values ready for a page, each with its age or the reason why it is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dashboard.cluster.message_values import MessageLine, with_damaged
from gantrymq.client.results import LostMessage
from gantrymq.message import topics
from gantrymq.message.model import MessageExt
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Reading(Generic[Value]):
    """A value as read at `at` (epoch seconds), or None with `why`: unknown, which is not zero."""

    value: Value | None
    at: float
    why: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerRef:
    """Where one broker is. broker_id: 0 is the master, higher ones are slaves, which have the master's name."""

    name: str
    address: str
    cluster: str
    broker_id: int = 0

    @property
    def key(self) -> str:
        """A text of its own for each: the master's is the name."""
        return f"{self.name}:{self.broker_id}" if self.broker_id else self.name


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The brokers as the name server lists them. `why` is set when these are the last known ones.

    brokers: the masters, which take messages and changes.
    """

    brokers: tuple[BrokerRef, ...]
    at: float
    why: str | None = None
    slaves: tuple[BrokerRef, ...] = ()

    def named(self, key: str) -> BrokerRef | None:
        return next((broker for broker in (*self.brokers, *self.slaves) if broker.key == key), None)


@dataclass(frozen=True, slots=True)
class PartialFailure:
    """A broker or queue that could not be asked; the page shows the rest and says so."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerExtent:
    """The part of a topic that one broker has."""

    broker_name: str
    stored: int
    put_total: int
    in_rate: float | None = None
    rated_since: float = 0.0  # where the time begins that in_rate is a mean of


@dataclass(frozen=True, slots=True)
class TopicMetrics:
    """A topic's extent over all answering brokers. in_rate: of `mean_rate`."""

    stored: int
    put_total: int  # sum of the queues' ends
    last_write_ms: int  # 0: never, or nothing left
    in_rate: float | None = None
    extents: tuple[BrokerExtent, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """A topic's configuration on one broker."""

    broker_name: str
    read_queues: int
    write_queues: int
    perm: int
    order: bool
    retention_ms: int | None = None  # how long a message can be read; None: as long as the commit log keeps it
    retention_messages: int | None = None  # how many of each queue; None: no limit of the topic's own
    without_effect: tuple[
        str, ...
    ] = ()  # attributes that a GantryMQ broker keeps without effect, "message.type=NORMAL"

    @property
    def perm_text(self) -> str:
        return perm_text(self.perm)


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in the list."""

    name: str
    kind: str  # normal, retry, dead letter, system
    settings: tuple[TopicSettings, ...]
    metrics: Reading[TopicMetrics] | None = None

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(item.broker_name for item in self.settings)

    @property
    def write_queues(self) -> int:
        return sum(item.write_queues for item in self.settings)

    @property
    def read_queues(self) -> int:
        return sum(item.read_queues for item in self.settings)

    @property
    def perm_text(self) -> str:
        texts = {item.perm_text for item in self.settings}
        return texts.pop() if len(texts) == 1 else "differs"


@dataclass(frozen=True, slots=True)
class TopicListing:
    """All topics, and what could not be asked."""

    rows: tuple[TopicSummary, ...]
    at: float
    failures: tuple[PartialFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueExtent:
    """One queue of a topic on one broker: the offsets it holds."""

    broker_name: str
    queue_id: int
    min_offset: int
    max_offset: int
    last_write_ms: int

    @property
    def stored(self) -> int:
        return self.max_offset - self.min_offset

    @property
    def key(self) -> str:
        return f"{self.broker_name}.{self.queue_id}"


@dataclass(frozen=True, slots=True)
class TopicDetail:
    """All of one topic."""

    name: str
    kind: str
    settings: tuple[TopicSettings, ...]
    queues: tuple[QueueExtent, ...]
    addresses: Mapping[str, str]  # broker name to address, for the route
    at: float
    failures: tuple[PartialFailure, ...] = ()
    read_at: Mapping[str, float] = field(default_factory=dict)  # broker to when it told its queues

    @property
    def stored(self) -> int:
        return sum(queue.stored for queue in self.queues)

    @property
    def put_total(self) -> int:
        return sum(queue.max_offset for queue in self.queues)

    @property
    def last_write_ms(self) -> int:
        return max((queue.last_write_ms for queue in self.queues), default=0)

    @property
    def retention_differs(self) -> bool:
        return len({(item.retention_ms, item.retention_messages) for item in self.settings}) > 1

    @property
    def first_settings(self) -> TopicSettings:
        return self.settings[0]


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages newest first, the cursor of the next older page, and what could not be asked."""

    messages: tuple[MessageExt, ...]
    older: str | None
    scanned: int
    took_ms: float
    at: float
    failures: tuple[PartialFailure, ...] = field(default_factory=tuple)
    elsewhere: MessageExt | None = None  # the message of an id that is in another topic
    damaged: tuple[LostMessage, ...] = ()  # they can't be read

    @property
    def lines(self) -> tuple[MessageLine, ...]:
        """All of them, the damaged ones too."""
        return tuple(with_damaged(map(MessageLine.of, self.messages), self.damaged))


def perm_text(perm: int) -> str:
    """The permission bits as words."""
    names = {PERM_READ | PERM_WRITE: "read, write", PERM_READ: "read only", PERM_WRITE: "write only"}
    return names.get(perm & (PERM_READ | PERM_WRITE), "none")


def topic_kind(name: str, own_names: frozenset[str] = frozenset()) -> str:
    """What sort of topic a name is; `own_names` are those of clusters and brokers, which are topics too."""
    kind = topics.topic_kind(name, own_names)
    return "system" if kind == "normal" and name.endswith("_REPLY_TOPIC") else kind


RATE_S = 60.0  # older looks count less and less, as members tell their own rates
# What is left of a rate that has ended: of one message in a look, after RATE_S. More would forget each message of a
# slow topic before the next comes.
RATE_MIN = math.exp(-1) / RATE_S


def rated_since(known: float | None, since: float, at: float) -> float:
    """Where the time begins that a rate is a mean of. known, since: the mean so far; at: of the look that it is of."""
    return at if known is None else since


def mean_rate(number: int | None, seconds: float, known: float | None, known_s: float = math.inf) -> float | None:
    """The one rate of brokers, topics and groups, a mean of about the last minute.

    number: messages within the last `seconds`; known: the mean before them, and known_s: of how many seconds, so that
    that of a first second does not count as one of a minute. None where it can't be known: no number, or the counter
    went back.
    """
    if number is None or number < 0 or seconds <= 0:
        return None
    rate = number / seconds
    if known is None:
        return rate
    kept = math.exp(-seconds / RATE_S)
    old, new = kept * (1 - math.exp(-known_s / RATE_S)), 1 - kept
    found = (old * known + new * rate) / (old + new)
    return found if rate or found >= RATE_MIN else 0.0
