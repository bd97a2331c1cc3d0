"""What the register's own checks say to a member that would go on in its epoch: they read the record as it stands in
etcd, with addresses. A member serves at its number here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.failover.lease import Watched
from appliance.failover.view import View
from appliance.register import owner, term

if TYPE_CHECKING:
    from tests.appliance.failover.simulation.member import Process


def why_not_on(view: View, process: Process, before: Watched) -> tuple[str, str]:
    """Why its log may lack a part, and why the process before may still be the master. before: its beat, as this one
    has watched it."""
    record, own = _as_read(view), str(process.member.id)
    assert record.term is not None
    store = process.member.store, _boot(view, process)
    holders = owner.holders_of(record, record.term.epoch, record.term.id, {*record.term.in_sync, own}, {own: store})
    end = len(process.disk.log)
    why = owner.why_shortened(record, record.term, own, holders.get(own), end, has_claimed=False)
    lease_s, now = process.lease_s, process.clock()
    late = owner.why_not_over(record, record.term, process.session, before, lease_s, now, is_store_local=True)
    return why, late


def _boot(view: View, process: Process) -> str:
    """Over a clean stop a store keeps its boot; here the record says which of the two it means."""
    assert view.term is not None
    return next((each.boot for each in process.own().holders if each in view.term.in_sync), process.holder.boot)


def _as_read(view: View) -> term.View:
    found = view.term
    assert found is not None
    holders = {str(each.id): each for each in found.in_sync}
    since = {member: view.term_revision + (member in view.told_since) for member in view.told}
    return term.View(
        term.Term(
            found.epoch,
            found.epoch_id,
            str(found.owner),
            tuple(sorted(holders)),
            term.IN_SYNC,
            holders,
            session=found.session,
            state=found.state,
            end=found.end,
            was_open=found.was_open,
        ),
        view.term_revision,
        stores={store: number for number, store in view.ids.items()},
        beat=view.beat,
        beat_revision=view.beat_revision,
        figures={member: (since[member], said) for member, said in view.told.items()},
    )
