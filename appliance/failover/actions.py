"""What a member is to do, in order. The actor does it; a transaction compares the revisions that stand in it."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.failover.view import Holder


@dataclass(frozen=True, slots=True)
class Renew:
    """Put the beat with the next counter (lease.Beats), if the term is of this revision."""

    term_revision: int


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Stop acknowledging the epoch before, then put term, beat and history, if term and beat are of these revisions and
    there is no pause; delete the switch. An attempt before it that compared the same keeps its epoch id. Only when that
    is known to have been executed (Begin): cut to a record boundary, put (epoch, start) on disk, catch up with
    dispatching. An answer of another etcd cluster than the view's counts as none.

    in_sync: the set on record until then, without the owner before, with this member. is_clean: it is known to have all
    that was acknowledged.
    """

    epoch: int
    term_revision: int
    beat_revision: int
    in_sync: frozenset[Holder]
    reason: str
    is_clean: bool = True
    switch: str = ""  # its id, when an administrator asked for it


@dataclass(frozen=True, slots=True)
class Begin:
    """The attempt to take over, or a promotion by hand, is known to have been executed: the term of this revision is
    this process's."""

    term_revision: int


@dataclass(frozen=True, slots=True)
class Forget:
    """The attempt to take over is known to have failed: this member may acknowledge to a master again."""


@dataclass(frozen=True, slots=True)
class Hear:
    """Have this epoch on disk as heard of, before anything else: a lower one is refused from now on."""

    epoch: int
    epoch_id: str


@dataclass(frozen=True, slots=True)
class MarkOpened:
    """Put the term as open, with where the epoch starts; serve once it is there."""

    term_revision: int


@dataclass(frozen=True, slots=True)
class Require:
    """Acknowledge nothing more without these, too. Before they are published."""

    holders: frozenset[Holder]


@dataclass(frozen=True, slots=True)
class PublishSet:
    """Put the term with this set."""

    term_revision: int
    in_sync: frozenset[Holder]


@dataclass(frozen=True, slots=True)
class StopRequiring:
    """Acknowledge without these from now on: they are not on record, and can't come to be."""

    holders: frozenset[Holder]


@dataclass(frozen=True, slots=True)
class Drain:
    """Accept no more messages, and wait until the target has all: then the release follows."""

    target: int


@dataclass(frozen=True, slots=True)
class DropSwitch:
    """Delete the switch, if it is this one: it can't happen now."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Accept messages again: no switch asks for anything else."""


@dataclass(frozen=True, slots=True)
class Release:
    """No member is the master; only once nothing more is acknowledged here."""

    term_revision: int
    end: int


@dataclass(frozen=True, slots=True)
class StepDown:
    """At once: accept and acknowledge nothing; sends that wait lose their connection. Then follow."""

    reason: str


@dataclass(frozen=True, slots=True)
class Follow:
    """Copy the log of this master, after cutting where the logs part; never below the own confirmed position."""

    owner: int
    address: str
    epoch: int
    epoch_id: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Nothing changes; the reason names member and figure. `ha explain` prints it."""

    reason: str


Action = (
    Renew
    | TakeOver
    | Begin
    | Forget
    | Hear
    | MarkOpened
    | Require
    | PublishSet
    | StopRequiring
    | Drain
    | DropSwitch
    | Resume
    | Release
    | StepDown
    | Follow
    | Refuse
)
