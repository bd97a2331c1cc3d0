"""The keyword arguments of consumers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from gantrymq.client.connection.callbacks import QueuesCallback
from gantrymq.client.connection.option_checks import check_above_zero, check_at_least, check_share, check_types
from gantrymq.client.connection.options import ClientKeywords, ClientOptions
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.rebalance import AllocateStrategy, allocate_averagely
from gantrymq.client.consume.subscription import ConsumeFrom, MessageModel
from gantrymq.client.interceptors import Interceptor, check_interceptors
from gantrymq.client.results import LostMessage
from gantrymq.errors import ConfigError, WrongType
from gantrymq.message.namespaces import Namespace
from gantrymq.message.topics import TRACE_TOPIC, check_group

LostCallback = Callable[[LostMessage], Awaitable[None] | None]

if TYPE_CHECKING:
    from pathlib import Path  # loaded where it is used: it takes longer to import than most of the SDK

MAX_RECONSUME_TIMES = 16  # RocketMQ's default, unless ordered
UNLIMITED = (1 << 31) - 1  # RocketMQ's default when ordered


@dataclass(frozen=True, kw_only=True)
class FlowLimits:
    """How much may be held before pulling pauses."""

    messages_per_queue: int = 1000
    """Messages held of one queue. RocketMQ: pullThresholdForQueue."""
    bytes_per_consumer: int = 256 << 20
    """Bytes of bodies held in all, shared evenly by the queues held."""
    span_per_queue: int = 2000
    """Offsets between the oldest and the newest message held of a queue; a crash repeats at most so many. RocketMQ:
    consumeConcurrentlyMaxSpan."""
    messages_per_topic: int | None = None
    """Messages held of one topic, shared evenly by its queues held; None: no limit. RocketMQ: pullThresholdForTopic."""
    bytes_per_topic: int | None = None
    """Bytes of bodies held of one topic, shared likewise; None: no limit. RocketMQ: pullThresholdSizeForTopic."""

    def __post_init__(self) -> None:
        check_types(self)
        check_at_least(self, 1, *(each.name for each in fields(self)))

    def allow(self, process_queue: ProcessQueue, queue_count: int, topic_queue_count: int = 1) -> bool:
        """Whether another pull may be made for the queue, one of so many held in all and of its topic. Of each limit a
        queue has its share, and may hold one pull at least."""
        return (
            process_queue.cached_messages < self.messages_per_queue
            and _is_below(process_queue.cached_bytes, self.bytes_per_consumer, queue_count)
            and process_queue.span < self.span_per_queue
            and _is_below(process_queue.cached_messages, self.messages_per_topic, topic_queue_count)
            and _is_below(process_queue.cached_bytes, self.bytes_per_topic, topic_queue_count)
        )


def _is_below(held: int, limit: int | None, sharing: int) -> bool:
    return limit is None or held < max(limit // max(sharing, 1), 1)


class GroupKeywords(ClientKeywords, total=False):
    """See GroupOptions."""

    consume_from: ConsumeFrom
    consume_from_ms: int | None
    trace: bool
    trace_topic: str
    trace_sample: float


@dataclass(frozen=True, kw_only=True)
class GroupOptions(ClientOptions):
    """What every member of a group is made with, whether it pulls or pops.

    MessageRejected when `group` can't be a group's name; ConfigError when a number is out of its range, or
    `consume_from` is TIMESTAMP without `consume_from_ms`.
    """

    group: str
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    """Where the group begins in queues it never consumed."""
    consume_from_ms: int | None = None
    """With TIMESTAMP: the store time to begin at, in ms since the epoch."""
    trace: bool = False
    """Tell `trace_topic` when messages are consumed, and how that ended."""
    trace_topic: str = TRACE_TOPIC
    """Where traces are sent."""
    trace_sample: float = 1.0
    """The share of the messages that is traced, 0 to 1, chosen by their ids."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_group(Namespace(self.namespace).wrap(self.group))
        if self.consume_from is ConsumeFrom.TIMESTAMP and self.consume_from_ms is None:
            raise ConfigError("consume_from TIMESTAMP needs consume_from_ms")
        check_at_least(self, 0, "consume_from_ms")
        check_share(self, "trace_sample")


