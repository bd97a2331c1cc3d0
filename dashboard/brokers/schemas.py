"""A broker as REST gives it. A null is something not known; a zero is zero."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from dashboard.rest.values import MaybeFromSeconds, Out, named
from dashboard.status.board import BrokerState

Said = Annotated[str | None, BeforeValidator(lambda text: text or None)]  # "" is not said


class LaneOut(Out):
    """A bounded queue of requests in a broker."""

    name: str
    size: int | None
    capacity: int | None
    head_wait_ms: float | None


class ServicesOut(Out):
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
    requests_rejected: int | None = named("rejected")
    requests_expired: int | None = named("expired")
    disagreeing_groups: list[str]
    suspended_groups: list[str]
    tls: Said
    fast_path: Said


class BrokerOut(Out):
    """A broker. The values were read at `at`; `why` says why they are not newer."""

    name: str
    address: str
    is_answering: bool
    why: str | None
    at: MaybeFromSeconds = None
    version: str | None = None
    in_rate: float | None = None
    out_rate: float | None = None
    disk_ratio: float | None = None
    commit_log_bytes: int | None = None
    lanes: list[LaneOut] = []
    services: ServicesOut | None = None

    @classmethod
    def of_state(cls, state: BrokerState) -> BrokerOut:
        if state.facts is None:
            return cls(name=state.name, address=state.address, is_answering=state.is_answering, why=state.why)
        return cls.of(
            state.facts, name=state.name, address=state.address, is_answering=state.is_answering, why=state.why
        )
