"""What a member does with one view: each rule once, with the reason that an administrator reads."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from appliance.failover import actions as do
from appliance.failover.decide import DRAIN_S_MAX, decide
from appliance.failover.older_copy import is_older_copy
from appliance.failover.own import Attempt, Doubt, Role
from appliance.failover.switching import SWITCH_S
from appliance.failover.view import Figures, Level, Pause, Switch, Term, TermState
from appliance.failover.winning import why_never
from appliance.register.term import figures_from_json
from appliance.settings.roles import BrokerConfig
from tests.appliance.failover.members import MASTER, NOW, ONE, SLAVE, TERM, THREE, TWO, VIEW, own, viewed

# -- who may win ------------------------------------------------------------------------------------------------------


def test_a_member_of_the_set_takes_over_when_the_beat_has_stood_still_for_a_lease() -> None:
    (action,) = decide(viewed(changed=NOW - 5.0), SLAVE, NOW)
    assert action == do.TakeOver(5, 30, 40, frozenset({TWO}), "member 1 has not renewed for 5.0 s")


LONGER = Figures("h3", "c", 4, 1200, 1200, is_healthy=True)
EQUAL = Figures("h3", "c", 4, 1000, 1000, is_healthy=True, priority=1)
UNCLEAN = Switch("x", 2, False, 100, 4, 30, 40)
REASONS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"changed": 97.0}, {}, "the lease of member 1 may last: 3.0 of 5.0 s have passed"),
    ({"of_in_sync": frozenset({ONE, THREE})}, {}, "member 2 is not in sync: epoch 4 has 1, 3 on record"),
    ({}, {"boot": "b2"}, "the machine of member 2 has restarted since it came in sync"),
    ({}, {"boot": "b2", "clean_boot": "b1"}, "the machine of member 2 has restarted since it came in sync"),
    ({}, {"boot": "b2", "doubt": Doubt.OLDER}, "the store of member 2 is an older copy"),
    ({}, {"boot": "b2", "doubt": Doubt.COPY}, "the store of member 2 is a copy of an open store"),
    ({}, {"boot": "b2", "doubt": Doubt.DISK}, "the store of member 2 is on a disk that did not take its log"),
    ({}, {"is_twice": True}, "another process tells etcd that it is member 2"),
    ({"of_level": Level.LOCAL}, {}, "the set proves nothing of member 2"),
    ({"pause": Pause("ops", "disks", 0, 0)}, {}, "ops has paused failover: disks"),
    ({}, {"is_automatic": False}, "automatic failover is off at member 2"),
    ({}, {"is_disk_healthy": False}, "the disk of member 2 does not write"),
    ({}, {"has_ticked": False}, "member 2 stood still"),
    ({}, {"highest": 6}, "etcd has epoch 4 on record, and member 2 has heard of epoch 6"),
    ({"cluster_id": 0xAB}, {}, "etcd is cluster ab and its record is of cluster 7"),
    ({"group": "other"}, {}, "etcd has group other on record, and the store of member 2 is of group g"),
    ({"ids": {2: "uX"}}, {}, "etcd has store uX on record as member 2, and this store is u2"),
    (
        {"of_in_sync": frozenset({ONE, TWO, THREE}), "members": {3: LONGER}, "changed": 94.5},
        {},
        "member 3 goes first: its log ends at 1,200, that of member 2 at 1,000",
    ),
    (
        {"of_in_sync": frozenset({ONE, TWO, THREE}), "members": {3: EQUAL}, "changed": 94.5},
        {"priority": 2},
        "member 3 goes first: its log ends at 1,000, that of member 2 at 1,000",
    ),
    (
        {"switch": UNCLEAN, "told": {3: LONGER}},  # not lately
        {"master_end": 1000},
        "member 2 lacks 200 bytes that member 3 has, and 100 bytes of loss were accepted",
    ),
    (
        {"switch": UNCLEAN},
        {},
        "member 2 has not heard of the master of epoch 4 since it started: what it lacks is not known",
    ),
    (
        {"switch": UNCLEAN._replace(accepts_unknown=True)},
        {"epoch": 3, "epoch_id": "three", "log_end": 9000, "master_end": 1000},
        "the log of member 2 ends in epoch 3, and etcd has epoch 4 on record: its length does not tell what it lacks",
    ),
    (
        {"switch": UNCLEAN._replace(accepts_unknown=True)},
        {"epoch_id": "another"},
        "the log of member 2 ends in epoch 4, and etcd has epoch 4 on record: its length does not tell what it lacks",
    ),
    (
        {"switch": UNCLEAN._replace(accepted_epoch=3)},
        {"epoch": 3, "epoch_id": "three", "master_end": 1000},  # of the master before
        "member 2 has not heard of the master of epoch 4 since it started: what it lacks is not known",
    ),
    (
        {"switch": UNCLEAN._replace(accepts_unknown=True, accepted_epoch=3), "told": {3: LONGER}},
        {"epoch": 3, "epoch_id": "three", "log_end": 9000},  # confirmed up to 900
        "member 2 lacks 300 bytes that member 3 has, and 100 bytes of loss were accepted",
    ),
    *(
        (
            {
                "switch": UNCLEAN._replace(accepts_unknown=True, accepted_epoch=3),
                "told": {3: LONGER},
                "starts": starts,
            },
            {"epoch": 3, "epoch_id": "three", "log_end": 9000, "confirmed": 9000},
            f"member 2 lacks {lacks:,} bytes that member 3 has, and 100 bytes of loss were accepted",
        )
        for starts, lacks in (({3: 0, 4: 800}, 400), ({2: 0, 4: -1}, 1200), ({}, 1200))
    ),
    (
        {"switch": UNCLEAN},
        {"master_end": 1101},
        "member 2 lacks 101 bytes that member 1 has, and 100 bytes of loss were accepted",
    ),
    (
        {"switch": UNCLEAN, "of_state": TermState.RELEASED, "of_end": 1101},
        {},
        "member 2 lacks 101 bytes that member 1 has, and 100 bytes of loss were accepted",
    ),
]


@pytest.mark.parametrize(("view", "member", "reason"), REASONS, ids=[reason for *_, reason in REASONS])
def test_a_refusal_names_member_and_figure(view: dict[str, Any], member: dict[str, Any], reason: str) -> None:
    *_, refusal = decide(viewed(**view), own(SLAVE, **member), NOW)
    assert isinstance(refusal, do.Refuse)
    assert reason in refusal.reason


def test_a_slave_that_has_not_joined_says_so_though_its_master_does_not_renew_yet() -> None:
    assert "store u2 has no number in etcd's record" in why_never(viewed(beat=None), own(SLAVE, id=0))
    assert "does not renew" in why_never(viewed(beat=None), SLAVE)


def test_without_a_record_it_says_how_one_begins() -> None:
    (refusal,) = decide(dataclasses.replace(VIEW, term=None), SLAVE, NOW)
    assert isinstance(refusal, do.Refuse)
    assert "gantry admin ha init" in refusal.reason


@pytest.mark.parametrize(
    ("view", "member"),
    [
        ({}, {"boot": "b2", "clean_boot": "b"}),  # closed in the boot that is on record
        ({"of_state": TermState.RELEASED, "changed": NOW}, {}),  # no wait
        (
            {"switch": Switch("x", 2, True, 0, 4, 30), "of_state": TermState.RELEASED, "changed": NOW},
            {"is_automatic": False},
        ),
        (
            {"switch": UNCLEAN._replace(accepted_loss=200), "of_in_sync": frozenset({ONE}), "told": {3: LONGER}},
            {"master_end": 1200},
        ),
        ({"switch": UNCLEAN._replace(accepts_unknown=True), "of_in_sync": frozenset({ONE})}, {}),
        (
            {
                "switch": UNCLEAN._replace(accepts_unknown=True, accepted_epoch=3, accepted_loss=300),
                "of_in_sync": frozenset({ONE}),
                "told": {3: LONGER},
            },
            {"epoch": 3, "epoch_id": "three"},
        ),
    ],
)
def test_it_takes_over_when_nothing_speaks_against_it(view: dict[str, Any], member: dict[str, Any]) -> None:
    assert isinstance(decide(viewed(**view), own(SLAVE, **member), NOW)[-1], do.TakeOver)


@pytest.mark.parametrize("seen", [{"term_revision": 29}, {"beat_revision": 39}], ids=["term", "beat"])
def test_an_unclean_switch_of_another_revision_does_not_count(seen: dict[str, Any]) -> None:
    switch, outside = UNCLEAN._replace(**seen), own(SLAVE, master_end=1000)
    (refusal,) = decide(viewed(switch=switch, of_in_sync=frozenset({ONE})), outside, NOW)
    assert refusal == do.Refuse("member 2 is not in sync: epoch 4 has 1 on record")


@pytest.mark.parametrize(
    ("after", "counts"),
    [(None, False), (NOW - SWITCH_S - TERM.lease_s - 0.1, False), (NOW - SWITCH_S - TERM.lease_s, True)],
    ids=["it was there when the member began", "long ago", "in time"],
)
def test_an_unclean_switch_counts_for_a_member_that_has_seen_it_come_and_not_for_long(
    after: float | None, *, counts: bool
) -> None:
    view = viewed(switch=UNCLEAN, switch_after=after, of_in_sync=frozenset({ONE}))
    action = decide(view, own(SLAVE, master_end=1000), NOW)[-1]
    assert isinstance(action, do.TakeOver if counts else do.Refuse)
    assert counts or action == do.Refuse("member 2 is not in sync: epoch 4 has 1 on record")


def test_a_member_in_sync_does_not_take_over_uncleanly_by_a_switch_of_before() -> None:
    (action,) = decide(viewed(switch=UNCLEAN, switch_after=None), SLAVE, NOW)
    assert isinstance(action, do.TakeOver)
    assert action.reason == "member 1 has not renewed for 5.0 s"


@pytest.mark.parametrize("priority", [0, 1])
def test_of_equal_logs_the_lower_priority_goes_first_and_then_the_lower_id(priority: int) -> None:
    view = viewed(of_in_sync=frozenset({ONE, TWO, THREE}), members={3: EQUAL}, changed=94.5)
    assert isinstance(decide(view, own(SLAVE, priority=priority), NOW)[-1], do.TakeOver)


def test_a_member_of_an_earlier_version_that_tells_no_priority_has_the_default_of_the_setting() -> None:
    old = figures_from_json(
        b'{"address":"h3","boot":"c","epoch":4,"log_end":1000,"dispatched_end":1000,"is_healthy":true}'
    )
    view = viewed(of_in_sync=frozenset({ONE, TWO, THREE}), members={3: old}, changed=94.5)
    assert isinstance(decide(view, own(SLAVE, priority=5), NOW)[-1], do.TakeOver)
    assert old.priority == BrokerConfig().broker_election_priority


def test_what_members_say_only_delays_a_member_that_may_win() -> None:
    view = viewed(of_in_sync=frozenset({ONE, TWO, THREE}), members={3: LONGER}, changed=NOW - 6.0)
    assert isinstance(decide(view, SLAVE, NOW)[-1], do.TakeOver)


def test_a_restarted_owner_takes_over_at_once_in_a_new_epoch() -> None:
    restarted = own(SLAVE, id=1, store_uuid="u1", boot="a", session="s1b")
    (action,) = decide(viewed(changed=NOW), restarted, NOW)
    assert isinstance(action, do.TakeOver)
    assert action.epoch == 5


def test_a_restarted_owner_waits_when_its_lock_proves_nothing() -> None:
    restarted = own(SLAVE, id=1, store_uuid="u1", boot="a", session="s1b", is_store_local=False)
    assert isinstance(decide(viewed(changed=NOW), restarted, NOW)[-1], do.Refuse)


# -- what became of an attempt ----------------------------------------------------------------------------------------

ATTEMPT = Attempt("five", 7, 30, 40)


def test_an_attempt_that_etcd_has_is_begun() -> None:
    view = viewed(of_epoch=5, of_epoch_id="five", of_owner=2, of_session="s2", term_revision=41, beat_revision=41)
    assert decide(view, own(SLAVE, attempt=ATTEMPT), NOW) == (do.Begin(41),)


@pytest.mark.parametrize("revisions", [{"term_revision": 31}, {"beat_revision": 41}])
def test_an_attempt_is_lost_when_something_later_is_there(revisions: dict[str, int]) -> None:
    decided = decide(viewed(changed=NOW, **revisions), own(SLAVE, attempt=ATTEMPT), NOW)
    assert decided[0] == do.Forget()


@pytest.mark.parametrize("revisions", [{}, {"beat_revision": 39}])
def test_an_attempt_may_be_executed_as_long_as_what_it_compares_stands(revisions: dict[str, int]) -> None:
    decided = decide(viewed(changed=NOW, **revisions), own(SLAVE, attempt=ATTEMPT), NOW)
    assert do.Forget() not in decided


# -- following --------------------------------------------------------------------------------------------------------


def test_a_later_epoch_is_heard_before_its_master_is_followed() -> None:
    view = viewed(of_epoch=5, of_epoch_id="five", changed=NOW)
    assert decide(view, SLAVE, NOW)[:2] == (do.Hear(5, "five"), do.Follow(1, "h1:10911", 5, "five"))


def test_a_master_that_is_followed_is_not_followed_anew() -> None:
    assert not any(isinstance(action, do.Follow) for action in decide(viewed(changed=NOW), SLAVE, NOW))


# -- the master -------------------------------------------------------------------------------------------------------


def test_a_master_renews() -> None:
    assert decide(VIEW, MASTER, NOW) == (do.Renew(30),)


def test_a_master_renews_though_failover_is_paused() -> None:
    assert decide(viewed(pause=Pause("ops", "", 0, 0)), MASTER, NOW) == (do.Renew(30),)


@pytest.mark.parametrize("trouble", [{"is_disk_healthy": False}, {"has_ticked": False}])
def test_a_master_that_can_not_do_its_work_does_not_renew(trouble: dict[str, bool]) -> None:
    (refusal,) = decide(VIEW, own(MASTER, **trouble), NOW)
    assert isinstance(refusal, do.Refuse)


@pytest.mark.parametrize("changes", [{"cluster_id": 8}, {"group": "other"}, {"ids": {}}])
def test_a_master_does_not_renew_in_an_etcd_that_is_not_its_own(changes: dict[str, Any]) -> None:
    (refusal,) = decide(viewed(**changes), MASTER, NOW)
    assert isinstance(refusal, do.Refuse)


@pytest.mark.parametrize(
    "changes",
    [
        {"of_owner": 2, "of_session": "s2", "of_epoch": 5, "term_revision": 31},
        {"of_session": "s1b", "term_revision": 31},
        {"of_state": TermState.RELEASED, "term_revision": 31},
    ],
)
def test_a_master_steps_down_when_the_term_is_not_its_own(changes: dict[str, Any]) -> None:
    assert isinstance(decide(viewed(**changes), MASTER, NOW)[0], do.StepDown)


def test_an_old_view_changes_nothing() -> None:
    view = viewed(of_owner=2, of_session="s2", term_revision=20)
    assert decide(view, MASTER, NOW) == (do.Renew(30),)


def test_a_taken_epoch_opens_only_inside_the_proof() -> None:
    taken = own(MASTER, role=Role.TAKEN, is_ready=True)
    view = viewed(of_state=TermState.OPENING)
    assert do.MarkOpened(30) in decide(view, taken, NOW)
    assert do.MarkOpened(30) not in decide(view, own(taken, first_sent=NOW - 4.5), NOW)
    assert do.MarkOpened(30) not in decide(view, own(taken, is_ready=False), NOW)


# -- the set ----------------------------------------------------------------------------------------------------------


def test_who_enters_is_required_first_and_published_then() -> None:
    entering = own(MASTER, caught_up=frozenset({TWO, THREE}))
    assert decide(VIEW, entering, NOW)[1:] == (do.Require(frozenset({THREE})),)
    required = own(entering, required=frozenset({ONE, TWO, THREE}))
    assert decide(VIEW, required, NOW)[1:] == (do.PublishSet(30, frozenset({ONE, TWO, THREE})),)


def test_who_leaves_is_published_first_and_not_required_then() -> None:
    leaving = own(MASTER, lost=frozenset({TWO}))
    assert decide(VIEW, leaving, NOW)[1:] == (do.PublishSet(30, frozenset({ONE})),)
    assert decide(viewed(of_in_sync=frozenset({ONE})), leaving, NOW)[1:] == (do.StopRequiring(frozenset({TWO})),)


def test_who_may_still_come_to_be_on_record_stays_required() -> None:
    lost = own(MASTER, lost=frozenset({THREE}), required=frozenset({ONE, TWO, THREE}), unsettled=frozenset({THREE}))
    assert decide(VIEW, lost, NOW)[1:] == (do.PublishSet(30, frozenset({ONE, TWO})),)


# -- a planned switch -------------------------------------------------------------------------------------------------

SWITCH = Switch("x", 2, True, 0, 4, 30)


def test_a_planned_switch_drains_and_then_releases() -> None:
    assert decide(viewed(switch=SWITCH), MASTER, NOW)[1:] == (do.Drain(2),)
    drained = own(MASTER, role=Role.DRAINING, draining_since=NOW - 1, has_drained=True)
    assert decide(viewed(switch=SWITCH), drained, NOW)[1:] == (do.Release(30, 1000),)
    assert decide(VIEW, drained, NOW)[1:] == (do.Release(30, 1000),)  # which may have been sent


@pytest.mark.parametrize(
    ("switch", "member", "reason"),
    [
        (SWITCH._replace(target=3), {}, "member 3 is not in sync"),
        (SWITCH._replace(target=1), {}, "member 1 is the master already"),
        (SWITCH, {"lost": frozenset({TWO})}, "member 2 is not in sync"),
        (
            SWITCH,
            {"role": Role.DRAINING, "draining_since": NOW - DRAIN_S_MAX},
            f"member 2 did not have all after {DRAIN_S_MAX:.0f} s",
        ),
    ],
)
def test_a_switch_that_can_not_happen_is_cancelled(switch: Switch, member: dict[str, Any], reason: str) -> None:
    assert do.DropSwitch("x", reason) in decide(viewed(switch=switch), own(MASTER, **member), NOW)


@pytest.mark.parametrize("role", [Role.MASTER, Role.DRAINING])
def test_a_pause_that_came_after_it_cancels_a_switch(role: Role) -> None:
    """Else the master gives its role up, no member may take it, and it has it again after a lease."""
    view = viewed(switch=SWITCH, pause=Pause("ops", "disks", 0, 0))
    assert decide(view, own(MASTER, role=role, draining_since=NOW), NOW)[1:] == (
        do.DropSwitch("x", "ops has paused failover"),
    )


@pytest.mark.parametrize(("beat_revision", "is_over"), [(39, True), (40, False)])
def test_a_master_that_has_renewed_cancels_an_unclean_switch(beat_revision: int, *, is_over: bool) -> None:
    actions = decide(viewed(switch=UNCLEAN._replace(beat_revision=beat_revision)), MASTER, NOW)
    assert any(isinstance(each, do.DropSwitch) for each in actions) is is_over


def test_an_owner_whose_store_is_an_older_copy_takes_over_when_a_person_accepts_that() -> None:
    copy = own(SLAVE, id=1, store_uuid="u1", boot="after the cut", session="s9", doubt=Doubt.OLDER)
    view = viewed(of_in_sync=frozenset({ONE}), told={2: EQUAL._replace(boot="b", log_end=1100)})
    (refused,) = decide(view, copy, NOW)
    assert isinstance(refused, do.Refuse) and "an older copy" in refused.reason
    accepted = dataclasses.replace(view, switch=UNCLEAN._replace(target=1, accepts_unknown=True))
    (taken,) = decide(accepted, copy, NOW)
    assert isinstance(taken, do.TakeOver) and (taken.epoch, taken.in_sync) == (5, frozenset({copy.holder}))


@pytest.mark.parametrize("was_open", [False, True])
def test_a_store_without_the_epoch_that_it_was_open_in_is_an_older_copy(*, was_open: bool) -> None:
    """One that was killed before it began its epoch lacks that epoch, too."""
    view = viewed(of_state=TermState.RELEASED, of_was_open=was_open)
    assert is_older_copy(view, own(MASTER, role=Role.FOLLOWING, epoch=3)) is was_open


def test_a_master_takes_messages_again_when_no_switch_asks_otherwise() -> None:
    assert decide(VIEW, own(MASTER, role=Role.DRAINING), NOW)[1:] == (do.Resume(),)


# -- promotions by hand -----------------------------------------------------------------------------------------------

BY_HAND = Term(5, "five", 2, "h2:10911", "s2", TermState.OPENING, frozenset({TWO}), level=Level.LOCAL)
GIVEN = dataclasses.replace(VIEW, term=BY_HAND, term_revision=31, beat=None, beat_revision=0)
ASKED = dataclasses.replace(SLAVE, asked=frozenset({"five"}))


def test_a_promotion_whose_answer_was_lost_is_begun_also_during_a_pause() -> None:
    paused = dataclasses.replace(GIVEN, pause=Pause("ops", "", 0, 0))
    assert decide(paused, ASKED, 100.0) == (do.Begin(31),)


def test_a_copy_of_the_process_that_has_not_asked_for_the_epoch_does_not_begin_it() -> None:
    """A machine that was cloned with its memory before the promotion has session, number and boot of the other one."""
    for asked in (frozenset[str](), frozenset({"another"})):
        decided = decide(GIVEN, dataclasses.replace(SLAVE, asked=asked), 100.0)
        assert not any(isinstance(action, do.Begin | do.TakeOver) for action in decided)


def test_an_epoch_that_was_begun_is_not_begun_again() -> None:
    begun = dataclasses.replace(ASKED, epoch=5, epoch_id="five", highest=5)
    assert do.Begin(31) not in decide(GIVEN, begun, 100.0)


def test_the_next_process_of_a_promoted_store_takes_the_next_epoch_at_once() -> None:
    after = dataclasses.replace(SLAVE, session="s3", highest=5)
    (taken,) = decide(GIVEN, after, 100.0)
    assert isinstance(taken, do.TakeOver) and (taken.epoch, taken.in_sync) == (6, frozenset({TWO}))


@pytest.mark.parametrize(
    ("further", "why"),
    [({"boot": "later"}, "has restarted since it came in sync"), ({"is_store_local": False}, "does not renew in etcd")],
)
def test_it_does_not_when_its_log_may_be_another_or_the_process_before_may_live(
    further: dict[str, Any], why: str
) -> None:
    after = dataclasses.replace(SLAVE, session="s3", highest=5, **further)
    (refused,) = decide(GIVEN, after, 100.0)
    assert isinstance(refused, do.Refuse) and why in refused.reason


def test_no_other_member_takes_over_what_was_given_by_hand() -> None:
    other = dataclasses.replace(SLAVE, id=3, store_uuid="u3", boot="c", session="s4", highest=5, following=5)
    (refused,) = decide(GIVEN, other, 100.0)
    assert isinstance(refused, do.Refuse) and "proves nothing of member 3" in refused.reason
