"""What REST takes and gives about a broker's change of master."""

from __future__ import annotations

from ninja import Field, Schema

from dashboard.brokers.succession_form import BYTES_MAX
from dashboard.cluster.succession import Settlement, Succession
from dashboard.rest.values import Order, Out, named


class ReplicaOut(Out):
    """A master or a slave of the name. epoch: the highest it has heard of; end: of its log, in bytes."""

    address: str
    is_master: bool
    answers: bool
    epoch: int
    end: int


class SuccessionOut(Schema):
    """What a change would be. successor: null without a slave; obstacles: what speaks against it.

    is_switch_over: the master answers and hands over, which loses nothing. seen: what a change has to send back, so
    that it does what was looked at.
    """

    broker: str
    members: list[ReplicaOut]
    is_switch_over: bool
    is_possible: bool
    successor: str | None
    obstacles: list[str]
    missing_bytes: int | None = Field(description="of the old master's log, if it does not answer; null: unknown")
    seen: str

    @classmethod
    def of(cls, plan: Succession) -> SuccessionOut:
        found = plan.promotion
        return cls(
            broker=plan.broker_name, members=[ReplicaOut.of(one) for one in plan.members],
            is_switch_over=plan.master is not None,
            is_possible=plan.is_possible, successor=found.slave.address if found else None,
            obstacles=plan.obstacles,
            missing_bytes=found.slave.missing_bytes if found and plan.master is None else None, seen=plan.seen,
        )  # fmt: skip


UNKNOWN = "without a master: go on although no member can say that nothing acknowledged is lost"


class SuccessionIn(Order):
    """to: a slave's address; absent: the longest log. seen: of the plan that was looked at."""

    seen: str = Field(max_length=500)
    to: str | None = Field(None, max_length=255, examples=["10.0.0.8:10911"])
    accept_loss: int = Field(0, ge=0, le=BYTES_MAX, description="bytes that may be missing, without a master")
    accept_unknown: bool = Field(False, description=UNKNOWN)


class SettlementOut(Schema):
    """Masters whose logs differ. masters: whose log can be chosen; silent: who does not answer, and may have more.

    is_needed: whether a choice is due. seen: what the choice has to send back, so that it is made of what was shown.
    """

    broker: str
    members: list[ReplicaOut]
    masters: list[str]
    silent: list[str]
    is_needed: bool
    seen: str

    @classmethod
    def of(cls, found: Settlement) -> SettlementOut:
        return cls(
            broker=found.broker_name, members=[ReplicaOut.of(one) for one in found.members], silent=found.silent,
            masters=[one.address for one in found.masters], is_needed=found.is_needed, seen=found.seen,
        )  # fmt: skip


class SettlementIn(Order):
    """keep: the master whose log counts; the others give up what they have beside it. seen: of what was shown."""

    keep: str = Field(max_length=255, examples=["10.0.0.8:10911"])
    seen: str = Field(max_length=2000)
    accept_unknown: bool = Field(False, description="go on although members do not answer")


class MasterOut(Out):
    """The new master. seconds: how long the change took."""

    broker: str = named("broker_name")
    address: str
    epoch: int
    seconds: float
