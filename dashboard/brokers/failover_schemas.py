"""What REST tells of automatic failover, and takes to pause it."""

from __future__ import annotations

from ninja import Field

from dashboard.brokers.succession_form import MINUTES_MAX
from dashboard.rest.values import Given, MaybeFromMs, Out, named
from gantrymq.client.admin.failover import WHY_CHARS_MAX, FailoverStatus


class PauseOut(Out):
    """No member becomes the master by itself. ends_at: the planned end, for people."""

    created_by: str = named("who")
    reason: str = named("why")
    created_at: MaybeFromMs = named("since_ms")
    ends_at: MaybeFromMs = named("until_ms")


class FailoverMemberOut(Out):
    """A member on record. refusal: why it would not become the master if the master ended now; "": it could."""

    number: int
    address: str
    is_master: bool
    in_sync: bool
    refusal: str


class FailoverChangeOut(Out):
    """A new master. taken_over_after_s: since the last renewal, or the release, of the master before, as the new one
    saw it; null: not known. The epoch of a master that was killed is released later than it ended."""

    epoch: int
    master: str
    reason: str
    at: MaybeFromMs = named("at_ms")
    taken_over_after_s: float | None


class FailoverOut(Out):
    """problem: why nothing is known; "": it is. next_master: who takes over if the master ends now, null: none, and
    next_problem says why. in_sync_min: below so many brokers in sync no messages are taken. etcd_problem: why etcd
    refuses changes (is_etcd_refusing), or will in time; "": no reason is known."""

    broker: str = named("broker_name")
    problem: str = named("unknown")
    is_automatic: bool
    lease_s: float
    epoch: int
    master: str | None
    master_since: MaybeFromMs = named("since_ms")
    in_sync: list[str]
    in_sync_min: int
    pause: PauseOut | None
    members: list[FailoverMemberOut]
    changes: list[FailoverChangeOut]
    next_master: str | None
    next_in_s: float | None
    next_problem: str = named("why_none")
    etcd_problem: str = named("etcd_trouble")
    is_etcd_refusing: bool

    @classmethod
    def of_status(cls, told: FailoverStatus) -> FailoverOut:
        changes = [
            FailoverChangeOut.of(each, taken_over_after_s=None if each.out_ms < 0 else each.out_ms / 1000)
            for each in told.changes
        ]
        return cls.of(
            told, master=told.master or None, changes=changes,
            next_master=told.next_master or None, next_in_s=told.next_in_s if told.next_master else None,
        )  # fmt: skip


class PauseIn(Given):
    """reason: for those who find it paused. minutes: how long it is planned for, which does not end it."""

    reason: str = Field(min_length=1, max_length=WHY_CHARS_MAX, examples=["disks are replaced"])
    minutes: int | None = Field(None, ge=1, le=MINUTES_MAX)


class ResumeIn(Given):
    """force: also while the master does not renew in etcd, so that it is replaced."""

    force: bool = False
