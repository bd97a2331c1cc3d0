"""What the AdminClient's calls over several brokers return. Offsets are queue offsets; None means unknown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gantrymq.client.produce.trace_records import TraceRecord
from gantrymq.errors import GantryError
from gantrymq.message.model import MessageQueue


@dataclass(slots=True)
class QueueProgress:
    """A group's place in one queue. consumer_offset is None when the group never wrote one there: its lag is unknown.

    last_consumed_ms: store time of the last consumed message; lag_ms: how long the oldest message not consumed waits
    already (our brokers tell); client_id: who consumes the queue now, if that was asked for. done_ahead: messages
    behind consumer_offset that a group that pops is done with; in_flight: those that its members have now.
    """

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int | None
    last_consumed_ms: int | None = None
    lag_ms: int | None = None
    client_id: str | None = None
    done_ahead: int = 0
    in_flight: int = 0

    @property
    def lag(self) -> int | None:
        """Messages not consumed yet."""
        if self.consumer_offset is None:
            return None
        return max(self.broker_offset - self.consumer_offset - self.done_ahead, 0)


@dataclass(slots=True)
class GroupProgress:
    """A group's place in all queues; failures: brokers (by name) that did not answer, whose queues are missing."""

    queues: list[QueueProgress] = field(default_factory=list)
    consume_tps: float = 0.0
    failures: dict[str, GantryError] = field(default_factory=dict)

    @property
    def lag(self) -> int | None:
        """Messages not consumed yet, None when that is unknown of every queue."""
        known = [queue.lag for queue in self.queues if queue.lag is not None]
        return sum(known) if known else None


@dataclass(slots=True)
class QueueMove:
    """A group's offset in one queue before and after a reset or clone. address: the queue's broker."""

    queue: MessageQueue
    address: str
    before: int | None
    after: int

    @property
    def skipped(self) -> int:
        """Messages that would not be consumed."""
        return 0 if self.before is None else max(self.after - self.before, 0)

    @property
    def repeated(self) -> int:
        """Messages that would be consumed again."""
        return 0 if self.before is None else max(self.before - self.after, 0)


@dataclass(slots=True)
class MessageTrace:
    """What producers and consumers told the trace topic about one message, in the order of time."""

    msg_id: str
    records: list[TraceRecord]


DeliveryState = Literal["consumed", "not yet", "unknown"]


@dataclass(slots=True)
class Delivery:
    """Whether a group has consumed a message; online: it has members."""

    group: str
    state: DeliveryState
    is_online: bool


@dataclass(slots=True)
class TopicTraffic:
    """Messages a second over the last minute, and in the last 24 hours, of a topic; with a group: what it consumed."""

    topic: str
    group: str | None
    in_tps: float
    in_today: int
    out_tps: float | None = None
    out_today: int | None = None
    lag: int | None = None


@dataclass(slots=True)
class DirectResult:
    """What a listener made of a message that a tool handed to it."""

    outcome: str  # CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION ...
    took_ms: int
    remark: str | None
