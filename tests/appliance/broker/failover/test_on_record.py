"""What a member decides with, of what stands in etcd."""

from __future__ import annotations

from appliance.broker.failover.on_record import FIGURES_LIFE_S, Seen, as_decided
from appliance.failover.view import Figures
from appliance.register.term import Change, View

GONE = Figures("h2:10911", "b", 4, 10_000, 10_000, is_healthy=True)


def test_what_a_lost_member_told_last_is_kept_though_it_is_not_recent() -> None:
    seen, read = Seen(), View(figures={2: (17, GONE)})
    seen.recent(read.figures, 0.0)
    late = FIGURES_LIFE_S + 1.0
    view = as_decided(read, seen.recent(read.figures, late), sent=late, received=late, lease_s=5.0)
    assert (view.members, view.told) == ({}, {2: GONE})


def test_where_epochs_begin_is_as_the_history_has_it() -> None:
    rows = Change(1, "one", "h1:10911", -1, "init", 0), Change(2, "two", "h2:10911", 900, "switchover", 1)
    assert as_decided(View(history=rows), {}, sent=0.0, received=0.0, lease_s=5.0).starts == {1: -1, 2: 900}
