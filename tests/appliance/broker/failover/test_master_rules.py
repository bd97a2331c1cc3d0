"""Where a master's rules run: in appliance.failover, or in code of the broker that has to decide alike.

    appliance.failover.decide    a candidate's take-over (candidate.py); a master's switchover and release
                                 (master_role.py)
    register/renewals.py         whether a master renews
    register/register.py         whether a process that starts goes on in the epoch of the one before it: the
                                 simulation has that as `owners_go_on`
    replication/in_sync.py and master/published_set.py
                                 who enters and leaves the set: required before it is put there, until it is not there

This compares the second with decide, view by view; test_set_rules.py compares the last with in_sync_rules.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest

from appliance.broker.failover.on_record import as_decided
from appliance.failover.actions import Renew
from appliance.failover.decide import decide
from appliance.failover.own import Own, Role
from appliance.failover.view import Beat, Holder, Pause, TermState
from appliance.register.register import Register
from appliance.register.renewals import Renewals
from appliance.register.term import IN_SYNC, Term, View

ONE, TWO = "127.0.0.1:1", "127.0.0.1:2"
HOLDERS = {ONE: Holder(1, "a"), TWO: Holder(2, "b")}
TERM = Term(4, "four", ONE, (ONE, TWO), IN_SYNC, HOLDERS, session="own")
VIEW = View(
    TERM, 30, stores={"u1": 1, "u2": 2}, group="g", cluster_id=7, adopted_cluster_id=7, beat=Beat("beats", 9),
    beat_revision=40,
)  # fmt: skip
MASTER = Own(
    id=1, store_uuid="u1", group="g", boot="a", session="own", role=Role.MASTER, epoch=4, epoch_id="four", highest=4,
    log_end=0, dispatched_end=0, confirmed=0, cluster_id=7, term_revision=30, required=frozenset(HOLDERS.values()),
)  # fmt: skip


class Told(Register):
    """Says what etcd has, and notes renewals."""

    def __init__(self, view: View) -> None:
        self.session, self._told, self.renewed = "own", view, False

    async def view(self) -> View:
        return self._told

    async def renew(self, beat: Beat, term_revision: int, beat_revision: int, cluster_id: int) -> int | None:
        self.renewed = True
        return beat_revision + 1


async def renews(view: View) -> bool:
    register = Told(view)
    renewals = Renewals(
        register, lease_s=5.0, clock=time.monotonic, is_healthy=lambda: True, on_other=lambda term: None
    )
    renewals.epoch, renewals.epoch_id = 4, "four"
    await renewals.round()
    return register.renewed


def decides_to_renew(view: View) -> bool:
    found = as_decided(view, {}, sent=99.0, received=99.0, lease_s=5.0)
    return any(isinstance(action, Renew) for action in decide(found, MASTER, 100.0))


def seen(**changes: Any) -> View:
    """VIEW, with changes of the term's fields under term_…"""
    term = {name.removeprefix("term_"): changes.pop(name) for name in list(changes) if name.startswith("term_")}
    return dataclasses.replace(VIEW, term=dataclasses.replace(TERM, **term), **changes)


ALIKE = {
    "as it is": seen(),
    "paused": seen(pause=Pause("ops", "", 0, 0)),
    "its role is given up": seen(term_state=TermState.RELEASED),
    "another process has its epoch": seen(term_session="another"),
    "a later epoch of another": seen(term_epoch=5, term_id="five", term_owner=TWO, term_session="two"),
    "the same number of another": seen(term_id="other", term_owner=TWO, term_session="two"),
    "restored in another cluster of etcd": seen(cluster_id=8),
    "the set is smaller": seen(term_in_sync=(ONE,), term_holders={ONE: HOLDERS[ONE]}),
}


@pytest.mark.parametrize("view", ALIKE.values(), ids=ALIKE)
async def test_a_master_renews_when_the_simulated_rules_do(view: View) -> None:
    assert await renews(view) == decides_to_renew(view)


async def test_in_a_record_that_no_member_has_joined_a_master_goes_on_where_the_rules_would_stop_it() -> None:
    """No candidate takes over there, so one master goes on."""
    view = seen(stores={})
    assert await renews(view)
    assert not decides_to_renew(view)
