"""What a member does now, from what etcd said last and what it knows itself. A function of values: no I/O, no clock.

It may be called as often as one likes, with a view of any age: each transaction compares what the view says, so an old
view changes nothing, and a candidate's wait is counted from its own receipt. The actor carries the actions out in their
order, and calls again with the outcome in `own`.
"""

from __future__ import annotations

from collections.abc import Iterator

from appliance.failover import in_sync_rules, lease, switching, winning
from appliance.failover.actions import (
    Action,
    Begin,
    Drain,
    DropSwitch,
    Follow,
    Forget,
    Hear,
    MarkOpened,
    PublishSet,
    Refuse,
    Release,
    Renew,
    Require,
    Resume,
    StepDown,
    StopRequiring,
    TakeOver,
)
from appliance.failover.own import Own, Role
from appliance.failover.view import Switch, Term, TermState, View

DRAIN_S_MAX = 10.0  # then a planned switch is given up


def decide(view: View, own: Own, now: float) -> tuple[Action, ...]:
    """The actions, in order. now: of the clock that timed the view."""
    if own.role == Role.FOLLOWING:
        return tuple(_as_follower(view, own, now))
    return tuple(_as_master(view, own, now))


# -- the master, or a member on its way to be -------------------------------------------------------------------------


def is_own_term(view: View, own: Own) -> bool:
    """Whether the term that etcd has is this process's."""
    term = view.term
    return (
        term is not None
        and view.cluster_id == own.cluster_id
        and (term.owner, term.session) == (own.id, own.session)
        and term.state != TermState.RELEASED
    )


def _as_master(view: View, own: Own, now: float) -> Iterator[Action]:
    if view.cluster_id == own.cluster_id and view.term_revision < own.term_revision:
        if frozen := winning.why_frozen(view, own):
            yield Refuse(frozen)
        else:  # an old view
            yield from _renewal(own)
        return
    if frozen := winning.why_frozen(view, own):
        yield Refuse(frozen)  # no renewal either: its proof ends by itself
        return
    term = view.term
    assert term is not None
    if not is_own_term(view, own):
        yield StepDown(_whose(term))
        return
    yield from _renewal(own)
    if own.role == Role.TAKEN:
        if own.is_ready and lease.is_proven(own.first_sent, term.lease_s, now):
            yield MarkOpened(view.term_revision)
        return
    yield from _set_changes(view, term, own)
    yield from _switch_over(view, term, own, now)


def _renewal(own: Own) -> Iterator[Action]:
    """A master that can't do its work lets its proof end."""
    if not own.is_disk_healthy:
        yield Refuse(f"member {own.id} does not renew: its disk does not write")
    elif not own.has_ticked:
        yield Refuse(f"member {own.id} does not renew: it stood still")
    else:
        yield Renew(own.term_revision)


def _set_changes(view: View, term: Term, own: Own) -> Iterator[Action]:
    """One change of the set at a time; see in_sync_rules."""
    if added := in_sync_rules.to_require(term, own):
        yield Require(added)
    if dropped := in_sync_rules.to_stop_requiring(term, own):
        yield StopRequiring(dropped)
    if (wanted := in_sync_rules.to_publish(term, own)) is not None:
        yield PublishSet(view.term_revision, wanted)


def _switch_over(view: View, term: Term, own: Own, now: float) -> Iterator[Action]:
    """Drain, then release. What can't happen is cancelled, so that it does not happen later.

    Once it has drained, a release may have been sent: it is repeated until the term has another revision.
    """
    switch = switching.valid_switch(view, term)
    if own.role == Role.DRAINING and own.has_drained:
        yield Release(view.term_revision, own.log_end)
    elif switch is None or not switch.is_planned:
        if own.role == Role.DRAINING:
            yield Resume()
        if switch is None and view.switch is not None:  # it would prevent the next one
            yield DropSwitch(view.switch.id, f"member {own.id} is there, or the record has changed since")
    elif reason := _why_no_switch(view, term, own, switch, now):
        yield DropSwitch(switch.id, reason)
    elif own.role == Role.MASTER:
        yield Drain(switch.target)


