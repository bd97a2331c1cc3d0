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
        return term.state == TermState.OPEN or end >= 0
    return own.epoch == term.epoch and end > own.log_end


def owners_end(
    epoch: int, owner: int, in_sync: Collection[Holder], told: Mapping[int, Figures], since: Collection[int], end: int
) -> tuple[int, int]:
    """Up to where the log of an epoch's owner went, as far as is known, and the member that tells it; the owner itself,
    where it has released the epoch at that end. -1: not known. To ask only while the owner has the boot that the set
    names: in another one it may have lost its end, and others may have what was above that.

    No member has more of an epoch than its owner had, also one that is not in sync, as it copies from that log. What it
    has told counts in the boot that the set names; in an earlier one it may have been a rival's log, which it has cut
    since. All else counts if it was told after the term's last change. A sole owner that lost its end with its machine
    goes on, and what a dead slave told of the lost part would refuse it at each later start, until its log is as long
    again; but with its new boot it has changed the term. There is left a slave outside the set
    that lives then: within an epoch nothing is cut, so it goes on telling the lost part, and the owner is refused if it
    starts again before its log is as long. No record tells this from an older copy; a person decides.
    """
    ends = [
        (said.log_end, member)
        for member, said in told.items()
        if member != owner and said.epoch == epoch and (Holder(member, said.boot) in in_sync or member in since)
    ]
    return max([*ends, (end, owner)])
