"""What REST takes and gives about consumer groups. A null is something not known; a zero is zero."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, Self

from ninja import Field, Schema

from dashboard.cluster.group_values import GroupMember, InFlight
from dashboard.groups.forms import TOPICS_MAX
from dashboard.groups.listing import GroupRow
from dashboard.groups.member_load import MemberLoad
from dashboard.groups.moving import Moved
from dashboard.groups.trend import Direction, State
from dashboard.groups.whole import GroupView
from dashboard.rest.checks import CheckOut
from dashboard.rest.lists import Listed, sentences
from dashboard.rest.values import NUMBER_MAX, OPEN, Given, MaybeFromMs, MaybeFromSeconds, Moment, Out, named
from gantrymq.client.admin.results import QueueMove


class GroupOut(Out):
    """A consumer group in a list. lag: messages not consumed yet; lag_ms: age of the oldest of them.

    is_broadcasting: each member keeps its own offsets, so that no lag is known.
    is_partial: a broker did not answer, so that the numbers are the least that can be; problem names it.
    """

    name: str
    lag: int | None
    lag_ms: int | None
    members: int | None
    disagrees: bool
    is_suspended: bool
    is_broadcasting: bool = False
    last_consumed_stored_at: MaybeFromMs = named("last_consumed_ms")
    problem: str | None = named("why", None)
    is_partial: bool = False


class LookOut(Schema):
    """The lag at a moment."""

    at: datetime
    lag: int


class GroupTrendOut(Out):
    """Where a group is heading, by the looks until seen_at; null: it was never looked at yet.

    Rates are messages a second, the mean of the last minute. seconds_to_zero: if it goes on so; null while it comes no
    nearer. retries: messages that wait to be tried again. dead_letters null: not counted yet.
    """

    seen_at: MaybeFromSeconds
    state: State
    direction: Direction
    in_rate: float | None
    out_rate: float | None
    seconds_to_zero: float | None
    retries: int | None
    dead_letters: int | None
    lag_history: list[LookOut]

    @classmethod
    def of_row(cls, row: GroupRow) -> Self:
        history = [LookOut(at=datetime.fromtimestamp(at, UTC), lag=lag) for at, lag in row.group.history]
        return cls.of(
            row.group, seen_at=row.group.at or None, state=row.state, direction=row.direction,
            seconds_to_zero=row.seconds_to_zero, retries=row.retries, dead_letters=row.dead_letters,
            lag_history=history,
        )  # fmt: skip


class SeenGroupOut(GroupTrendOut, GroupOut):
    """A group as it was looked at last, and where it is heading."""


class GroupList(Listed[SeenGroupOut | GroupOut]):
    """Groups, sorted as asked for."""


class PlaceOut(Out):
    """A group's place in one queue. consumer_offset null: it never confirmed anything there.

    in_flight: messages that members of a group that pops have now; they are part of the lag.
    """

    topic: str
    broker: str = named("broker_name")
    queue_id: int
    broker_offset: int
    consumer_offset: int | None
    lag: int | None
    lag_ms: int | None
    owner: str | None
    in_flight: int


class LeaseOut(Out):
    """A message in flight: delivered to a member and not acknowledged. due_at: when it is delivered again, if nothing
    happens until then. client_id is empty if the broker was started since. deliveries: this one included.
    """

    topic: str
    broker: str
    queue_id: int
    offset: int
    message_id: str
    client_id: str = named("client")
    delivered_at: MaybeFromMs = named("popped_at")
    due_at: MaybeFromMs
    deliveries: int
    is_ordered: bool

    @classmethod
    def of_lease(cls, lease: InFlight) -> LeaseOut:
        return cls.of(lease.message, broker=lease.broker_name)


class LeaseList(Listed[LeaseOut]):
    """The messages in flight, the oldest first; total: how many there are, of which some may not be listed.

    modes: POP or PULL by topic, where a mode is set or the group pops now.
    """

    modes: dict[str, str]


class HeldOut(Out):
    """A message that a listener works on. tries: how often it failed before."""

    topic: str
    broker: str = named("broker_name")
    queue_id: int
    offset: int = named("queue_offset")
    message_id: str = named("msg_id")
    held_ms: int
    tries: int


class MemberOut(Out):
    """A connected consumer. What it did not say itself is null; rates are messages a second over its last minute.

    lag: messages that wait in its queues. fetched: those that it has and did not confirm. busy: listener calls in
    progress, of concurrency. oldest_held: what a listener call has in its hands for longest.
    """

    client_id: str
    address: str
    language: str
    brokers: list[str]
    has_answered: bool
    queues: int
    lag: int
    fetched: int | None = named("cached")
    busy: int | None
    concurrency: int | None
    call_ms: float | None
    ok_rate: float | None
    failed_rate: float | None
    oldest_held: HeldOut | None = named("oldest")

    @classmethod
    def of_load(cls, client: GroupMember, load: MemberLoad) -> MemberOut:
        return cls.of(load, address=client.address, language=client.language, brokers=client.brokers)


class SubscriptionOut(Schema):
    """What the group wants of a topic. type: TAG or SQL92."""

    topic: str
    expression: str
    type: str


class PartyOut(Out):
    """Members that want the same, where members disagree."""

    members: list[str] = named("client_ids")
    subscriptions: dict[str, str]


class GroupDetailOut(Out):
    """One consumer group whole. is_partial: a broker of problems is missing in it, lags are the least that can be.

    checks: why it is behind, the likeliest first. trend: its rates, as the list has them. modes: POP or PULL by topic,
    where a mode is set or the group pops now; in_flight: messages that members have, part of the lag of such a group.
    """

    name: str
    lag: int | None
    lag_ms: int | None
    suspended_on: list[str]
    queues: list[PlaceOut]
    members: list[MemberOut]
    subscriptions: list[SubscriptionOut]
    disagreement: list[PartyOut] = named("parties")
    problems: list[str]
    checks: list[CheckOut]
    modes: dict[str, str]
    in_flight: int
    trend: GroupTrendOut
    is_partial: bool = False

    @classmethod
    def of_view(cls, view: GroupView) -> GroupDetailOut:
        detail, loads = view.detail, {load.client_id: load for load in view.loads}
        return cls.of(
            detail,
            members=[MemberOut.of_load(client, loads[client.client_id]) for client in detail.clients],
            subscriptions=[
                SubscriptionOut(topic=topic, expression=expression, type=kind)
                for topic, expression, kind in detail.subscriptions
            ],
            problems=sentences(detail.failures),
            checks=[CheckOut.of(one) for one in view.checks],
            trend=GroupTrendOut.of_row(view.row),
        )


class StacksOut(Schema):
    """Where the threads and listener calls of a member are; empty when its client does not tell."""

    group: str
    client_id: str
    stacks: str


class ConsumingIn(Given):
    """Whether the group's members get messages. What waits stays, and the group keeps its place."""

    is_on: bool


