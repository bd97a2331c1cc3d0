"""What stands in the register for one broker name: the term, and the history of terms. Values only, no I/O.

The term names the epoch that counts, who began it, and its in-sync set. It is changed by compare-and-swap alone, so a
number is given out once, and a set that is read there is the one that holds until the term's next revision.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from appliance.failover.view import Beat, Figures, Holder, Pause, Switch, TermState

IN_SYNC = "in-sync"  # a message is acknowledged once every member of the set has it
LOCAL = "local"  # or before: the set proves nothing
LEVELS = (IN_SYNC, LOCAL)

T = TypeVar("T", Figures, Pause, Switch)


@dataclass(frozen=True, slots=True)
class Term:
    """epoch, id: as in epochs.json of the owner's log. owner: where the master serves, host:port. in_sync: where the
    members serve that have every confirmed message, the owner among them; level: what the owner waits for. holders:
    of those that have joined, which members they are, and since which boot they have it. ha: where the owner serves
    slaves; "": it has not said. session: of the owner's process, with automatic failover. state: opening, until the
    owner serves and has its set on record; released, once that
    process accepts and confirms nothing any more; end: where its log ended then, -1: not known; was_open: it had been
    open, False also where an earlier version has released it. since: the revision
    from which on it counts what members told of the owner's log; 0: from its own. Not a part of what it says."""

    epoch: int
    id: str
    owner: str
    in_sync: tuple[str, ...] = ()
    level: str = LOCAL
    holders: Mapping[str, Holder] = field(default_factory=dict)
    ha: str = ""
    session: str = ""
    state: TermState = TermState.OPEN
    end: int = -1
    was_open: bool = False
    since: int = field(default=0, compare=False)

    def is_of(self, epoch: int, epoch_id: str) -> bool:
        """Whether this is that epoch's."""
        return (self.epoch, self.id) == (epoch, epoch_id)

    def released(self, end: int) -> Term:
        was_open = self.was_open or self.state == TermState.OPEN
        return dataclasses.replace(self, state=TermState.RELEASED, end=end, was_open=was_open)

    @property
    def is_unbegun(self) -> bool:
        """Whether its owner has not served in it, so that no message is of it. A supervisor releases such a term, too,
        when it sees the owner die: with automatic failover an owner that serves waits for its whole set."""
        return self.state == TermState.OPENING or (self.state == TermState.RELEASED and self.level == LOCAL)

    @property
    def is_given_up(self) -> bool:
        """Whether its master has given up its role by itself: a supervisor that sees one die does not know the end."""
        return self.state == TermState.RELEASED and self.end >= 0

    def proves(self, address: str, epoch: int, epoch_id: str) -> bool:
        """Whether the log of a member that ends in this epoch has every acknowledged message of it."""
        return self.level == IN_SYNC and address in self.in_sync and self.is_of(epoch, epoch_id)

    def still_holds(self, address: str, boot: str) -> bool | None:
        """Whether the log of a member is the one that the set means, or a later and longer one: since this boot it has
        lost nothing. None: the set does not say, for a member that had not joined."""
        holder = self.holders.get(address)
        return None if holder is None else holder.boot == boot

    def to_json(self) -> bytes:
        return orjson.dumps(
            {
                "epoch": self.epoch,
                "id": self.id,
                "owner": self.owner,
                "inSync": list(self.in_sync),
                "level": self.level,
                "holders": {address: list(self.holders[address]) for address in sorted(self.holders)},
                "haAddress": self.ha,
                "session": self.session,
                "state": self.state,
                "end": self.end,
                "wasOpen": self.was_open,
                "since": self.since,
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> Term:
        """Raise ValueError for what is no term."""
        document = _object(data)
        try:
            epoch, in_sync = int(document["epoch"]), document["inSync"]
            holders = {str(at): Holder(int(row[0]), str(row[1])) for at, row in document.get("holders", {}).items()}
            names = tuple(map(str, in_sync))
            term = cls(
                epoch,
                str(document["id"]),
                str(document["owner"]),
                names,
                document["level"],
                holders,
                ha=str(document.get("haAddress", "")),
                session=str(document.get("session", "")),
                state=TermState(document.get("state", TermState.OPEN)),
                end=int(document.get("end", -1)),
                was_open=bool(document.get("wasOpen", False)),
                since=int(document.get("since", 0)),
            )
        except (LookupError, TypeError, AttributeError) as exc:
            raise ValueError(f"a term lacks {exc}") from exc
        if term.epoch < 1 or not term.id or term.level not in LEVELS or not isinstance(in_sync, list):
            raise ValueError(f"{document!r} is not a term")
        return term


@dataclass(frozen=True, slots=True)
class Change:
    """One row of the history. start: where the epoch begins in the log, bytes; -1: it was there before the register.
    out_ms: how long ago the master before renewed, or released its epoch, as the new one saw it; -1: unknown."""

    epoch: int
    id: str
    owner: str
    start: int
    reason: str
    at_ms: int
    out_ms: int = -1

    def to_json(self) -> bytes:
        return orjson.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_json(cls, data: bytes) -> Change:
        """Raise ValueError for what is no row."""
        document = _object(data)
        try:
            return cls(
                int(document["epoch"]),
                str(document["id"]),
                str(document["owner"]),
                int(document["start"]),
                str(document["reason"]),
                int(document["at_ms"]),
                int(document.get("out_ms", -1)),
            )
        except (KeyError, TypeError) as exc:
            raise ValueError(f"a row of the history lacks {exc}") from exc


@dataclass(frozen=True, slots=True)
class View:
    """All that stands there at one revision. term: None before `gantry admin ha init`; term_revision: 0 then. group: ""
    in a record of an earlier version that no member has joined. stores: each member's number by the id of its store.
    beat: of a master with automatic failover; beat_revision: 0 without one. cluster_id: of the etcd that answered;
    adopted_cluster_id: of the one in which the record was begun, 0 in a record of an earlier version. figures: what
    members say of themselves, with the revision of each. pause_revision, switch_revision, cancelled_revision: 0 without
    one. cancelled: the id of the last switch that could not happen, and why.
    """

    term: Term | None = None
    term_revision: int = 0
    history: tuple[Change, ...] = ()
    group: str = ""
    stores: Mapping[str, int] = field(default_factory=dict)
    beat: Beat | None = None
    beat_revision: int = 0
    cluster_id: int = 0
    adopted_cluster_id: int = 0
    pause: Pause | None = None
    pause_revision: int = 0
    switch: Switch | None = None
    switch_revision: int = 0
    cancelled: tuple[str, str] = ("", "")
    cancelled_revision: int = 0
    figures: Mapping[int, tuple[int, Figures]] = field(default_factory=dict)

    @property
    def is_restored(self) -> bool:
        """Whether etcd itself says that its keys are of another cluster: what they say may be over."""
        return bool(self.adopted_cluster_id) and self.cluster_id != self.adopted_cluster_id

    @property
    def told_since(self) -> frozenset[int]:
        """Members whose figures of the owner's log count."""
        since = self.term.since if self.term is not None and self.term.since else self.term_revision
        return frozenset(member for member, (revision, _) in self.figures.items() if revision > since)

    def has_told(self, member: int) -> bool:
        """Whether it has said of itself what is on record since the term's last change."""
        return member in self.figures and self.figures[member][0] > self.term_revision


def figures_json(figures: Figures) -> bytes:
    return orjson.dumps(figures._asdict())


def figures_from_json(data: bytes) -> Figures:
    """Raise ValueError for what is none."""
    return _tuple_from_json(Figures, data)


def pause_json(pause: Pause) -> bytes:
    return orjson.dumps(pause._asdict())


def pause_from_json(data: bytes) -> Pause:
    """Raise ValueError for what is none."""
    return _tuple_from_json(Pause, data)


def switch_json(switch: Switch) -> bytes:
    return orjson.dumps(switch._asdict())


def switch_from_json(data: bytes) -> Switch:
    """Raise ValueError for what is none."""
    return _tuple_from_json(Switch, data)


def cancelled_from_json(data: bytes) -> tuple[str, str]:
    """Raise ValueError for what is none."""
    document = orjson.loads(data)
    if not isinstance(document, list) or len(document) != 2:
        raise ValueError(f"{data[:80]!r} is no cancelled switchover")
    return str(document[0]), str(document[1])


def _tuple_from_json(of: type[T], data: bytes) -> T:
    """Fields of a later version are left out."""
    document = _object(data)
    try:
        return of(**{name: document[name] for name in of._fields if name in document})
    except TypeError as exc:
        raise ValueError(f"not a {of.__name__.lower()}: {exc}") from exc


def beat_json(beat: Beat) -> bytes:
    return orjson.dumps(beat._asdict())


def beat_from_json(data: bytes) -> Beat:
    """Raise ValueError for what is no beat."""
    document = _object(data)
    try:
        return Beat(str(document["session"]), int(document["counter"]), float(document.get("lease_s", 0.0)))
    except (KeyError, TypeError) as exc:
        raise ValueError(f"a beat lacks {exc}") from exc


def _object(data: bytes) -> Mapping[str, Any]:
    document = orjson.loads(data)  # a JSONDecodeError is a ValueError
    if not isinstance(document, dict):
        raise ValueError(f"{data[:80]!r} is not a JSON object")
    return document
