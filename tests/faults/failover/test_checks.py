"""The checks of a run's offsets, ordered deliveries and later messages: what they find, and what they let pass."""

from __future__ import annotations

from collections import Counter

import pytest

from appliance.register.renewals import STANDS_STILL
from tests.faults.failover.commits import Commit, Look, lost_commits
from tests.faults.failover.diary import STEPS_DOWN, Calm, Diary, Entry
from tests.faults.failover.later import not_come
from tests.faults.replication.history import Delivery, EpochRow, Log, QueueKey, Stored, left_out, out_of_turn

QUEUE = QueueKey("T", 0)
COMMITS = [Commit(at / 10, at / 10, "one", at) for at in range(100)]  # the last at 9.9 s


@pytest.mark.parametrize(("offset", "kinds"), [(99, []), (89, []), (88, ["offset_back"]), (0, ["offset_back"])])
def test_a_new_master_may_lack_the_commits_of_the_last_moments_only(offset: int, kinds: list[str]) -> None:
    seen = [*COMMITS, Look(20.0, "two", offset), Commit(20.1, 20.1, "two", 100)]
    assert [found.kind for found in lost_commits(seen)] == kinds


def test_each_new_master_is_looked_at() -> None:
    seen = [*COMMITS, Look(20.0, "two", 99), *(Commit(20 + at / 10, 20 + at / 10, "two", 100 + at) for at in range(50))]
    assert not lost_commits(seen)
    assert lost_commits([*seen, Look(30.0, "one", 99)])


@pytest.mark.parametrize(
    ("offsets", "is_well"), [([0, 1, 2], True), ([0, 1, 0, 1, 2], True), ([0, 2], False), ([1], False), ([], True)]
)
def test_an_ordered_consumer_may_get_messages_again_but_leaves_none_out(offsets: list[int], is_well: bool) -> None:
    assert (not out_of_turn([Delivery(QUEUE, offset, b"") for offset in offsets])) is is_well


def test_what_a_consumer_never_got_is_found() -> None:
    stored = [Stored(at, QUEUE, at, b"") for at in range(3)]
    log = Log("one", 0, b"", [*stored, Stored(3, QueueKey("other", 0), 0, b"")], [EpochRow(1, 0, "a")])
    given = [Delivery(QUEUE, offset, b"") for offset in (0, 2)]
    assert [found.kind for found in left_out(given, log, "T")] == ["never_delivered"]
    assert not left_out([*given, Delivery(QUEUE, 1, b"")], log, "T")


def test_what_was_promised_comes_and_what_was_rolled_back_does_not() -> None:
    come = Counter({b"timed": 2, b"kept": 1, b"dropped": 1})
    assert not list(not_come([b"timed", b"kept"], [b"gone"], come))
    assert [found.kind for found in not_come([b"late"], [b"dropped"], come)] == ["not_come", "rolled_back_but_come"]


def test_a_master_that_steps_down_in_a_calm_is_found_unless_the_machine_starved_the_group() -> None:
    diary = Diary({})
    diary.entries += [Entry(1.0, STEPS_DOWN), Entry(3.0, "another line"), Entry(4.0, f"two: {STEPS_DOWN}")]
    diary.late += [(1.0, 5.0), (3.0, 0.5)]
    diary.etcd_starved_at.append(1.0)
    assert diary.calm(2.0) == Calm(0.5, False, [f"two: {STEPS_DOWN}"])
    assert [found.kind for found in diary.calm(2.0).findings(1.0)] == ["changed_without_a_blow"]
    assert not diary.calm(2.0).findings(0.5)
    assert not diary.calm(5.0).findings(1.0)
    diary.etcd_starved_at.append(3.0)
    assert not diary.calm(2.0).findings(1.0)
    diary.entries.append(Entry(4.0, f"{STEPS_DOWN}: {STANDS_STILL}"))
    assert len(diary.calm(2.0).findings(1.0)) == 1
