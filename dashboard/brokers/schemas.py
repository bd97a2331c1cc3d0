"""A broker as REST gives it, and who is its master. A null is something not known; a zero is zero."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Field, Schema
from pydantic import BeforeValidator

from appliance.draining.steps import ROUTES_S
from dashboard.brokers.draining import Draining
from dashboard.brokers.succession_form import BYTES_MAX
from dashboard.cluster.succession import Settlement, Succession
from dashboard.rest.values import Given, MaybeFromSeconds, Out, named
from dashboard.status.board import BrokerState
from gantrymq.client.admin.promotion import NO_REGISTER

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
    """A broker. Values were read at `at`; `problem` says why they are not newer. Rates: of about the last minute.

    memory_bytes: resident, the sum of mapped (pages of files), request (being read, waiting), subscription, timer
    (timed messages due soon), pool (not written to a file yet), free (kept for the next burst) and other (the program,
    its tables); memory_swapped_bytes come on top.
    """

    name: str
    address: str
    is_answering: bool
    problem: str | None
    at: MaybeFromSeconds = None
    version: str | None = None
    in_rate: float | None = None
    out_rate: float | None = None
    disk_ratio: float | None = None
    commit_log_bytes: int | None = None
    memory_bytes: int | None = None
    memory_mapped_bytes: int | None = None
    memory_swapped_bytes: int | None = None
    memory_request_bytes: int | None = None
    memory_subscription_bytes: int | None = None
    memory_timer_bytes: int | None = None
    memory_pool_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_other_bytes: int | None = None
    lanes: list[LaneOut] = []
    services: ServicesOut | None = None

    @classmethod
    def of_state(cls, state: BrokerState) -> BrokerOut:
        if state.facts is None:
            return cls(name=state.name, address=state.address, is_answering=state.is_answering, problem=state.why)
        return cls.of(
            state.facts, name=state.name, address=state.address, is_answering=state.is_answering, problem=state.why
        )


class ReplicaOut(Out):
    """A master or a slave of the name. epoch: the highest it has heard of; end: of its log, in bytes."""

    address: str
    is_master: bool
    answers: bool
    epoch: int
    end: int


class SuccessionOut(Out):
    """What a change would be. successor: null without a slave; obstacles: what speaks against it; beware: what does not
    prevent it, and is not safe.

    is_switch_over: the master answers and hands over, which loses nothing. seen: what a change has to send back, so
    that it does what was looked at.
    """

    broker: str = named("broker_name")
    members: list[ReplicaOut]
    is_switch_over: bool
    is_possible: bool
    successor: str | None
    obstacles: list[str]
    beware: list[str]
    missing_bytes: int | None = Field(description="of the old master's log, if it does not answer; null: unknown")
    seen: str

    @classmethod
    def of_plan(cls, plan: Succession) -> SuccessionOut:
        found = plan.promotion
        return cls.of(
            plan, is_switch_over=plan.master is not None, successor=found.slave.address if found else None,
            missing_bytes=found.slave.missing_bytes if found and plan.master is None else None,
            beware=[NO_REGISTER] if found and not found.has_register else [],
        )  # fmt: skip


UNKNOWN = "without a master: go on although no member can say that nothing acknowledged is lost"


class SuccessionIn(Given):
    """successor: a slave's address; absent: the longest log. seen: of the plan that was looked at."""

    seen: str = Field(max_length=500)
    successor: str | None = Field(None, max_length=255, examples=["10.0.0.8:10911"])
    accept_loss: int = Field(0, ge=0, le=BYTES_MAX, description="bytes that may be missing, without a master")
    accept_unknown: bool = Field(False, description=UNKNOWN)


class SettlementOut(Out):
    """Masters whose logs differ. masters: whose log can be chosen; silent: who does not answer, and may have more.

    is_needed: whether a choice is due. seen: what the choice has to send back, so that it is made of what was shown.
    """

    broker: str = named("broker_name")
    members: list[ReplicaOut]
    masters: list[str]
    silent: list[str]
    is_needed: bool
    seen: str

    @classmethod
    def of_masters(cls, found: Settlement) -> SettlementOut:
        return cls.of(found, masters=[one.address for one in found.masters])


class SettlementIn(Given):
    """keep: the master whose log counts; the others give up what they have beside it. seen: of what was shown."""

    keep: str = Field(max_length=255, examples=["10.0.0.8:10911"])
    seen: str = Field(max_length=2000)
    accept_unknown: bool = Field(False, description="go on although members do not answer")


class MasterOut(Out):
    """The new master, and how long the change took."""

    broker: str = named("broker_name")
    address: str
    epoch: int
    duration_s: float = named("seconds")


class DrainOut(Schema):
    """phase: off, it accepts messages; routes, producers are leaving; groups, it rejects messages and groups have some
    left; drained. groups, absent_groups: messages left, of groups with members and without. slaves: bytes that each
    connected one lacks."""

    broker: str
    phase: Literal["off", "routes", "groups", "drained"]
    is_only_master: bool
    connections: int | None
    groups: dict[str, int]
    absent_groups: dict[str, int]
    pending: dict[str, int]
    slaves: dict[str, int]

    @classmethod
    def of(cls, now: Draining) -> DrainOut:
        left = now.left
        return cls(
            broker=now.broker, phase=now.phase.value, is_only_master=now.is_only_master, connections=left.connections,
            groups=dict(left.groups), absent_groups=dict(left.absent), pending=dict(left.pending),
            slaves=dict(left.slaves),
        )  # fmt: skip


class DrainIn(Given):
    """routes_s: how long clients take to renew their routes; then the broker rejects messages."""

    routes_s: int = Field(int(ROUTES_S), ge=0, le=600)
