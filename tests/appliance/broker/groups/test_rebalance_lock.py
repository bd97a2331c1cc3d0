"""Locks of ordered consumption."""

from __future__ import annotations

import asyncio

import pytest

from appliance.broker.groups import rebalance_lock
from appliance.broker.groups.rebalance_lock import RebalanceLockManager
from gantrymq.message.model import MessageQueue
from tests.waiting import Clock

A, B = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


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


async def test_forgotten_locks_leave_nothing_behind(locks: RebalanceLockManager, clock: Clock) -> None:
    locks.lock("g", "one", [A, B])
    clock.now = 30
    locks.lock("h", "two", [A])
    clock.now = 60
    await locks.drop_expired()
    assert locks.holder("h", A) == "two"
    assert len(locks) == 1


async def test_locks_are_bounded_and_free_places_are_used_again(clock: Clock) -> None:
    locks = RebalanceLockManager(locks_max=3, clock=clock)
    many = [MessageQueue("t", "b", queue_id) for queue_id in range(5)]
    assert locks.lock("g", "c1", many) == many[:3]
    assert locks.lock("h", "c1", many) == []
    locks.unlock("g", "c1", many[:1])
    assert locks.lock("h", "c2", many) == many[:1]
    clock.now += 61
    await locks.drop_expired()
    assert locks.lock("h", "c2", many) == many[:3]
    assert len(locks) == 3


async def test_one_host_leaves_room_for_the_others(clock: Clock) -> None:
    locks = RebalanceLockManager(locks_max=5, locks_of_a_host_max=3, clock=clock)
    many = [MessageQueue("t", "b", queue_id) for queue_id in range(6)]
    assert locks.lock("g", "c1", many, host="one") == many[:3]
    assert locks.lock("h", "c2", many, host="one") == [], "another name does not help"
    assert locks.lock("g", "c1", many[:3], host="one") == many[:3], "who has its share keeps it"
    assert locks.lock("h", "c3", many, host="two") == many[:2], "five in all"
    clock.now += 61
    assert locks.lock("h", "c4", many[:2], host="one") == [], "its own old ones are not forgotten yet"
    assert locks.lock("g", "c5", many[:3], host="two") == many[:1], "and one more is all that two may have"
    await locks.drop_expired()
    assert locks.holder("g", many[0]) == "c5"
    assert len(locks) == 1, "what expired takes no room any more"
    assert locks.lock("i", "c6", many, host="two") == many[:2], "its share is three again"
    locks.unlock("g", "c5", many)
    locks.unlock("i", "c6", many)
    assert len(locks) == 0
    assert locks.lock("g", "c7", many, host="two") == many[:3]


def test_a_client_that_moved_is_counted_where_it_is(clock: Clock) -> None:
    locks = RebalanceLockManager(locks_of_a_host_max=1, clock=clock)
    assert locks.lock("g", "c", [A], host="one") == [A]
    assert locks.lock("g", "c", [A], host="two") == [A]
    assert locks.lock("g", "c", [B], host="two") == []
    assert locks.lock("g", "c", [B], host="one") == [B]


async def test_forgetting_lets_others_run_and_spares_what_is_renewed_meanwhile(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebalance_lock, "LOCKS_A_SLICE", 4)
    locks = RebalanceLockManager(clock=clock)
    many = [MessageQueue("t", "b", queue_id) for queue_id in range(40)]
    locks.lock("g", "c", many)
    clock.now = 61
    dropping = asyncio.ensure_future(locks.drop_expired())
    await asyncio.sleep(0)
    assert 0 < len(locks) < 40
    locks.lock("g", "c", many[-1:])
    await dropping
    assert len(locks) == 1 and locks.holder("g", many[-1]) == "c"


def test_of_locks_that_change_hands_a_few_are_told(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    locks = RebalanceLockManager(life_s=5, clock=clock)
    many = [MessageQueue("t", "b", queue_id) for queue_id in range(100)]
    locks.lock("g", "c1", many)
    clock.now = 6
    assert locks.lock("g", "c2", many) == many
    assert [(each.before, each.now) for each in caplog.records] == 20 * [("c1", "c2")]  # type: ignore[attr-defined]


def test_the_locks_of_a_client_that_is_gone_go_after_the_grace(locks: RebalanceLockManager, clock: Clock) -> None:
    locks.lock("g", "one", [A, B])
    locks.lock("h", "one", [A])
    assert locks.client_gone("one", 1.0) and not locks.client_gone("nobody", 1.0)
    clock.now = 0.9
    assert locks.lock("g", "two", [A, B]) == []
    clock.now = 1.0
    assert (locks.holder("g", A), locks.holder("h", A)) == (None, None)
    assert (locks.lock("g", "two", [A]), locks.lock("h", "two", [A])) == ([A], [A])
    assert (locks.holder("g", A), locks.holder("g", B)) == ("two", None)


@pytest.mark.parametrize("by_lock", [True, False])
def test_a_client_that_comes_back_keeps_what_nobody_took(
    locks: RebalanceLockManager, clock: Clock, by_lock: bool
) -> None:
    locks.lock("g", "one", [A, B])
    locks.client_gone("one", 1.0)
    clock.now = 0.5
    if by_lock:
        locks.lock("g", "one", [B])
    else:
        locks.client_back("one")
    clock.now = 5.0
    assert locks.lock("g", "two", [A]) == []


async def test_of_a_client_that_is_gone_nothing_is_remembered(locks: RebalanceLockManager, clock: Clock) -> None:
    for number in range(100):
        locks.lock("g", f"c{number}", [MessageQueue("t", "b", number)])
        locks.client_gone(f"c{number}", 1.0)
    clock.now = 2.0
    locks.lock("g", "heir", [MessageQueue("t", "b", 0)])
    await locks.drop_expired()
    assert (locks._gone, dict(locks._of_clients), locks._count) == ({}, {"heir": 1}, 1)
