"""What one broker name's record in etcd says, as a broker or `gantry admin ha status` tells it. Values only."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

WHY_CHARS_MAX = 200  # of a pause


@dataclass(frozen=True, slots=True)
class FailoverPause:
    """No member becomes the master by itself. until_ms: the planned end, for people; 0: none. Times: ms since 1970."""

    who: str
    why: str
    since_ms: int
    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class FailoverSwitch:
    """An administrator has named the next master, and it has not begun yet."""

    target: int
    address: str


@dataclass(frozen=True, slots=True)
class FailoverMember:
    """A broker that has joined the group. number: in etcd. log_end: bytes, -1: it has not said. has_told: it has said
    so of itself within ten seconds; a master says nothing here. refusal: why it would not become the master if the
    master ended now, or of a master that has not begun its epoch, why it does not; "": it would, or would wait for a
    better one."""

    number: int
    address: str
    in_sync: bool
    is_master: bool
    log_end: int = -1
    has_told: bool = False
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class FailoverChange:
    """A new master. reason: which command, or what made it begin by itself. start: where the epoch begins in the log,
    bytes. out_ms: how long ago the master before renewed, or released its epoch, as the new one saw it; -1: unknown."""

    epoch: int
    master: str
    reason: str
    at_ms: int
    start: int = -1
    out_ms: int = -1


@dataclass(frozen=True, slots=True)
class FailoverTail:
    """What only this broker had, as a master: cut from its log when it became a slave, and kept beside its store.
    address: of the broker; folder: there."""

    address: str
    folder: str


@dataclass(frozen=True, slots=True)
class FailoverStatus:
    """told_by: the broker that answered; "": a tool has read etcd. unknown: why etcd can't be asked, or has no record;
    "": all this is as etcd has it now.

    is_automatic: of the broker that answered. state: "opening" until its master serves, then "open", and "released"
    once it has given up its role.
    since_ms: when the epoch began; 0: not known. in_sync: addresses, the master's among them; is_complete: a send waits
    for all of them. next_master: who would become the master if this one ended now; "": none, why_none says why.
    next_in_s: about how long it takes, when no supervisor sees the end; then it is about a second.
    changes: the latest first. in_sync_min: below so many brokers in sync the one that answered takes no messages as the
    master. etcd_ms: how long etcd took to answer it; -1: it did not. kept_tails: of the brokers that were asked.
    shared_stores: where those of them serve whose store is on a file system that machines may share.
    etcd_trouble: why etcd refuses changes (is_etcd_refusing), or will in time; "": no reason is known.
    """

    broker_name: str
    told_by: str = ""
    unknown: str = ""
    is_automatic: bool = False
    lease_s: float = 0.0
    epoch: int = 0
    master: str = ""
    state: str = ""
    since_ms: int = 0
    in_sync: tuple[str, ...] = ()
    is_complete: bool = False
    pause: FailoverPause | None = None
    switch: FailoverSwitch | None = None
    members: tuple[FailoverMember, ...] = ()
    changes: tuple[FailoverChange, ...] = ()
    next_master: str = ""
    next_in_s: float = 0.0
    why_none: str = ""
    in_sync_min: int = 1
    etcd_ms: int = -1
    etcd_trouble: str = ""
    is_etcd_refusing: bool = False
    kept_tails: tuple[FailoverTail, ...] = ()
    shared_stores: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> FailoverStatus:
        """What to_dict made, of this version or a later one. Raise KeyError, TypeError or AttributeError otherwise."""
        known = _known(cls, document)
        pause, switch = known.get("pause"), known.get("switch")
        known |= {
            "pause": None if pause is None else FailoverPause(**_known(FailoverPause, pause)),
            "switch": None if switch is None else FailoverSwitch(**_known(FailoverSwitch, switch)),
            "members": tuple(FailoverMember(**_known(FailoverMember, each)) for each in known.get("members", ())),
            "changes": tuple(FailoverChange(**_known(FailoverChange, each)) for each in known.get("changes", ())),
            "kept_tails": tuple(FailoverTail(**_known(FailoverTail, each)) for each in known.get("kept_tails", ())),
            "in_sync": tuple(known.get("in_sync", ())),
            "shared_stores": tuple(known.get("shared_stores", ())),
        }
        return cls(**known)


def _known(of: type[Any], document: dict[str, Any]) -> dict[str, Any]:
    names = {each.name for each in dataclasses.fields(of)}
    return {name: value for name, value in document.items() if name in names}
