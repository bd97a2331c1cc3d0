"""Clients that fell silent and locks nobody renews are forgotten; notices come in few."""

from __future__ import annotations

import asyncio

import pytest

from appliance.broker.groups import consumer_groups
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.housekeeping import ClientHousekeeping
from appliance.broker.groups.rebalance_lock import RebalanceLockManager
from gantrymq.message.model import MessageQueue
from tests.appliance.broker.members import join, member
from tests.waiting import Clock, until


@pytest.fixture
def producers(clock: Clock) -> ProducerManager:
    return ProducerManager(clock=clock)


async def test_members_silent_for_two_minutes_are_dropped_and_the_others_told(
    consumers: ConsumerManager, producers: ProducerManager, clock: Clock
) -> None:
    silent, lively = member(1), member(2)
    housekeeping = ClientHousekeeping(producers, consumers, clock=clock)
    for number, connection in enumerate((silent, lively)):
        join(consumers, connection, f"c{number}")
        producers.register("p", connection, f"c{number}", "GO", 317)
    consumers.push_notices()
    clock.now = 100
    join(consumers, lively, "c1")
    producers.register("p", lively, "c1", "GO", 317)
    clock.now = 120
    await housekeeping.scan()
    assert (silent.is_closing, lively.is_closing) == (False, False)
    clock.now = 121
    await housekeeping.scan()
    assert (silent.is_closing, lively.is_closing) == (True, False)
    assert consumers.groups["g"].client_ids() == ["c1"]
    assert [member.client_id for member in producers.channels("p")] == ["c1"]
    assert consumers.push_notices() == 1


async def test_a_thousand_consumers_starting_together_are_told_a_few_times_each(
    consumers: ConsumerManager, producers: ProducerManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long they take to start: the first at once, and one notice for all changes of an interval."""
    monkeypatch.setattr(consumer_groups, "NOTICE_INTERVAL_S", 3600.0)  # a busy machine may not end the interval
    housekeeping = asyncio.create_task(ClientHousekeeping(producers, consumers, RebalanceLockManager()).run())
    connections = [member(number) for number in range(1000)]
    for number, connection in enumerate(connections):
        join(consumers, connection, f"c{number}")
        if number % 100 == 0:
            await asyncio.sleep(0)
    await until(lambda: bool(connections[0].pushed))
    housekeeping.cancel()
    await asyncio.gather(housekeeping, return_exceptions=True)
    assert max(len(connection.pushed) for connection in connections) == 1
    assert not connections[-1].pushed
    assert consumers.push_notices() == 1000  # what it does when the interval is over
    assert consumers.push_notices() == 0


async def test_what_changed_within_an_interval_is_told_when_it_is_over(
    consumers: ConsumerManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_groups, "NOTICE_INTERVAL_S", 0.001)
    notices = asyncio.create_task(consumers.run())
    first, second = member(1), member(2)
    join(consumers, first, "c1")
    await until(lambda: bool(first.pushed))
    join(consumers, second, "c2")
    await until(lambda: bool(second.pushed))
    notices.cancel()
    await asyncio.gather(notices, return_exceptions=True)
    assert [len(first.pushed), len(second.pushed)] == [2, 1]


async def test_housekeeping_forgets_expired_locks(
    consumers: ConsumerManager, producers: ProducerManager, clock: Clock
) -> None:
    locks = RebalanceLockManager(clock=clock)
    locks.lock("g", "c1", [MessageQueue("t", "b", 0)])
    clock.now = 61
    await ClientHousekeeping(producers, consumers, locks, clock=clock).scan()
    assert len(locks) == 0
