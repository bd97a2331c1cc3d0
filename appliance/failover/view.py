"""What etcd says of one broker name at one revision, as a member last received it. Values only.

    term    who is the master, of which epoch, and its in-sync set; changed by compare-and-swap on its own revision
    beat    a counter that the master renews each second; candidates time it on their own clocks, from their own receipt
    pause   no take-over until it is deleted; the master renews as before, and stops at its deadline as before
    switch  an administrator names the next master
    members/<id>  what each member says of itself, for ten seconds: for people, and to choose the better of two that
                  may both win. What it said last, however long ago, bounds what an unclean switch may lose; nothing
                  else that guards messages depends on it

Times are seconds of CLOCK_BOOTTIME (appliance.process.awake.awake_s) of the machine that received the view.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from appliance.failover.lease import LEASE_S

PRIORITY_UNTOLD = (1 << 31) - 1  # of a member of an earlier version: as RocketMQ's controller has it, and the setting


class Holder(NamedTuple):
    """A member of an in-sync set: its id, and the boot of its machine in which it came to have everything.

    A killed process leaves its log in the page cache, a machine that starts anew does not.
    """

    id: int
    boot: str

    def __str__(self) -> str:
        return f"member {self.id}"


class TermState(StrEnum):
    OPENING = "opening"  # taken; its owner does not serve yet
    OPEN = "open"
    RELEASED = "released"  # its owner has stopped, or its process is known to be dead: no candidate has to wait


class Level(StrEnum):
    """What the master of a term waits for before it acknowledges."""

    LOCAL = "local"  # its own log: the set proves nothing
    IN_SYNC = "in-sync"  # every member of the set has it in memory: slaves acknowledge so, with SYNC_FLUSH, too


@dataclass(frozen=True, slots=True)
class Term:
    """epoch, epoch_id: as in epochs.json of the owner's log. owner: a member's id from 1 on, also once released.

    address: where the owner serves, host:port. session: random, of its process. in_sync: who has every acknowledged
    message, the owner among them. end: where a released log ends, -1 when that is not known; was_open: it had been
    open, as far as is known. lease_s: for master and candidates of this term, so that both count the same.
    """

    epoch: int
    epoch_id: str
    owner: int
    address: str
    session: str
    state: TermState
    in_sync: frozenset[Holder]
    level: Level = Level.IN_SYNC
    end: int = -1
    was_open: bool = False
    lease_s: float = LEASE_S

    def holder(self, member: int) -> Holder | None:
        """The entry of a member in the set."""
        return next((each for each in self.in_sync if each.id == member), None)


class Beat(NamedTuple):
    """session: of the owner that renews. counter: higher with each try, so a value says which try arrived.

    lease_s: for so long this proves its owner to be the master, at the most; 0.0 in a record of an earlier version.
    """

    session: str
    counter: int
    lease_s: float = 0.0


class Pause(NamedTuple):
    """until: the planned end, ms since 1970, for people: it ends when it is deleted."""

    who: str
    why: str
    since_ms: int
    until_ms: int


class Switch(NamedTuple):
    """planned: the master stops first, drains and releases; it counts while `epoch` lasts.

    Otherwise the target takes over although it may lack up to accepted_loss bytes of what was acknowledged. That counts
    only for the very term and beat, by revision, that the administrator saw: a master that renews may acknowledge more.
    accepts_unknown: also when the target can't tell how much its master had. accepted_epoch: its log may be of this
    epoch, though a later one is on record; 0: it may not.
    """

    id: str
    target: int
    is_planned: bool
    accepted_loss: int
    epoch: int
    term_revision: int
    beat_revision: int = 0
    accepts_unknown: bool = False
    accepted_epoch: int = 0


class Figures(NamedTuple):
    """What a member says of itself: advisory. epoch: of its log's end; following: the epoch of the master that it
    copies, 0: none. refusal: why it would not take over if the master died now, for people; "": it would, in its
    turn. session: random, of the process that says it; "": of an earlier version. known_epoch, known_end: how far its
    log went in an epoch, also before its machine lost the end of it."""

    address: str
    boot: str
    epoch: int
    log_end: int
    dispatched_end: int
    is_healthy: bool
    priority: int = PRIORITY_UNTOLD
    following: int = 0
    refusal: str = ""
    session: str = ""
    known_epoch: int = -1
    known_end: int = -1

    def end_in(self, epoch: int) -> int:
        """How far its log goes, or went, in this epoch; -1: it is not of it."""
        known = self.known_end if self.known_epoch == epoch else -1
        return max(known, self.log_end if self.epoch == epoch else -1)


@dataclass(frozen=True, slots=True)
class View:
    """cluster_id: of the etcd that answered, as its answer says. adopted_cluster_id: as the keys say, put there by
    `ha init` and `ha adopt`: another one than it is means that etcd was restored from a backup.

    group: the uuid of the stores; "": none yet. ids: member to the uuid of its store. Revisions are of the last change
    of that key, 0: absent.

    sent, received: when this member asked, and had the whole answer. changed: when it received the answer in which term
    or beat had first changed to what they are now: never earlier than the change itself. switch_after: when it asked
    last without finding this switch: never later than the switch came. None: it has found nothing else yet.

    members: what they said of themselves lately; told: what they said last, those that are gone among them; told_since:
    whose figures of the owner's log count. starts: where the epochs in the history begin in the log, -1: not
    known.
    """

    cluster_id: int
    received: float
    changed: float
    sent: float = 0.0
    adopted_cluster_id: int = 0
    group: str = ""
    ids: Mapping[int, str] = field(default_factory=dict)
    term: Term | None = None
    term_revision: int = 0
    beat: Beat | None = None
    beat_revision: int = 0
    pause: Pause | None = None
    switch: Switch | None = None
    switch_after: float | None = None
    members: Mapping[int, Figures] = field(default_factory=dict)
    told: Mapping[int, Figures] = field(default_factory=dict)
    told_since: Collection[int] = ()
    starts: Mapping[int, int] = field(default_factory=dict)


def following(before: View | None, view: View) -> View:
    """The view that was just received, with `changed` and `switch_after` as the one before it has them, if nothing has
    changed since.

    A candidate waits from its own receipt, not from the change: it can't know when that was.
    """
    if before is None:
        return dataclasses.replace(view, changed=view.received)
    changed = before.changed if _marks(before) == _marks(view) else view.received
    is_new = view.switch is not None and (before.switch is None or before.switch.id != view.switch.id)
    return dataclasses.replace(view, changed=changed, switch_after=before.sent if is_new else before.switch_after)


def _marks(view: View) -> tuple[int, int, int]:
    return view.cluster_id, view.term_revision, view.beat_revision
