"""Locks of ordered consumption."""

from __future__ import annotations

import pytest

from appliance.broker.rebalance_lock import RebalanceLockManager
from gantrymq.message.model import MessageQueue

A, B = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def locks(clock: Clock) -> RebalanceLockManager:
    return RebalanceLockManager(clock=clock)


def test_one_client_at_a_time(locks: RebalanceLockManager) -> None:
    assert locks.lock("g", "one", [A]) == [A]
    assert locks.lock("g", "two", [A, B]) == [B]
    assert (locks.holder("g", A), locks.holder("g", B)) == ("one", "two")


def test_groups_do_not_disturb_each_other(locks: RebalanceLockManager) -> None:
    assert locks.lock("g", "one", [A]) == [A]
    assert locks.lock("h", "two", [A]) == [A]


def test_only_the_holder_unlocks(locks: RebalanceLockManager) -> None:
    locks.lock("g", "one", [A])
    locks.unlock("g", "two", [A, B])
    assert locks.holder("g", A) == "one"
    locks.unlock("g", "one", [A])
    assert locks.holder("g", A) is None
    locks.unlock("unknown", "one", [A])


def test_a_lock_lives_sixty_seconds_after_it_was_last_renewed(locks: RebalanceLockManager, clock: Clock) -> None:
    locks.lock("g", "one", [A])
    clock.now = 59
    assert locks.lock("g", "two", [A]) == []
    locks.lock("g", "one", [A])
    clock.now = 118
    assert locks.lock("g", "two", [A]) == []
    clock.now = 119
    assert locks.holder("g", A) is None
    assert locks.lock("g", "two", [A]) == [A]


def test_forgotten_locks_leave_nothing_behind(locks: RebalanceLockManager, clock: Clock) -> None:
    locks.lock("g", "one", [A, B])
    clock.now = 30
    locks.lock("h", "two", [A])
    clock.now = 60
    locks.drop_expired()
    assert locks.holder("h", A) == "two"
    assert list(locks._locks) == ["h"]


def test_locks_are_bounded_and_free_places_are_used_again(clock: Clock) -> None:
    locks = RebalanceLockManager(locks_max=3, clock=clock)
    many = [MessageQueue("t", "b", queue_id) for queue_id in range(5)]
    assert locks.lock("g", "c1", many) == many[:3]
    assert locks.lock("h", "c1", many) == []
    locks.unlock("g", "c1", many[:1])
    assert locks.lock("h", "c2", many) == many[:1]
    clock.now += 61
    locks.drop_expired()
    assert locks.lock("h", "c2", many) == many[:3]
    assert locks._locks.keys() == {"h"}


def test_a_lock_that_changes_hands_by_expiry_is_told(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    locks = RebalanceLockManager(life_s=5, clock=clock)
    queue = [MessageQueue("t", "b", 0)]
    locks.lock("g", "c1", queue)
    clock.now += 6
    assert locks.lock("g", "c2", queue) == queue
    assert [(record.before, record.now) for record in caplog.records] == [("c1", "c2")]  # type: ignore[attr-defined]
