"""What a member knows of itself when it decides. Values only; its actor fills them in, nothing is read from etcd."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from appliance.failover.lease import LEASE_S
from appliance.failover.view import Holder


class Role(StrEnum):
    """What this process does with its log."""

    FOLLOWING = "following"  # a slave, or a master of before that has stopped: copies, or looks for whom to copy
    TAKEN = "taken"  # has taken an epoch, and is getting its log ready: acknowledges nothing yet
    MASTER = "master"  # accepts and acknowledges messages, inside its proof
    DRAINING = "draining"  # accepts nothing more: on its way to release


class Doubt(StrEnum):
    """Why a log may lack a part of what it had in the boot before."""

    NONE = ""  # its machine has restarted, or it was cut
    OLDER = "older"  # etcd knows of a longer one
    COPY = "copy"  # it was copied while the store was open, or runs beside what it was copied from
    DISK = "disk"  # it did not take the log


class Attempt(NamedTuple):
    """A transaction that was sent to take over: the id that the epoch would have, and what it compares.

    It is lost once either of the two has another revision, and the term another id; until then it may be executed.
    """

    epoch_id: str
    cluster_id: int
    term_revision: int
    beat_revision: int


@dataclass(frozen=True, slots=True)
class Own:
    """id, store_uuid, group: of the store. boot: of the machine. session: random, of this process.

    epoch, epoch_id: in which the log ends, as in epochs.json; highest: the highest epoch heard of anywhere, on disk.
    log_end, dispatched_end: bytes. confirmed: up to where messages were acknowledged, as this member knows it, bytes.
    master_end: where the log of its master ended when it last said so, bytes; -1: it has not since this process began.
    clean_boot: the boot in which the last process of this store closed it, so the disk has all that it had then; "": it
    did not close it, or this is the first.
    """

    id: int
    store_uuid: str
    group: str
    boot: str
    session: str
    role: Role
    epoch: int
    epoch_id: str
    highest: int
    log_end: int
    dispatched_end: int
    confirmed: int
    clean_boot: str = ""
    asked: frozenset[str] = frozenset()  # ids of epochs that this process has asked etcd for by hand
    attempt: Attempt | None = None  # to take over, of which it is not known what became
    # -- as a master
    first_sent: float | None = None  # of the newest beat that etcd is known to have (lease.Beats); None: none
    cluster_id: int = 0  # of the etcd that gave this process its term; 0: it has none
    term_revision: int = 0  # of the newest term that this process knows to be its own
    is_ready: bool = False  # the epoch is on disk, the log cut and dispatched, the tables loaded: it can open
    required: frozenset[Holder] = frozenset()  # without whom nothing is acknowledged, itself among them
    unsettled: frozenset[Holder] = frozenset()  # in sets that were sent for this revision, their outcome not known
    caught_up: frozenset[Holder] = frozenset()  # slaves that may be required: at the confirmed end, in this epoch
    lost: frozenset[Holder] = frozenset()  # required ones that have been gone or behind for too long
    draining_since: float = 0.0
    has_drained: bool = False  # nothing more is acknowledged here, and the target has all
    # -- health
    is_disk_healthy: bool = True  # the log advanced or fsynced lately, as far as it had to
    has_ticked: bool = True  # the event loop turned lately
    is_store_local: bool = True  # its lock proves that the process that had this store before is dead
    master_end: int = -1
    following: int = 0  # the epoch of the master that it copies now; 0: none
    priority: int = 0  # lower ones are preferred among members with equal logs
    lease_s: float = LEASE_S  # of the settings, for the next term that this member takes
    doubt: Doubt = Doubt.NONE  # with which its boot began: only told
    is_twice: bool = False  # another process tells etcd that it is this member
    is_automatic: bool = False  # take-over without an administrator is switched on

    @property
    def holders(self) -> tuple[Holder, ...]:
        """The entries of a set that say that this log, as it is now, has everything."""
        return (self.holder, Holder(self.id, self.clean_boot)) if self.clean_boot else (self.holder,)

    @property
    def holder(self) -> Holder:
        return Holder(self.id, self.boot)
