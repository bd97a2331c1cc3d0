"""Whether a store was replaced by an older copy of it: etcd knows of more of its log, of a time since which it has lost
nothing. Such a store has what the record says of it, and lacks a part of what that is about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from appliance.failover.own import Own
from appliance.failover.view import Figures, Holder, TermState, View


def is_older_copy(view: View, own: Own) -> bool:
    """Whether the log of a member that has just started was longer once, in the boot that the set names. By what it
    told etcd before, so it is asked before it tells anything; and, as the owner, by what is known of its epoch."""
    told, term = view.told.get(own.id), view.term
    if told is not None and told.log_end > own.log_end and Holder(own.id, told.boot) in own.holders:
        return True
    if term is None or term.owner != own.id or term.in_sync.isdisjoint(own.holders):
        return False
    end, _ = owners_end(term.epoch, own.id, term.in_sync, view.told, view.told_since, term.end)
    if own.epoch < term.epoch:  # which this store has begun, unless it was killed before
        return term.state == TermState.OPEN or term.was_open or end >= 0
    return own.epoch == term.epoch and end > own.log_end


def owners_end(
    epoch: int, owner: int, in_sync: Collection[Holder], told: Mapping[int, Figures], since: Collection[int], end: int
) -> tuple[int, int]:
    """Up to where the log of an epoch's owner went, as far as is known, and the member that tells it; the owner itself,
    where it has released the epoch at that end. -1: not known. To ask only while the owner has the boot that the set
    names: in another one it may have lost its end, and others may have what was above that.

    No member has more of an epoch than its owner had, also one that is not in sync, as it copies from that log. What it
    has told counts in the boot that the set names; in an earlier one it may have been a rival's log, which it has cut
    since. All else counts if it was told since the owner has this boot in this epoch (counted_since). A sole owner that
    lost its end with its machine goes on, and what a dead slave told of the lost part would refuse it at each later
    start, until its log is as long again; but with its new boot it has changed the term. There is left a slave outside
    the set that lives then: within an epoch nothing is cut, so it goes on telling the lost part, and the owner is
    refused if it starts again before its log is as long. No record tells this from an older copy; a person decides.
    """
    ends = [
        (said.end_in(epoch), member)
        for member, said in told.items()
        if member != owner and (Holder(member, said.boot) in in_sync or member in since)
    ]
    return max([*ends, (end, owner)])


def known_end(view: View, own: Own) -> tuple[int, int]:
    """Up to where a member's log goes, in which epoch, or went in the one on record, as it has told: a member whose
    machine loses the end of its log goes on telling how long it was: no other may know that of its owner."""
    term, said = view.term, view.told.get(own.id)
    if term is not None and said is not None:
        was = said.end_in(term.epoch) if Holder(own.id, said.boot) in term.in_sync or own.id in view.told_since else -1
        if was > (own.log_end if own.epoch == term.epoch else -1):
            return term.epoch, was
    return own.epoch, own.log_end


def counted_since(before: tuple[str, Holder | None], now: tuple[str, Holder | None], since: int, revision: int) -> int:
    """The revision from which on it counts what members tell of an owner's log, after a change of its term; 0: from
    that change. before, now: the epoch's id, and who the owner is. since, revision: of the term before. Neither a
    release nor another set shortens a log. An owner with another boot may have lost the end of it.
    """
    return (since or revision) if before == now else 0
