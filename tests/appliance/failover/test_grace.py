"""The grace after silences of etcd: a master that is there goes on, and a dead one has a successor."""

from __future__ import annotations

from appliance.failover.grace import ANSWER_S, GRACE_S, Grace
from appliance.failover.lease import LEASE_S, has_waited
from appliance.failover.view import Beat, Term, TermState, View, following

LOOK_S = 0.25


class Watching:
    """A candidate that looks at a register. now: of its clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.beat_revision = 7
        self._grace = Grace()
        self._seen: View | None = None
        self.answered(LOOK_S)

    def answered(self, for_s: float) -> None:
        for _ in range(round(for_s / LOOK_S)):
            self.now += LOOK_S
            self._seen = following(self._seen, self._view())
            self.decided_with = self._grace.granted(self._seen)

    def silent(self, for_s: float) -> None:
        self.now += for_s
        self._grace.silent()

    @property
    def waits_no_longer(self) -> bool:
        return has_waited(self.decided_with.changed, LEASE_S, self.decided_with.received)

    def _view(self) -> View:
        term = Term(1, "e", 1, "", "s", TermState.OPEN, frozenset())
        return View(
            1, self.now, self.now, term=term, term_revision=5, beat=Beat("s", 1), beat_revision=self.beat_revision
        )


def test_without_a_silence_a_candidate_waits_a_lease() -> None:
    watching = Watching()
    watching.answered(LEASE_S - LOOK_S)
    assert not watching.waits_no_longer
    watching.answered(LOOK_S)
    assert watching.waits_no_longer


def test_after_a_long_silence_the_master_has_time_to_renew() -> None:
    watching = Watching()
    watching.silent(60.0)
    watching.answered(GRACE_S)
    assert not watching.waits_no_longer
    watching.answered(LOOK_S)
    assert watching.waits_no_longer


def test_silences_that_follow_each_other_do_not_put_a_successor_off() -> None:
    """Three seconds of answers in all, in pieces of a half: it was three at a stretch."""
    watching = Watching()
    pieces = 0
    while not watching.waits_no_longer:
        watching.silent(2.5)
        watching.answered(2 * LOOK_S)
        pieces += 1
        assert pieces * 2 * LOOK_S <= GRACE_S + 2 * LOOK_S
    assert pieces > 1


def test_a_silence_after_each_answer_does_not_put_it_off_for_ever_either() -> None:
    watching = Watching()
    for _ in range(round(GRACE_S / ANSWER_S) + 1):
        assert not watching.waits_no_longer
        watching.silent(2.0)
        watching.answered(LOOK_S)
    assert watching.waits_no_longer


def test_a_beat_that_has_changed_over_the_silence_begins_the_wait_and_the_grace_anew() -> None:
    watching = Watching()
    watching.silent(60.0)
    watching.answered(GRACE_S + LOOK_S)
    watching.silent(2.0)
    watching.beat_revision += 1
    watching.answered(LEASE_S)
    assert not watching.waits_no_longer
    watching.silent(60.0)
    watching.answered(GRACE_S)
    assert not watching.waits_no_longer


def test_the_grace_never_ends_a_wait_before_its_lease_is_over() -> None:
    watching = Watching()
    watching.answered(LOOK_S)
    watching.silent(0.1)
    watching.answered(GRACE_S + LOOK_S)
    assert not watching.waits_no_longer
    watching.answered(LEASE_S - GRACE_S)
    assert watching.waits_no_longer


def test_the_better_of_two_members_goes_first_also_after_a_silence() -> None:
    """The lease that is waited for, and with it who defers to whom, is counted to when the grace is over."""
    watching = Watching()
    watching.silent(60.0)
    watching.answered(GRACE_S + LOOK_S)
    decided = watching.decided_with
    assert decided.received - decided.changed <= LEASE_S + LOOK_S
