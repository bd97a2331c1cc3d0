"""Why a member does not become the master now. Each reason names member and figure: `ha explain` prints it.

What guards messages: the term's own set, by boot, and the revisions that the transaction compares. What members say of
themselves only delays one that may win, by a second for each that is better, so that the longest log wins if it can.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from appliance.failover import lease, switching
from appliance.failover.own import Doubt, Own
from appliance.failover.view import Holder, Level, Switch, Term, TermState, View

DEFER_S = 1.0  # for each better member: two looks at etcd


def why_frozen(view: View, own: Own) -> str:
    """Why nothing changes hands at all until a person has looked; "" when nothing speaks against it."""
    if view.term is None:
        return "etcd has no record of this broker name: `gantry admin ha init` begins it"
    if view.group and own.group and view.group != own.group:
        return f"etcd has group {view.group} on record, and the store of member {own.id} is of group {own.group}"
    if (store := view.ids.get(own.id, "")) != own.store_uuid:
        if not own.id:
            return f"store {own.store_uuid} has no number in etcd's record: `gantry admin ha join` gives it one"
        return f"etcd has store {store or 'none'} on record as member {own.id}, and this store is {own.store_uuid}"
    if is_restored(view):
        return (
            f"etcd is cluster {view.cluster_id:x} and its record is of cluster {view.adopted_cluster_id:x}: it was "
            "restored from a backup, `gantry admin ha adopt` has to say whose log counts"
        )
    if view.term.epoch < own.highest:
        return (
            f"etcd has epoch {view.term.epoch} on record, and member {own.id} has heard of epoch {own.highest}: if "
            "that lasts, etcd has lost changes, and `gantry admin ha adopt` has to say whose log counts"
        )
    return ""


def is_restored(view: View) -> bool:
    """Whether etcd itself says that its keys are of another cluster."""
    return view.cluster_id != view.adopted_cluster_id


def why_not(view: View, own: Own, now: float) -> str:
    """Why this member, which is not the master, does not take over at this moment; "" when it does."""
    term = view.term
    if term is None:
        return why_frozen(view, own)
    unclean = switching.unclean_switch(view, term, own, now)
    return (
        why_frozen(view, own)
        or _why_not_wanted(view, term, own, now)
        or (why_not_complete(term, own) if unclean is None else "")
        or _why_not_able(own)
        or ("" if unclean is None else switching.why_loss_is_too_large(view, term, own, unclean))
        or _why_wait(view, term, own, now)
    )


def why_never(view: View, own: Own) -> str:
    """Why this member would not take over if the master died now, however long one waits; "" when it would, once no
    pause keeps it from that."""
    if frozen := why_frozen(view, own):
        return frozen
    view = dataclasses.replace(view, pause=None)
    term = view.term
    assert term is not None
    if term.state != TermState.RELEASED and view.beat is None and not is_restarted_owner(term, own):
        return why_not_renewed(term)
    return _why_not_wanted(view, term, own, view.received) or why_not_complete(term, own) or _why_not_able(own)


def why_doubted(member: int, doubt: Doubt) -> str:
    """Why a member whose log may have lost its end does not become the master."""
    match doubt:
        case Doubt.OLDER:
            why = "is an older copy: a part of its log is lost"
        case Doubt.COPY:
            why = "is a copy of an open store, or runs beside one: a part of its log may be lost"
        case Doubt.DISK:
            why = "is on a disk that did not take its log: the end of it may be lost"
        case Doubt.NONE:
            return (
                f"the machine of member {member} has restarted since it came in sync, and acknowledgements did not "
                "wait for its disk, or its log was cut: the end of its log may be lost"
            )
    return f"the store of member {member} {why}, and it has to follow first"


def why_not_complete(term: Term, own: Own) -> str:
    """Why the record does not show that this member has every acknowledged message."""
    if term.level == Level.LOCAL and term.owner != own.id:
        return (
            f"the master of epoch {term.epoch} does not wait for every member of the set, so the set proves nothing of "
            f"member {own.id}"
        )
    if not is_in_set(term, own):
        return why_not_in_set(term.epoch, term.in_sync, own.id)
    if not has_kept_log(term, own):
        return why_doubted(own.id, own.doubt)
    return ""


def why_not_in_set(epoch: int, in_sync: Iterable[Holder], member: int) -> str:
    ids = ", ".join(str(each.id) for each in sorted(in_sync)) or "none"
    return f"member {member} is not in sync: epoch {epoch} has {ids} on record"


def is_in_set(term: Term, own: Own) -> bool:
    """Whether this member is on record as having every acknowledged message."""
    return term.holder(own.id) is not None


def has_kept_log(term: Term, own: Own) -> bool:
    """Whether it has them still: a killed process loses nothing, a machine without power what its disk did not have."""
    return not term.in_sync.isdisjoint(own.holders)


def is_restarted_owner(term: Term, own: Own) -> bool:
    """Whether the term is of a process of this store that is dead: this one holds the lock, on a local disk."""
    return term.owner == own.id and term.session != own.session and own.is_store_local


def better_members(view: View, term: Term, own: Own, now: float) -> list[int]:
    """Members that may win, too, and go first: named by a switch, longer log, lower priority, lower id."""
    switch = switching.timely_switch(view, term, now)
    own_order = _order(switch, own.id, own.log_end, own.priority)
    return sorted(
        member
        for member, figures in view.members.items()
        if member not in (own.id, term.owner)
        and figures.is_healthy
        and any(each.id == member and each.boot == figures.boot for each in term.in_sync)
        and _order(switch, member, figures.log_end, figures.priority) > own_order
    )


# -- the reasons one by one -------------------------------------------------------------------------------------------


def _why_not_wanted(view: View, term: Term, own: Own, now: float) -> str:
    if view.pause is not None:
        return f"{view.pause.who} has paused failover: {view.pause.why or 'no reason given'}"
    switch = switching.timely_switch(view, term, now)
    if switch is not None and switch.target == own.id:
        return ""
    if not own.is_automatic and term.owner != own.id:
        return f"automatic failover is off at member {own.id}"
    return ""


def _why_not_able(own: Own) -> str:
    if not own.is_disk_healthy:
        return f"the disk of member {own.id} does not write"
    if not own.has_ticked:
        return f"member {own.id} stood still"
    if own.is_twice:
        return (
            f"another process tells etcd that it is member {own.id}: one of the two has a copy of the other's store; "
            "stop that, and delete config/member.json in its store folder"
        )
    return ""


def _why_wait(view: View, term: Term, own: Own, now: float) -> str:
    """The lease of the master before, and the second that each better member has."""
    wait_s, of = 0.0, ""
    if term.state != TermState.RELEASED and not is_restarted_owner(term, own):
        if view.beat is None:
            return why_not_renewed(term)
        wait_s, of = term.lease_s, f"the lease of member {term.owner} may last"
        if not lease.has_waited(view.changed, wait_s, now):
            return f"{of}: {now - view.changed:.1f} of {wait_s:.1f} s have passed"
    better = [] if is_restarted_owner(term, own) else better_members(view, term, own, now)
    defer_s = DEFER_S * len(better)
    if better and now - view.changed < wait_s + defer_s:
        first = view.members[better[0]].log_end
        return f"member {better[0]} goes first: its log ends at {first:,}, that of member {own.id} at {own.log_end:,}"
    return ""


def why_not_renewed(term: Term) -> str:
    or_else = ", or it has not begun its epoch" if term.state == TermState.OPENING else ""
    return f"member {term.owner} does not renew in etcd: automatic failover is off there{or_else}"


def _order(switch: Switch | None, member: int, log_end: int, priority: int) -> tuple[bool, int, int, int]:
    return (switch is not None and switch.target == member, log_end, -priority, -member)
