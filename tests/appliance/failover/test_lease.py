"""The two times: how long a beat proves something, and how long a candidate waits."""

from __future__ import annotations

import pytest

from appliance.failover.lease import (
    LEASE_S_MAX,
    LEASE_S_MIN,
    PENDING_MAX,
    Beats,
    Watched,
    deadline,
    has_waited,
    is_proven,
)


@pytest.mark.parametrize("lease_s", [LEASE_S_MIN, 5.0, LEASE_S_MAX])
def test_a_proof_is_over_before_a_candidate_has_waited_though_clocks_differ_by_two_percent(lease_s: float) -> None:
    assert deadline(0.0, lease_s) * 1.01 < lease_s * 0.99
    assert not is_proven(0.0, lease_s, deadline(0.0, lease_s))
    assert not has_waited(0.0, lease_s, lease_s * 0.99)
    assert has_waited(0.0, lease_s, lease_s)


def test_nothing_is_proven_before_etcd_has_a_beat() -> None:
    assert not is_proven(None, 5.0, 0.0)


def test_a_beat_proves_from_when_it_was_first_sent_and_not_from_its_answer() -> None:
    beats = Beats()
    first = beats.next(10.0)
    second = beats.next(12.0)
    beats.arrived(first)  # read back late
    assert beats.first_sent == 10.0
    beats.arrived(second)
    assert beats.first_sent == 12.0


def test_an_older_beat_that_arrives_late_takes_nothing_back() -> None:
    beats = Beats()
    first, second = beats.next(10.0), beats.next(12.0)
    beats.arrived(second)
    beats.arrived(first)
    assert beats.first_sent == 12.0


def test_a_beat_of_which_nothing_is_remembered_proves_nothing() -> None:
    beats = Beats()
    beats.arrived(3)
    assert beats.first_sent is None


def test_beats_without_an_answer_are_remembered_up_to_a_bound() -> None:
    beats = Beats()
    for at in range(PENDING_MAX * 2):
        beats.next(float(at))
    assert len(beats.pending) == PENDING_MAX
    beats.arrived(1)
    assert beats.first_sent is None


def test_a_beat_is_still_once_it_has_not_changed_for_a_lease_since_it_was_first_seen() -> None:
    watched = Watched()
    assert not watched.is_still(7, 5.0, 100.0)
    assert not watched.is_still(7, 5.0, 104.9)
    assert not watched.is_still(8, 5.0, 106.0)
    assert not watched.is_still(8, 5.0, 110.9)
    assert watched.is_still(8, 5.0, 111.0)
