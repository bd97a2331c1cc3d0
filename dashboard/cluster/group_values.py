"""What the gateway hands out about consumer groups. None is unknown, which is not zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboard.cluster.values import PartialFailure
from dashboard.language.sentences import gettext
from gantrymq.client.admin.results import QueueMove
from gantrymq.message.topics import SYSTEM_GROUP_PREFIX, is_retry_topic
from gantrymq.remoting.admin_bodies import SubscriptionParty
from gantrymq.remoting.pop_bodies import LeasedMessage

SYSTEM_GROUPS = frozenset({"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
                           "CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A consumer group in a list. lag: messages not yet consumed; lag_ms: age of the oldest of them.

    is_partial: a broker was not heard, so that lags and members are at least so many; `why` names it.
    oldest_lease_ms: how long ago the message was delivered that is longest in flight; 0: none is.
    """

    name: str
    lag: int | None = None
    lag_ms: int | None = None
    last_consumed_ms: int = 0  # store time of the newest message it confirmed; 0 none
    members: int | None = None
    disagrees: bool = False  # its members subscribe to different things
    is_suspended: bool = False  # a broker hands out nothing to it
    why: str | None = None
    is_partial: bool = False
    places: tuple[GroupPlace, ...] = ()
    oldest_lease_ms: int = 0
    is_broadcasting: bool = False  # each member keeps its own offsets: no broker knows a lag


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """How far a group is in a topic on one broker, over its queues there. Rates are messages a second.

    consumer_offset: messages that it is done with, also those that one that pops has acknowledged out of order.
    in_flight: those of the lag that members of a group that pops have. rated_since: where the time begins that the
    rates are means of.
    """

    topic: str
    broker_name: str
    consumer_offset: int
    lag: int
    lag_ms: int | None
    in_flight: int = 0
    consume_rate: float | None = None
    produce_rate: float | None = None
    rated_since: float = 0.0

    @property
    def end(self) -> int:
        """Where the queues end, as a sum."""
        return self.consumer_offset + self.lag


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A group's place in one queue. consumer_offset None: it never confirmed anything there.

    done_ahead: messages behind it that a group that pops is done with; in_flight: those that its members have.
    """

    topic: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int | None
    lag_ms: int | None
    last_consumed_ms: int
    owner: str | None = None  # the client that holds the queue now
    done_ahead: int = 0
    in_flight: int = 0

    @property
    def lag(self) -> int | None:
        if self.consumer_offset is None:
            return None
        return max(self.broker_offset - self.consumer_offset - self.done_ahead, 0)

    @property
    def is_retry(self) -> bool:
        return is_retry_topic(self.topic)


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A connected member of a group."""

    client_id: str
    address: str
    language: str
    brokers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InFlight:
    """A message of a group that pops: a member has it and did not acknowledge it. Times: ms since the epoch."""

    broker_name: str
    message: LeasedMessage

    @property
    def place(self) -> str:
        """As the addresses of pages have it."""
        return f"{self.broker_name}.{self.message.queue_id}.{self.message.offset}"


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A group's settings on one broker."""

    broker_name: str
    consume_enable: bool
    broadcast_enable: bool
    retry_max_times: int
    retry_queues: int


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """All of one consumer group."""

    name: str
    settings: tuple[GroupSettings, ...]
    queues: tuple[QueuePlace, ...]
    clients: tuple[GroupMember, ...]
    subscriptions: tuple[tuple[str, str, str], ...]  # topic, expression, its type
    parties: tuple[SubscriptionParty, ...]  # who wants what, where members disagree
    message_model: str
    at: float
    failures: tuple[PartialFailure, ...] = ()
    running: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # client id to its answer to request 307
    modes: Mapping[str, str] = field(default_factory=dict)  # topic to POP or PULL, where brokers say it
    leases: tuple[InFlight, ...] = ()  # the oldest
    in_flight: int = 0
    is_broadcasting: bool = False  # then brokers know no places; message_model is that of the last heartbeat alone

    @property
    def is_partial(self) -> bool:
        """A broker was not heard: what is known is the least that can be."""
        return bool(self.failures)

    @property
    def is_popping(self) -> bool:
        return "POP" in self.modes.values()

    @property
    def lag(self) -> int | None:
        return total_lag(self.queues)

    @property
    def lag_ms(self) -> int | None:
        return worst_lag_ms((queue.lag, queue.lag_ms) for queue in self.queues)

    @property
    def topics(self) -> list[str]:
        return sorted({queue.topic for queue in self.queues} | {topic for topic, _, _ in self.subscriptions})

    @property
    def resettable_topics(self) -> list[str]:
        return [] if self.is_broadcasting else [topic for topic in self.topics if not is_retry_topic(topic)]

    @property
    def no_reset(self) -> str:
        """Why there is nothing to reset; "" when there is. RocketMQ's brokers refuse it as well."""
        if not self.is_broadcasting:
            return ""
        return gettext("Broadcasting: each member keeps its own offsets, so there is nothing at the brokers to reset.")

    @property
    def suspended_on(self) -> list[str]:
        return [item.broker_name for item in self.settings if not item.consume_enable]


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """Where a reset brings a group. timestamp_ms: -1 the end, 0 the begin; by_offset: to a number instead of a time."""

    group: str
    topic: str
    moves: tuple[QueueMove, ...]
    timestamp_ms: int
    by_offset: bool
    is_online: bool

    @property
    def skipped(self) -> int:
        return sum(move.skipped for move in self.moves)

    @property
    def repeated(self) -> int:
        return sum(move.repeated for move in self.moves)

    @property
    def refusal(self) -> str | None:
        """Why it can't be done now."""
        if self.by_offset and self.is_online:
            return gettext(
                "The group is running: its members would overwrite the offsets. Stop them first, or "
                "choose a time, which running consumers follow."
            )
        return None


def known_lag_ms(lag: int | None, told_ms: int) -> int | None:
    """A queue's lag in time. Brokers that don't tell it say 0, which is true only where nothing waits."""
    if lag is None:
        return None
    if lag == 0:
        return 0
    return told_ms if told_ms > 0 else None


def total_lag(queues: Sequence[QueuePlace]) -> int | None:
    """Messages that wait in the queues with a known place, None when none is known."""
    known = [queue.lag for queue in queues if queue.lag is not None]
    return sum(known) if known else None


def worst_lag_ms(lags: Iterable[tuple[int | None, int | None]]) -> int | None:
    """The greatest lag in time of (lag, lag in ms) by queue; None when one that has a lag does not say."""
    known = [(lag, lag_ms) for lag, lag_ms in lags if lag is not None]
    if not known or any(lag_ms is None for _, lag_ms in known):
        return None
    return max(lag_ms for _, lag_ms in known if lag_ms is not None)


def is_system_group(name: str) -> bool:
    """The cluster's own groups, in which no application consumes."""
    return name in SYSTEM_GROUPS or name.startswith(SYSTEM_GROUP_PREFIX)
