"""S37. Addresses share the time: by turns of requests, and by what their connections cost the loop."""

from __future__ import annotations

import asyncio

import pytest

from dashboard.web.loop_shares import PART, WINDOW_S, LoopShares
from dashboard.web.turns import TooManyWaiting, Turn, Turns
from tests.waiting import Clock


def turns(clock: Clock, at_once: int = 1) -> Turns:
    return Turns(at_once=at_once, waiting_max=6, of_one_max=4, clock=clock)


async def started(asked: Turns, key: str) -> asyncio.Task[Turn]:
    task = asyncio.create_task(asked.take(key))
    await asyncio.sleep(0)
    return task


async def test_s37_who_had_least_time_is_next() -> None:
    clock = Clock(100.0)
    asked = turns(clock)
    first = await asked.take("flood")
    line = [await started(asked, "flood") for _ in range(3)]
    other = await started(asked, "other")
    clock.now += 5.0
    first.end()
    assert (await other).key == "other" and not any(task.done() for task in line)
    clock.now += 1.0
    other.result().end()
    assert (await line[0]).key == "flood"
    another = await started(asked, "other")
    clock.now += 1.0
    line[0].result().end()
    assert (await another).key == "other"
    another.result().end()
    another.result().end()  # an end counts once
    assert (await line[1]).key == "flood" and not line[2].done()
    line[1].result().end()
    (await line[2]).end()


async def test_s37_a_full_line_refuses_the_newest_of_who_has_most() -> None:
    asked = turns(Clock(100.0))
    running = await asked.take("a")
    long = [await started(asked, "a") for _ in range(4)]
    with pytest.raises(TooManyWaiting):
        await asked.take("a")
    short = [await started(asked, "b") for _ in range(2)]
    other = await started(asked, "c")
    with pytest.raises(TooManyWaiting):
        await long[3]
    with pytest.raises(TooManyWaiting):
        await asked.take("a")
    running.end()
    left = {*long[:3], *short, other}
    while left:
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result().end()
    assert len(asked) == 0


async def test_s37_who_leaves_the_line_takes_no_turn() -> None:
    asked = turns(Clock(100.0))
    running = await asked.take("a")
    gone, stays = await started(asked, "b"), await started(asked, "b")
    gone.cancel()
    await asyncio.wait({gone})
    running.end()
    turn = await stays
    late = await started(asked, "c")
    turn.end()
    late.cancel()  # it has its turn already, and does not know yet
    await asyncio.wait({late})
    (await asked.take("d")).end()


def test_s37_connections_of_addresses_that_cost_most_are_not_taken() -> None:
    clock = Clock(100.0)
    shares = LoopShares(clock, clock)

    def costs(key: str, seconds: float) -> None:
        with shares.work_for(key):
            clock.now += seconds

    costs("a", WINDOW_S * PART)
    assert shares.takes("a"), "no one else needs the loop"
    costs("b", WINDOW_S * PART)
    costs("c", 0.001)
    assert not shares.takes("a") and not shares.takes("b")
    assert shares.takes("c") and shares.takes("new") and shares.takes(""), "a trusted proxy is many people"
    clock.now += WINDOW_S
    assert shares.takes("a") and shares.takes("b")


def test_s37_what_one_connection_does_to_another_counts_for_it() -> None:
    clock = Clock(100.0)
    shares = LoopShares(clock, clock)
    with shares.work_for("a"), shares.work_for("b"):
        clock.now += WINDOW_S / 2
    with shares.work_for("c"):
        clock.now += 0.001
    assert not shares.takes("a") and shares.takes("b")


def test_s37_what_the_machine_does_meanwhile_counts_for_no_address_alone() -> None:
    clock, processor = Clock(100.0), Clock(0.0)
    shares = LoopShares(clock, processor)

    def costs(key: str, used: float, waited: float = 0.0) -> None:
        with shares.work_for(key):
            processor.now += used
            clock.now += used + waited

    for _ in range(12):
        costs("a", 0.05)
    costs("b", 0.001, waited=0.3)  # another process ran
    assert not shares.takes("a") and shares.takes("b")


def test_s37_a_clock_that_stands_still_for_a_moment_is_no_error() -> None:
    clock, processor = Clock(100.0), Clock(0.0)
    shares = LoopShares(clock, processor)
    for used in (0.05, 0.0, 0.0):
        with shares.work_for("a"):
            processor.now += used
        clock.now += WINDOW_S / 2
    clock.now += WINDOW_S
    assert shares.takes("a")
