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


def test_what_was_there_before_the_first_look_may_be_old_until_it_changes() -> None:
    """So it is after a time without looks, in which a change may have come early. A member that joins is known."""
    seen, later = Seen(), GONE._replace(log_end=20_000)
    assert (seen.recent({2: (17, GONE)}, 0.0), seen.unsure) == ({2: GONE}, {2})
    seen.recent({2: (17, GONE), 3: (18, GONE)}, 1.0)
    assert seen.unsure == {2}
    seen.recent({2: (19, later), 3: (18, GONE)}, 2.0)
    assert seen.unsure == set()
    seen.recent({2: (90, later), 3: (18, GONE)}, 2.0 + FIGURES_LIFE_S + 1.0)
    assert seen.unsure == {2}


def test_where_epochs_begin_is_as_the_history_has_it() -> None:
    rows = Change(1, "one", "h1:10911", -1, "init", 0), Change(2, "two", "h2:10911", 900, "switchover", 1)
    assert as_decided(View(history=rows), {}, sent=0.0, received=0.0, lease_s=5.0).starts == {1: -1, 2: 900}