class ConsumerKeywords(GroupKeywords, total=False):
    """See ConsumerOptions."""

    model: MessageModel
    batch_size: int
    pull_batch: int
    limits: FlowLimits | None
    strategy: AllocateStrategy
    offsets_folder: Path | None
    on_assigned: QueuesCallback | None
    on_revoked: QueuesCallback | None
    on_message_lost: LostCallback | None


@dataclass(frozen=True, kw_only=True)
class ConsumerOptions(GroupOptions):
    """What every consumer that pulls is made with."""

    model: MessageModel = MessageModel.CLUSTERING
    """CLUSTERING: the members of the group share the messages. BROADCASTING: each member gets all of them."""
    batch_size: int = 1
    """Messages given to the application at once, all of one queue."""
    pull_batch: int = 32
    """Messages asked for in one request."""
    limits: FlowLimits | None = None
    """How much is held before pulling pauses. None: FlowLimits()."""
    strategy: AllocateStrategy = allocate_averagely
    """How members of the group share the queues."""
    offsets_folder: Path | None = None
    """Where a BROADCASTING consumer keeps its offsets. None: where the Java client keeps its own."""
    on_assigned: QueuesCallback | None = None
    """Told of queues this member begins to read, before their first message."""
    on_revoked: QueuesCallback | None = None
    """Told of queues it gives up, before their offsets are written, and at the end."""
    on_message_lost: LostCallback | None = None
    """Told of each message that was skipped because it is damaged on the broker's disk."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "batch_size", "pull_batch")
        if not callable(self.strategy):
            raise WrongType(f"strategy={self.strategy!r:.60}: a function like allocate_averagely is wanted")
        for name in ("on_assigned", "on_revoked"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise WrongType(f"{name}={getattr(self, name)!r:.60}: a function that takes a list of queues is wanted")
        if self.on_message_lost is not None and not callable(self.on_message_lost):
            raise WrongType(
                f"on_message_lost={self.on_message_lost!r:.60}: a function that takes a LostMessage is wanted"
            )
        if self.model is MessageModel.BROADCASTING and self.instance_name is None:
            # the offset file bears the client id, so that must be the same after a restart
            object.__setattr__(self, "instance_name", "DEFAULT")


class PushConsumerKeywords(ConsumerKeywords, total=False):
    """See PushConsumerOptions."""

    concurrency: int
    ordered: bool
    suspend_s: float
    max_reconsume_times: int | None
    overdue_s: float
    close_wait_s: float
    interceptors: Sequence[Interceptor]


@dataclass(frozen=True, kw_only=True)
class PushConsumerOptions(ConsumerOptions):
    """What a push consumer is made with, besides its listener."""

    concurrency: int = 20
    """Listener calls at once."""
    ordered: bool = False
    """A queue's messages one after the other, by one member of the group at a time."""
    suspend_s: float = 1.0
    """With `ordered`: seconds until a failed message is tried again. RocketMQ: suspendCurrentQueueTimeMillis."""
    max_reconsume_times: int | None = None
    """How often a message comes again before it is a dead letter. None: 16 times, with `ordered` for ever."""
    overdue_s: float = 900.0
    """A listener call that takes longer, in seconds, is given up; its messages come again."""
    close_wait_s: float = 10.0
    """Seconds that listener calls in progress have to end when the consumer closes."""
    interceptors: Sequence[Interceptor] = ()
    """Around every listener call, the first is the outermost."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "concurrency")
        check_at_least(self, 0, "suspend_s", "max_reconsume_times", "close_wait_s")
        check_above_zero(self, "overdue_s")
        check_interceptors(self.interceptors)

    @property
    def reconsume_limit(self) -> int:
        """`max_reconsume_times` as a number, as brokers want it."""
        if self.max_reconsume_times is not None:
            return self.max_reconsume_times
        return UNLIMITED if self.ordered else MAX_RECONSUME_TIMES


class PullConsumerKeywords(ConsumerKeywords, total=False):
    """See PullConsumerOptions."""

    auto_commit: bool


@dataclass(frozen=True, kw_only=True)
class PullConsumerOptions(ConsumerOptions):
    """What a pull consumer is made with."""

    batch_size: int = 10
    """Messages a poll returns at most."""
    auto_commit: bool = True
    """Write the offsets of what was polled each 5 s; False: when `commit` is called."""
