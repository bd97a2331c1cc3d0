"""What REST takes and gives about a broker's change of master."""

from __future__ import annotations

from ninja import Field, Schema

from dashboard.brokers.succession_form import BYTES_MAX
from dashboard.cluster.succession import Succession
from dashboard.rest.values import Order
from gantrymq.client.admin.succession import Changed


class ReplicaOut(Schema):
    """A master or a slave of the name. epoch: the highest it has heard of; end: of its log, in bytes."""

    address: str
    is_master: bool
    answers: bool
    epoch: int
    end: int

    @classmethod
    def of_all(cls, plan: Succession) -> list[ReplicaOut]:
        return [
            cls(address=one.address, is_master=one.is_master, answers=one.answers, epoch=one.epoch, end=one.end)
            for one in plan.members
        ]


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
    missing_bytes: int | None = Field(description="of the old master's log, if that is silent; null: not known")
    seen: str

    @classmethod
    def of(cls, plan: Succession) -> SuccessionOut:
        found = plan.promotion
        return cls(
            broker=plan.broker_name, members=ReplicaOut.of_all(plan), is_switch_over=plan.master is not None,
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


class MasterOut(Schema):
    """The new master. seconds: how long the change took."""

    broker: str
    address: str
    epoch: int
    seconds: float

    @classmethod
    def of(cls, changed: Changed) -> MasterOut:
        return cls(broker=changed.broker_name, address=changed.address, epoch=changed.epoch, seconds=changed.seconds)
