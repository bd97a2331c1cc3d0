"""What REST takes and gives. A null is something not known; a zero is zero."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, cast

from ninja import Field, Schema

from dashboard.api.schemas.given import Given
from dashboard.api.schemas.topic_figures import TopicFiguresOut
from dashboard.cluster.values import QueueExtent, TopicDetail, TopicSettings, TopicSummary
from dashboard.forms.topics import QUEUES_MAX
from dashboard.status.board import BrokerState, Snapshot
from dashboard.status.checks import Verdict
from dashboard.status.services import Services
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE


class Problem(Schema):
    """Any refusal, as RFC 9457 has it. fields: what is wrong with each, when the body was refused."""

    type: Literal["about:blank"]
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    fields: dict[str, list[str]] | None = None


Perm = Literal["read-write", "read", "write"]
ShownPerm = Literal["read-write", "read", "write", "none", "differs"]
Kind = Literal["normal", "retry", "dead letter", "system"]
NUMBER_MAX = 1 << 53
NAME_SCHEMA: dict[str, Any] = {"pattern": "^[%|a-zA-Z0-9_-]{1,127}$"}  # the form says it in words


class TopicIn(Given):
    """A new topic, on every broker."""

    name: str = Field(examples=["orders"], json_schema_extra=NAME_SCHEMA)
    queues: int = Field(8, ge=1, le=QUEUES_MAX, description="on each broker")
    perm: Perm = "read-write"
    order: bool = False
    retention_ms: int | None = Field(
        None, ge=1, le=NUMBER_MAX, description="how long a message can be read; absent: as long as it is kept"
    )
    retention_messages: int | None = Field(
        None, ge=1, le=NUMBER_MAX, description="how many of the newest of each queue can be read"
    )


class TopicChange(Given):
    """What to change of a topic; what is absent stays."""

    queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="on each broker")
    read_queues: int | None = Field(
        None, ge=1, le=QUEUES_MAX, description="on each broker, at least as many as queues; absent: as many"
    )
    perm: Perm | None = None
    order: bool | None = None
    retention_ms: int | None = Field(None, ge=0, le=NUMBER_MAX, description="0 takes the topic's own away")
    retention_messages: int | None = Field(None, ge=0, le=NUMBER_MAX, description="0 takes the topic's own away")


class TopicOut(Schema):
    """A topic in a list. queues: on each broker, null where that differs; read_queues, write_queues: of all brokers."""

    name: str
    kind: Kind
    brokers: list[str]
    queues: int | None
    read_queues: int
    write_queues: int
    perm: ShownPerm
    stored_messages: int | None = None
    in_rate: float | None = None
    last_write_at: datetime | None = None
    figures: TopicFiguresOut

    @classmethod
    def of(cls, row: TopicSummary, figures: TopicFiguresOut) -> TopicOut:
        value = row.metrics.value if row.metrics else None
        return cls(
            name=row.name,
            kind=cast(Kind, row.kind),
            brokers=list(row.brokers),
            queues=queues_each(row.settings),
            read_queues=row.read_queues,
            write_queues=row.write_queues,
            perm=shown_perm(row.settings),
            stored_messages=value.stored if value else None,
            in_rate=value.in_rate if value else None,
            last_write_at=moment(value.last_write_ms) if value else None,
            figures=figures,
        )


class TopicList(Schema):
    """Topics by name. troubles: brokers that could not be asked, whose topics may be missing."""

    topics: list[TopicOut]
    total: int
    troubles: list[str]


class QueueOut(Schema):
    """One queue of a topic."""

    broker: str
    queue_id: int
    min_offset: int
    max_offset: int
    last_write_at: datetime | None

    @classmethod
    def of(cls, row: QueueExtent) -> QueueOut:
        return cls(
            broker=row.broker_name,
            queue_id=row.queue_id,
            min_offset=row.min_offset,
            max_offset=row.max_offset,
            last_write_at=moment(row.last_write_ms),
        )


class TopicDetailOut(Schema):
    """One topic whole: what creating and changing take, and what it holds. queues: as in the list."""

    name: str
    kind: Kind
    brokers: list[str]
    queues: int | None
    read_queues: int
    write_queues: int
    perm: ShownPerm
    order: bool
    retention_ms: int | None
    retention_messages: int | None
    without_effect: list[str]
    stored_messages: int | None
    queue_extents: list[QueueOut]
    troubles: list[str]

    @classmethod
    def of(cls, detail: TopicDetail) -> TopicDetailOut:
        return cls(
            name=detail.name,
            kind=cast(Kind, detail.kind),
            brokers=[item.broker_name for item in detail.settings],
            queues=queues_each(detail.settings),
            read_queues=sum(item.read_queues for item in detail.settings),
            write_queues=sum(item.write_queues for item in detail.settings),
            perm=shown_perm(detail.settings),
            order=detail.first_settings.order,
            retention_ms=detail.first_settings.retention_ms,
            retention_messages=detail.first_settings.retention_messages,
            without_effect=list(detail.first_settings.without_effect),
            stored_messages=None if detail.failures else detail.stored,
            queue_extents=[QueueOut.of(row) for row in detail.queues],
            troubles=[f"{failure.what}: {failure.reason}" for failure in detail.failures],
        )


def queues_each(settings: Sequence[TopicSettings]) -> int | None:
    """How many queues each broker has for reading and for writing; None when that is not one number."""
    numbers = {number for item in settings for number in (item.read_queues, item.write_queues)}
    return numbers.pop() if len(numbers) == 1 else None


def shown_perm(settings: Sequence[TopicSettings]) -> ShownPerm:
    """In the words that creating and changing take."""
    found = {item.perm & (PERM_READ | PERM_WRITE) for item in settings}
    if len(found) != 1:
        return "differs"
    words: dict[int, ShownPerm] = {PERM_READ | PERM_WRITE: "read-write", PERM_READ: "read", PERM_WRITE: "write"}
    return words.get(found.pop(), "none")


class LaneOut(Schema):
    """A bounded queue of requests in a broker."""

    name: str
    size: int | None
    capacity: int | None
    head_wait_ms: float | None


class ServicesOut(Schema):
    """What a GantryMQ broker says of its services; null is what it does not say. Counts run since its start."""

    name_servers_known: int | None
    name_servers_all: int | None
    connections: int | None
    connections_parked: int | None
    held_pulls: int | None
    transactions_pending: int | None
    timers_pending: int | None
    timer_behind_ms: int | None
    tables_not_saved: list[str]
    requests_rejected: int | None
    requests_expired: int | None
    disagreeing_groups: list[str]
    suspended_groups: list[str]
    tls: str | None
    fast_path: str | None

    @classmethod
    def of(cls, services: Services) -> ServicesOut:
        return cls(
            name_servers_known=services.name_servers_known,
            name_servers_all=services.name_servers_all,
            connections=services.connections,
            connections_parked=services.connections_parked,
            held_pulls=services.held_pulls,
            transactions_pending=services.transactions_pending,
            timers_pending=services.timers_pending,
            timer_behind_ms=services.timer_behind_ms,
            tables_not_saved=list(services.tables_not_saved),
            requests_rejected=services.rejected,
            requests_expired=services.expired,
            disagreeing_groups=list(services.disagreeing_groups),
            suspended_groups=list(services.suspended_groups),
            tls=services.tls or None,
            fast_path=services.fast_path or None,
        )


class BrokerOut(Schema):
    """A broker. The values were read at `at`; `why` says why they are not newer."""

    name: str
    address: str
    is_answering: bool
    why: str | None
    at: datetime | None = None
    version: str | None = None
    in_rate: float | None = None
    out_rate: float | None = None
    disk_ratio: float | None = None
    commit_log_bytes: int | None = None
    lanes: list[LaneOut] = []
    services: ServicesOut | None = None

    @classmethod
    def of(cls, state: BrokerState) -> BrokerOut:
        out = cls(name=state.name, address=state.address, is_answering=state.is_answering, why=state.why)
        facts = state.facts
        if facts is None:
            return out
        out.at = datetime.fromtimestamp(facts.at, UTC)
        out.version = facts.version
        out.in_rate, out.out_rate = facts.in_rate, facts.out_rate
        out.disk_ratio = facts.disk_ratio
        out.commit_log_bytes = facts.commit_log_bytes
        out.services = ServicesOut.of(facts.services)
        out.lanes = [
            LaneOut(name=lane.name, size=lane.size, capacity=lane.capacity, head_wait_ms=lane.head_wait_ms)
            for lane in facts.lanes
        ]
        return out


class ProcessOut(Schema):
    """A process of the appliance."""

    name: str
    role: str
    state: str
    pid: int | None
    restarts: int | None
    cpu_ratio: float | None
    rss_bytes: int | None


class ClusterOut(Schema):
    """The Overview. stored_messages_without: brokers whose messages the sum lacks."""

    at: datetime
    level: str
    sentence: str
    problems: list[str]
    name_server: str
    in_rate: float | None
    out_rate: float | None
    stored_messages: int | None
    stored_messages_without: list[str]
    brokers: list[BrokerOut]
    processes: list[ProcessOut]

    @classmethod
    def of(cls, snapshot: Snapshot, verdict: Verdict) -> ClusterOut:
        return cls(
            at=datetime.fromtimestamp(snapshot.at, UTC),
            level=verdict.level.word,
            sentence=verdict.sentence,
            problems=[f"{problem.title}: {problem.evidence}" for problem in verdict.problems],
            name_server=snapshot.namesrv,
            in_rate=snapshot.known_sum("in_rate")[0],
            out_rate=snapshot.known_sum("out_rate")[0],
            stored_messages=snapshot.stored.messages if snapshot.stored else None,
            stored_messages_without=list(snapshot.stored.missing) if snapshot.stored else [],
            brokers=[BrokerOut.of(state) for state in snapshot.brokers],
            processes=[
                ProcessOut(
                    name=process.name,
                    role=process.role,
                    state=process.state,
                    pid=process.pid,
                    restarts=process.restarts,
                    cpu_ratio=process.cpu_ratio,
                    rss_bytes=process.rss_bytes,
                )
                for process in snapshot.processes
            ],
        )


def moment(at_ms: int) -> datetime | None:
    """A stored timestamp, None for never."""
    return datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms > 0 else None
