"""Whether a process may go on with the epoch that the record has for its store: each reason why not. No I/O.

The simulation asks the same functions (tests/appliance/failover/simulation), and has a mutant without each reason why
an owner's log may lack a part. A member has one process there, so why_not_over is shown with a real etcd alone
(tests/appliance/register/test_process_before.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from appliance.failover.lease import Watched
from appliance.failover.older_copy import owners_end
from appliance.failover.view import Holder, TermState
from appliance.process.process_identity import is_of_same_boot, is_running
from appliance.register.term import IN_SYNC, Term, View


def holders_of(
    view: View, epoch: int, epoch_id: str, members: Collection[str], stores: Mapping[str, tuple[str, str]]
) -> dict[str, Holder]:
    """Which members stand behind these addresses, as far as they have joined. A stranger takes no member's place."""
    before = view.term.holders if view.term is not None and view.term.is_of(epoch, epoch_id) else {}
    holders = {at: before[at] for at in members if at in before and at not in stores}
    for at in members:
        store, boot = stores.get(at, ("", ""))
        if store in view.stores:
            holders[at] = Holder(view.stores[store], boot)
    return holders


def is_dead(term: Term, session: str, *, is_store_local: bool) -> bool:
    """Whether the process of this term, which had this store, is known to be dead: it was one of this machine since
    its boot, and its lock of the store is this process's now. A disk may have come from another machine, and the
    folder may be a copy of one that a process still has. session: of this process."""
    if not is_store_local or not term.session:
        return is_store_local
    return is_of_same_boot(term.session, session) and not is_running(term.session)


def why_not_over(
    view: View, term: Term, session: str, before: Watched, lease_s: float, now: float, *, is_store_local: bool
) -> str:
    """Why the process before may still be the master: it is not known to be dead, and has renewed. before: its beat, as
    this process has watched it."""
    if view.beat is None or term.state == TermState.RELEASED or term.session == session:
        return ""
    if is_dead(term, session, is_store_local=is_store_local) or before.is_still(view.beat_revision, lease_s, now):
        return ""
    return (
        "the process before may still be the master, as it runs, did not run on this machine since its boot, "
        f"or the store is not on a local disk: this one waits until that has been silent for {lease_s:g} s"
    )


def why_another_store(before: Term, now: Holder | None) -> str:
    """Why this store, of the member `now`, is not the owner's on record: restored or copied, it may be an older copy of
    that. What is known of the owner's log says nothing of this one."""
    was = before.holders.get(before.owner)
    if was is None or (now is not None and now.id == was.id):
        return ""
    return (
        f"epoch {before.epoch} is of {was} at {before.owner}, and this is another store, which may lack a part of "
        "its log: have it join, and if no other member takes over, `gantry admin ha switchover --unclean` decides"
    )


def why_end_is_lost(before: Term, owner: str, now: Holder | None) -> str:
    """Why an owner lacks what others have: its machine has restarted since the set was put there."""
    was = next((each for each in before.holders.values() if now is not None and each.id == now.id), None)
    if before.level != IN_SYNC or len(before.in_sync) < 2 or was is None or now is None or was == now:
        return ""
    others = ", ".join(each for each in before.in_sync if each != owner)
    return (
        f"the machine of member {now.id} has restarted since it came in sync: the end of its log may be lost, and "
        f"{others} has it"
    )


def why_shorter(view: View, before: Term, now: Holder | None, end: int) -> str:
    """Why an owner lacks a part: its log was longer in the boot that it has still. end: -1: not known."""
    in_sync = [before.holders[at] for at in before.in_sync if at in before.holders]
    if end < 0 or now is None or now not in in_sync:
        return ""
    told = {member: said for member, (_, said) in view.figures.items()}
    known, member = owners_end(before.epoch, now.id, in_sync, told, view.told_since, before.end)
    if known <= end:
        return ""
    of_it = f"member {member} has reported {known:,}" if member != now.id else f"it gave up its role at {known:,}"
    return f"this log ends at {end:,}, and {of_it} to etcd: this store may be an older copy, and lacks what is above"


def why_shortened(view: View, before: Term, owner: str, now: Holder | None, end: int, *, has_claimed: bool) -> str:
    """Why the log of the epoch's owner may lack a part; "" where nothing speaks for that. now: which member it is.
    has_claimed: this process has had its session on record, so only its boot can have changed."""
    why = why_end_is_lost(before, owner, now)
    return why if why or has_claimed else why_another_store(before, now) or why_shorter(view, before, now, end)
