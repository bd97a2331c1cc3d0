"""A broker as REST gives it. A null is something not known; a zero is zero."""

from __future__ import annotations

from datetime import UTC, datetime

from ninja import Schema

from dashboard.status.board import BrokerState
from dashboard.status.services import Services


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
