"""Which switch counts, and what the target of an unclean one must not lack.

An unclean switch counts for the term and the beat that were seen, for a target that has seen it come, and not for long:
so no other state of things than the one that a person looked at is decided by it, also when it is not cancelled.
"""

from __future__ import annotations

from appliance.failover.own import Own
from appliance.failover.view import Switch, Term, View

SWITCH_S = 30.0  # and a lease, for an unclean one: then it has not happened


def valid_switch(view: View, term: Term) -> Switch | None:
    """The switch that an administrator asked for, if it is of this term."""
    switch = view.switch
    if switch is None or switch.epoch != term.epoch:
        return None
    seen = switch.term_revision, switch.beat_revision
    return switch if switch.is_planned or seen == (view.term_revision, view.beat_revision) else None


def timely_switch(view: View, term: Term, now: float) -> Switch | None:
    """The same for a member that is not the master."""
    switch = valid_switch(view, term)
    if switch is None or switch.is_planned:
        return switch
    return switch if view.switch_after is not None and now - view.switch_after <= SWITCH_S + term.lease_s else None


def unclean_switch(view: View, term: Term, own: Own, now: float) -> Switch | None:
    """The one that has this member take over although it may lack acknowledged messages."""
    switch = timely_switch(view, term, now)
    return None if switch is None or switch.is_planned or switch.target != own.id else switch


def why_loss_is_too_large(view: View, term: Term, own: Own, switch: Switch) -> str:
    """Why a member might lose more than was accepted; "" when it does not, as far as etcd and this member know."""
    return _why_other_log(term, own, switch) or _why_unknown(term, own, switch) or _why_shorter(view, term, own, switch)


def _is_of_term(term: Term, own: Own) -> bool:
    return (own.epoch, own.epoch_id) == (term.epoch, term.epoch_id)


def _why_other_log(term: Term, own: Own, switch: Switch) -> str:
    """Ends of logs tell nothing across epochs: what a master of before had alone makes its log the longest."""
    if _is_of_term(term, own) or 0 < own.epoch == switch.accepted_epoch:
        return ""
    return (
        f"the log of member {own.id} ends in epoch {own.epoch}, and etcd has epoch {term.epoch} on record: its length "
        "does not tell what it lacks"
    )


def _why_unknown(term: Term, own: Own, switch: Switch) -> str:
    has_heard = own.master_end >= 0 and _is_of_term(term, own)
    if switch.accepts_unknown or has_heard or term.end >= 0:
        return ""
    return (
        f"member {own.id} has not heard of the master of epoch {term.epoch} since it started: what it lacks is not "
        "known, and that was not accepted"
    )


def _why_shorter(view: View, term: Term, own: Own, switch: Switch) -> str:
    """What lost members told last counts like what the others tell: more than they say must not be lost."""
    end = own.log_end if _is_of_term(term, own) else _end_of_common(view, own)
    ends = [(figures.log_end, member) for member, figures in view.told.items() if member != own.id]
    longest, member = max([*ends, (own.master_end, term.owner), (term.end, term.owner)])
    lacks = longest - end
    if lacks <= switch.accepted_loss:
        return ""
    return (
        f"member {own.id} lacks {lacks:,} bytes that member {member} has, and {switch.accepted_loss:,} bytes of loss "
        "were accepted"
    )


def _end_of_common(view: View, own: Own) -> int:
    """Up to where a log of an earlier epoch is surely the one on record: what was confirmed in it, before a later epoch
    began, since an unclean one begins without a part of that."""
    begun = min((start for epoch, start in view.starts.items() if epoch > own.epoch), default=0)
    return max(min(own.log_end, own.confirmed, begun), 0)
