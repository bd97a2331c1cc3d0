"""The order in which a member enters and leaves the in-sync set: what is on record is always required.

    enter   require it, see that it has all that was confirmed meanwhile, publish
    leave   publish, then stop requiring it
    unknown what may be on record is required: the union of all sets that were sent and may still be executed

So whatever set a reader finds on record, each member of it has every acknowledged message (RocketMQ's issue 5663: the
other order loses some).
"""

from __future__ import annotations

from appliance.failover.own import Own
from appliance.failover.view import Holder, Term


def to_require(term: Term, own: Own) -> frozenset[Holder]:
    """Who has to be required from now on."""
    return (term.in_sync | (own.caught_up - own.lost)) - own.required


def to_publish(term: Term, own: Own) -> frozenset[Holder] | None:
    """The set to put on record; None when the one that is there may stay."""
    entering = (own.caught_up & own.required) - own.lost - term.in_sync
    leaving = (term.in_sync & own.lost) - {own.holder}
    wanted = ((term.in_sync - leaving) | entering) | {own.holder}
    if wanted != term.in_sync:
        return wanted
    return term.in_sync if to_settle(term, own) else None


def to_settle(term: Term, own: Own) -> frozenset[Holder]:
    """Who is lost and not on record, but in a set that may still come to be: another revision prevents it."""
    return (own.required & own.lost & own.unsettled) - term.in_sync


def to_stop_requiring(term: Term, own: Own) -> frozenset[Holder]:
    """Who is not on record, and can't be any more."""
    return (own.required & own.lost) - term.in_sync - own.unsettled - {own.holder}
