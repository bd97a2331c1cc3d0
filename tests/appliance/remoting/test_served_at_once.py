"""appliance/remoting: what the fast path serves when it arrives is paced like all else."""

from __future__ import annotations

import asyncio
import gc

import pytest

from appliance.remoting.lane import Route
from appliance.remoting.lanes import AT_ONCE_SECONDS, READ_AHEAD_SECONDS, ROUND_AFTER_SECONDS
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.remoting.paced import FLOOD, OTHER, Clock, at_once_scene, requests


@pytest.mark.parametrize("is_oneway", [False, True])
async def test_a_flood_that_is_served_at_once_ends(clock: Clock, is_oneway: bool) -> None:
    """What is served on arrival uses up what a round may read: the round ends, and the next one goes on."""
    scene = at_once_scene(clock)
    connections = [scene.connect()[0] for _ in range(40)]
    for number, connection in enumerate(connections):
        connection.data_received(requests(FLOOD // 40, number * (FLOOD // 40), is_oneway=is_oneway))
    scene.rounds_until(FLOOD)
    assert sorted(scene.served) == list(range(FLOOD))
    assert scene.lanes.by_name["send"].served == FLOOD


async def test_one_that_is_served_at_once_needs_no_round_until_much_was_served(clock: Clock) -> None:
    scene = at_once_scene(clock)
    woken: list[float] = []
    scene.lanes.wake = lambda: woken.append(clock.now)  # type: ignore[method-assign]
    connection, wire = scene.connect()
    connection.data_received(requests(1, 1000))  # all numbers have four digits, and all answers one size
    await asyncio.sleep(0)  # it was not the last one that was answered
    answers = len(wire.written)
    began = clock.now
    for number in range(1, 1000):
        connection.data_received(requests(1, 1000 + number))
        assert len(wire.written) == (number + 1) * answers, "written at once"
        if woken:
            break
    assert clock.now - began < 2 * ROUND_AFTER_SECONDS < READ_AHEAD_SECONDS, "the budget is renewed in time"
    scene.lanes.serve_round()
    assert scene.lanes.budget_seconds() == READ_AHEAD_SECONDS
    assert len(scene.served) == scene.lanes.by_name["send"].served == number + 1


async def test_of_many_served_at_once_all_are_read_before_they_are_answered(clock: Clock) -> None:
    scene = at_once_scene(clock)
    scene.cost = 0.000_001
    pairs = [scene.connect() for _ in range(3)]
    for turn in range(2):
        for number, (connection, _) in enumerate(pairs):
            connection.data_received(requests(1, 3 * turn + number))
        assert len(scene.served) == 3 * (turn + 1)
        assert len({len(wire.written) for _, wire in pairs}) == 1, "none was answered before the others"
        before = len(pairs[0][1].written)
        await asyncio.sleep(0)
        assert all(len(wire.written) > before for _, wire in pairs)


async def test_who_is_served_at_once_takes_turns_with_others(clock: Clock) -> None:
    """A read event that is served at once is charged like any other; a request of another lane waits for few rounds."""
    scene = at_once_scene(clock)
    flood, _ = scene.connect("127.0.0.2")
    flood.data_received(requests(FLOOD))
    scene.rounds_until(FLOOD // 5)
    assert len(scene.served) < FLOOD
    other, wire = scene.connect("127.0.0.3")
    request = RemotingCommand.request(OTHER)
    request.opaque = FLOOD
    other.data_received(request.encode())
    before = clock.now
    while not wire.written:
        scene.lanes.serve_round()
    assert clock.now - before < 3 * READ_AHEAD_SECONDS
    assert len(scene.served) < FLOOD, "the flood goes on behind it"
    assert flood.usage.spent > other.usage.spent
    scene.rounds_until(FLOOD + 1)


async def test_a_thousand_with_a_request_each_are_not_parked_while_all_others_are_idle(clock: Clock) -> None:
    scene = at_once_scene(clock)
    count = int(1.5 * READ_AHEAD_SECONDS / scene.cost)
    pairs = [scene.connect() for _ in range(count)]
    pairs[0][0].data_received(requests(1))  # now it is known what one costs
    scene.lanes.serve_round()
    for number, (connection, _) in enumerate(pairs, start=1):
        connection.data_received(requests(1, number))
    assert scene.lanes.budget_seconds() < 0
    assert len(scene.served) == count + 1
    assert scene.lanes.parked_count == 0


@pytest.mark.parametrize("waits", ["another address", "a queued request", "nothing, but for too long"])
async def test_beyond_the_budget_nothing_is_served_at_once_that_keeps_others_waiting(clock: Clock, waits: str) -> None:
    scene = at_once_scene(clock)
    first, _ = scene.connect()
    first.data_received(requests(1))
    late, _ = scene.connect()
    scene.lanes.at_once_seconds = AT_ONCE_SECONDS - 0.001
    if waits == "another address":
        scene.lanes.usage_table.begin_waiting(scene.connect("127.0.0.2")[0].usage)
    elif waits == "a queued request":
        other = RemotingCommand.request(OTHER)
        late.turn.arrived = clock.now
        assert scene.lanes.submit(scene.lanes.by_name["other"], late, other, Route(scene.note, "other"))
        late, _ = scene.connect()
    else:
        scene.lanes.at_once_seconds = AT_ONCE_SECONDS
    late.data_received(requests(1, 1))
    assert scene.served == [0]
    assert scene.lanes.parked_count == 1


async def test_beyond_the_budget_a_connection_is_served_one_request_and_parked_with_the_others(clock: Clock) -> None:
    scene = at_once_scene(clock)
    first, late = (scene.connect()[0] for _ in range(2))
    first.data_received(requests(1))
    scene.lanes.at_once_seconds = READ_AHEAD_SECONDS
    late.data_received(requests(9, 1))
    assert scene.served == [0, 1]
    assert scene.lanes.parked_count == 1
    scene.rounds_until(10)
    assert scene.served == list(range(10))


async def test_who_was_answered_last_is_not_kept_when_it_has_gone(clock: Clock) -> None:
    scene = at_once_scene(clock)
    connection, _ = scene.connect()
    connection.data_received(requests(1))
    await asyncio.sleep(0)
    connection.connection_lost(None)
    reference = connection.reference
    del connection
    gc.collect()
    assert reference() is None


async def test_requests_behind_an_unusual_one_keep_their_order(clock: Clock) -> None:
    scene = at_once_scene(clock)
    connection, _ = scene.connect()
    connection.data_received(requests(1, 0))
    scene.rounds_until(1)
    unusual = RemotingCommand.request(OTHER)
    unusual.opaque = 2
    connection.data_received(requests(1, 1) + unusual.encode() + requests(2, 3))
    connection.data_received(requests(1, 5))
    scene.rounds_until(6)
    assert [opaque for opaque in scene.served if opaque != 2] == [0, 1, 3, 4, 5]