class ConsumingOut(Schema):
    """brokers: those where it was otherwise before."""

    is_on: bool
    brokers: list[str]


class ModeIn(Given):
    """How the group consumes the topic from now on; nothing is lost or skipped by the change."""

    topic: str
    mode: Literal["POP", "PULL"] = Field(description="POP: RocketMQ 5's clients and PopConsumer; PULL: all others")


class ModeOut(ModeIn):
    """brokers: those that have the topic."""

    model_config = OPEN
    brokers: list[str]


class ResetIn(Given):
    """Where a group is to go on in each of these topics. When one can't be moved now, none is."""

    topics: list[str] = Field(..., min_length=1, max_length=TOPICS_MAX, description="one or more")
    to: Literal["end", "begin", "time", "offset", "shift", "copy", "undo"] = Field(examples=["time"])
    at: Moment | None = Field(None, description="for time: what was stored from then on")
    offset: int | None = Field(None, ge=0, le=NUMBER_MAX, description="for offset: in every queue")
    by: int | None = Field(
        None,
        ge=-NUMBER_MAX,
        le=NUMBER_MAX,
        description="for shift: messages forward in every queue, or back if negative",
    )
    source: str | None = Field(None, description="for copy: the group whose offsets are copied")
    dry_run: bool = Field(False, description="show what would happen and change nothing")


class QueueResetOut(Out):
    """One queue before and after."""

    broker: str
    queue_id: int
    before: int | None
    after: int
    skipped: int
    repeated: int

    @classmethod
    def of_move(cls, move: QueueMove) -> QueueResetOut:
        return cls.of(move, broker=move.queue.broker_name, queue_id=move.queue.queue_id)


class ResetOut(Out):
    """What a reset did, or would do. is_online: members run; consumers_told: they were told, and follow; false: the
    offsets were written, or nothing was done.

    is_verified: every queue was looked at afterwards and stands there; null where members follow by and by, and where
    nothing was done. problem: why it was perhaps not, or not wholly, done.
    """

    group: str
    topic: str
    is_done: bool
    is_online: bool
    consumers_told: bool
    skipped: int
    repeated: int
    refusal: str | None
    is_verified: bool | None
    queues: list[QueueResetOut]
    problem: str = ""

    @classmethod
    def of_move(cls, moved: Moved, *, is_done: bool) -> ResetOut:
        return cls.of(
            moved.plan, is_done=is_done, consumers_told=moved.was_told, is_verified=moved.is_verified,
            queues=[QueueResetOut.of_move(move) for move in moved.plan.moves], problem=moved.trouble,
        )  # fmt: skip


class ResetList(Listed[ResetOut]):
    """One for each topic, in the order asked for."""