def _why_no_switch(view: View, term: Term, own: Own, switch: Switch, now: float) -> str:
    target = term.holder(switch.target)
    if view.pause is not None:  # no member would take the role
        return f"{view.pause.who} has paused failover"
    if switch.target == own.id:
        return f"member {own.id} is the master already"
    if target is None or target in own.lost:
        return f"member {switch.target} is not in sync"
    if own.role == Role.DRAINING and now - own.draining_since >= DRAIN_S_MAX:
        return f"member {switch.target} did not have all after {DRAIN_S_MAX:.0f} s"
    return ""


# -- all others -------------------------------------------------------------------------------------------------------


def _as_follower(view: View, own: Own, now: float) -> Iterator[Action]:
    term = view.term
    if frozen := winning.why_frozen(view, own):
        yield Refuse(frozen)
        return
    assert term is not None
    if is_executed(view, own) if own.attempt is not None else is_given_by_hand(view, own):
        yield Begin(view.term_revision)
        return
    if term.epoch > own.highest:
        yield Hear(term.epoch, term.epoch_id)
    if own.attempt is not None and not is_pending(view, own):
        yield Forget()
    if reason := winning.why_not(view, own, now):
        yield from _follow(term, own)
        yield Refuse(reason)
        return
    yield _take_over(view, term, own, now)


def is_executed(view: View, own: Own) -> bool:
    """Whether the attempt is what etcd has: its id is random."""
    assert view.term is not None and own.attempt is not None
    return (view.term.epoch_id, view.term.session) == (own.attempt.epoch_id, own.session)


def is_given_by_hand(view: View, own: Own) -> bool:
    """Whether a promotion by hand gave the epoch on record to this process, which has not begun it: the answer was
    lost. A copy of this process, as in a machine that was cloned with its memory, has its session but did not ask."""
    term = view.term
    assert term is not None
    is_own = (term.owner, term.session) == (own.id, own.session)
    is_asked = is_own and term.epoch_id in own.asked
    return is_asked and term.state == TermState.OPENING and own.epoch < term.epoch


def is_pending(view: View, own: Own) -> bool:
    """Whether the attempt may still be executed: no later revision of what it compares is known."""
    attempt = own.attempt
    assert attempt is not None
    return (
        attempt.cluster_id == view.cluster_id
        and view.term_revision <= attempt.term_revision
        and view.beat_revision <= attempt.beat_revision
    )


def _follow(term: Term, own: Own) -> Iterator[Action]:
    is_dead = winning.is_restarted_owner(term, own)
    if term.state != TermState.RELEASED and term.owner != own.id and not is_dead and own.following != term.epoch:
        yield Follow(term.owner, term.address, term.epoch, term.epoch_id)


def _take_over(view: View, term: Term, own: Own, now: float) -> TakeOver:
    switch = switching.timely_switch(view, term, now)
    is_clean = not winning.why_not_complete(term, own)
    others = {each for each in term.in_sync if each.id not in (own.id, term.owner)} if is_clean else set()
    return TakeOver(
        epoch=max(term.epoch, own.highest) + 1,
        term_revision=view.term_revision,
        beat_revision=view.beat_revision,
        in_sync=frozenset({*others, own.holder}),
        reason=_why_take_over(term, own, switch),
        is_clean=is_clean,
        switch=switch.id if switch is not None else "",
    )


def _why_take_over(term: Term, own: Own, switch: Switch | None) -> str:
    if switch is not None and switch.target == own.id:
        return "switchover" if switch.is_planned else f"unclean switchover, {switch.accepted_loss:,} bytes accepted"
    if winning.is_restarted_owner(term, own):
        return f"member {own.id} was the master, and has restarted"
    if term.state == TermState.RELEASED:
        return "the master before has released the term"
    return f"member {term.owner} has not renewed for {term.lease_s:.1f} s"


def _whose(term: Term) -> str:
    if term.state == TermState.RELEASED:
        return f"epoch {term.epoch} is released"
    return f"etcd has epoch {term.epoch} of member {term.owner} on record"
