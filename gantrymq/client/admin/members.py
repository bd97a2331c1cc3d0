"""The brokers of one name and the name servers, as each of them answered: what a change of master is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

NO_ID = "none"
LEAVE_S = 1.0  # of a master that doesn't tell after which time a slave that it lost is out of the set
# What a name server of GantryMQ adds to its answer to GET_BROKER_CLUSTER_INFO when `epochOf` names a broker.
EPOCH_OF, EPOCH_NUMBER, EPOCH_ID, EPOCH_MASTER, MASTER_GONE_MS = (
    "epochOf",
    "epochNumber",
    "epochId",
    "epochMaster",
    "masterGoneMs",
)


class InSyncTold(NamedTuple):
    """What a slave was told of the in-sync set: in which epoch, the how manieth set of it, confirmed up to where."""

    epoch: int = 0
    version: int = 0
    confirmed: int = -1
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """One broker of a name; info: its figures, empty when it does not answer. refuses: it is there, though."""

    address: str
    broker_id: int | None  # None: the name servers don't list it
    info: Mapping[str, str] = field(default_factory=dict)
    refuses: bool = False

    @property
    def answers(self) -> bool:
        """Whether it does."""
        return bool(self.info)

    @property
    def is_master(self) -> bool:
        """Whether it says so of itself; of Apache's brokers the id tells. False when it does not answer."""
        role = self.info.get("brokerRole") or ("ASYNC_MASTER" if self.broker_id == 0 else "SLAVE")
        return self.answers and role != "SLAVE"

    @property
    def epoch(self) -> int:
        """The highest that it has heard of; 0: it knows none."""
        return int(self.info.get("epochHighest", "0"))

    @property
    def log_epoch(self) -> int:
        """The one in which its log ends; 0: it knows none."""
        return int(self.info.get("epoch", "0"))

    @property
    def end(self) -> int:
        """How far its log reaches, in bytes; -1: it does not say."""
        return int(self.info.get("commitLogMaxOffset", "-1"))

    @property
    def state(self) -> str:
        """What a slave does, with why."""
        why = self.info.get("slaveStateWhy", "none")
        return self.info.get("slaveState", "") + ("" if why == "none" else f": {why}")

    @property
    def doing(self) -> str:
        """Its role, and what it does in it: what can follow "it"."""
        if not self.answers:
            return "does not answer"
        if self.is_master:
            return f"is the master of epoch {self.epoch}" if self.epoch else "is the master, and knows no epochs"
        return f"is a slave in epoch {self.log_epoch}, {self.state}"

    @property
    def told_in_sync(self) -> InSyncTold:
        """What its master told of the slaves in sync last."""
        names = self.info.get("inSyncSetTold", "none")
        return InSyncTold(
            int(self.info.get("inSyncEpochTold", "0")),
            int(self.info.get("inSyncVersionTold", "0")),
            int(self.info.get("confirmedOffsetTold", "-1")),
            () if names == "none" else tuple(names.split(",")),
        )

    @property
    def followed(self) -> str:
        """The master that a slave followed last; "": it does not say."""
        master = self.info.get("slaveMasterBroker", "none")
        return "" if master == "none" else master

    @property
    def number(self) -> int:
        """Of this member in its group's record in etcd; 0: it has not joined, or does not say."""
        return int(self.info.get("memberNumber", "0"))

    @property
    def names_others(self) -> list[str]:
        """Who else there is, as it was told."""
        rival = self.info.get("epochRival", NO_ID).split()  # number, id, address
        return [each for each in (self.followed, *self.told_in_sync.names, *rival[2:]) if each]

    @property
    def missing_bytes(self) -> int | None:
        """What a slave lacks of its master's log as that was when it was last heard of; None: never heard."""
        master_end = int(self.info.get("slaveMasterEnd", "-1"))
        return None if master_end < 0 else max(master_end - self.end, 0)

    @property
    def begin(self) -> int:
        """Where its log begins, in bytes; -1: it does not say."""
        return int(self.info.get("commitLogMinOffset", "-1"))

    @property
    def apache_log(self) -> tuple[int, int]:
        """Begin and end of the log of its Apache master, as that was fenced; -1: it did not see that."""
        return int(self.info.get("slaveApacheBegin", "-1")), int(self.info.get("slaveApacheEnd", "-1"))

    @property
    def heard(self) -> str:
        """When a slave last heard of its master: seconds, or never."""
        return self.info.get("slaveHeardSecondsAgo", "never")

    @property
    def told_s_ago(self) -> float | None:
        """How old is what its master told last of tables and set, by the master's own clock; None: it told nothing."""
        told = self.info.get("slaveToldSecondsAgo", "never")
        return None if told == "never" else float(told)

    @property
    def leave_s(self) -> float:
        """After so long without a word from a slave its master lets it leave the set."""
        return float(self.info.get("inSyncLeaveSecondsTold", LEAVE_S))


@dataclass(frozen=True, slots=True)
class NameServerView:
    """What one name server knows of a broker name. fields: what it added, of RocketMQ's nothing."""

    address: str
    answers: bool = False
    members: Mapping[int, str] = field(default_factory=dict)  # broker id to address
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """The highest that a master registered with; 0: none that it knows."""
        return int(self.fields.get(EPOCH_NUMBER, "0"))

    @property
    def epoch_master(self) -> str:
        return self.fields.get(EPOCH_MASTER, "")

    @property
    def master_gone_s(self) -> float | None:
        """How long ago the master's connection ended, or it said good-bye; None: that was not seen."""
        gone_ms = self.fields.get(MASTER_GONE_MS)
        return None if gone_ms is None else int(gone_ms) / 1000


@dataclass(frozen=True, slots=True)
class Known:
    """All that could be asked of one broker name."""

    members: list[Member]
    name_servers: list[NameServerView] = field(default_factory=list)

    @property
    def highest_epoch(self) -> int:
        """The highest number that anyone who answers knows."""
        known = [member.epoch for member in self.members] + [server.epoch for server in self.name_servers]
        return max(known, default=0)

    @property
    def master_gone_s(self) -> float | None:
        """How long ago the master ended, as all name servers that knew it saw it; None: none saw it."""
        seen = [each.master_gone_s for each in self.name_servers if each.answers and 0 not in each.members]
        if len(seen) < len(self.name_servers):  # one still lists a master, or does not answer
            return None
        return min((gone_s for gone_s in seen if gone_s is not None), default=None)
