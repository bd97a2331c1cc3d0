"""appliance/remoting: connections are read no faster than their requests are served, and what is read is served."""

from __future__ import annotations

import asyncio

import pytest

from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import LaneLimits, Route
from appliance.remoting.lanes import BEGUN_MAX, READ_AHEAD_SECONDS, TURN_REQUESTS_MAX, Lanes
from appliance.remoting.server import RemotingServer
from tests.appliance.remoting.paced import CODE, FLOOD, Clock, Scene, Wire, requests


def test_a_flood_is_read_in_portions_and_served_whole_and_in_order(clock: Clock) -> None:
    scene = Scene(clock)
    connection, wire = scene.connect()
    connection.data_received(requests(FLOOD))
    assert 0 < scene.size < FLOOD
    assert not wire.is_reading, "its socket has to wait"
    scene.rounds_until(FLOOD)
    scene.lanes.serve_round()
    assert scene.served == list(range(FLOOD))
    assert wire.is_reading, "all was read: it may go on"
    connection.data_received(requests(1, FLOOD))
    scene.rounds_until(FLOOD + 1)


@pytest.mark.parametrize("cost", [0.000_005, 0.000_2, 0.005, 0.05])
@pytest.mark.parametrize("connections", [1, 20, 400])
def test_a_burst_never_expires_however_slow_the_machine(clock: Clock, connections: int, cost: float) -> None:
    """What is read ahead follows from what requests take here: it was a number, and 227 ms where one took 220 us."""
    scene = Scene(clock)
    scene.cost = cost
    count = 20 if connections > 20 or cost > 0.001 else 1000
    for number in range(connections):
        scene.connect()[0].data_received(requests(count, number * count))
    lane = scene.lanes.by_name["fast"]
    waits = []
    while len(scene.served) < count * connections:
        scene.lanes.serve_round()
        waits.append(lane.take_peaks()[1])
    assert sorted(scene.served) == list(range(count * connections))
    assert (lane.expired, lane.rejected) == (0, 0)
    settled = waits[len(waits) // 10 :]
    assert max(settled) <= 1000 * (2 * READ_AHEAD_SECONDS + 3 * cost), "ms a request waited in its lane"


def test_a_process_that_stood_still_serves_what_it_had_read(clock: Clock) -> None:
    scene = Scene(clock)
    connection, _ = scene.connect()
    connection.data_received(requests(FLOOD))
    clock.now += 60.0  # stopped, or others had the core
    scene.rounds_until(FLOOD)
    assert scene.served == list(range(FLOOD))
    assert scene.lanes.by_name["fast"].expired == 0


def test_who_waited_while_others_were_served_is_told_but_oneway_is_served(clock: Clock) -> None:
    """What was read ahead took longer than all that came before it: that no measuring foresees."""
    scene = Scene(clock)
    dear, _ = scene.connect()
    connection, wire = scene.connect()
    for each in (dear, connection):
        each.data_received(requests(1, 0))
        scene.lanes.serve_round()  # what its requests take is known now
    dear.data_received(requests(2, 10) + requests(1, 1, cost=1.0))
    connection.data_received(requests(1, 2) + requests(1, 3, is_oneway=True))
    scene.lanes.serve_round()
    scene.lanes.serve_round()
    assert scene.served == [0, 0, 10, 11, 1, 3]
    assert b"[TIMEOUT_CLEAN_QUEUE]" in wire.written
    assert scene.lanes.by_name["fast"].expired == 1


def test_a_full_lane_keeps_a_connection_waiting_and_refuses_nothing(clock: Clock) -> None:
    scene = Scene(clock, LaneLimits(8))
    for number in range(20):
        scene.connect()[0].data_received(requests(100, number * 100, is_oneway=bool(number & 1)))
    sizes = []
    while len(scene.served) < 2000:
        scene.lanes.serve_round()
        sizes.append(scene.size)
    assert max(sizes) == 8
    assert sorted(scene.served) == list(range(2000))
    lane = scene.lanes.by_name["fast"]
    assert (lane.rejected, lane.oneway_refused) == (0, 0)


@pytest.mark.slow
def test_what_waits_is_bounded_however_many_flood(clock: Clock) -> None:
    scene = Scene(clock)
    for _ in range(400):
        scene.connect()[0].data_received(requests(100))
    most = READ_AHEAD_SECONDS / scene.cost
    for _ in range(200):
        assert scene.size <= 2 * most
        scene.lanes.serve_round()


def test_what_a_peer_sent_before_it_went_is_stored_when_it_is_oneway(clock: Clock) -> None:
    scene = Scene(clock)
    connection, _ = scene.connect()
    connection.data_received(requests(FLOOD, is_oneway=True))
    connection.connection_lost(None)
    scene.rounds_until(FLOOD)
    assert scene.served == list(range(FLOOD))
    scene.lanes.serve_round()
    assert scene.server.left_bytes == 0
    asking, _ = scene.connect()
    asking.data_received(requests(FLOOD))
    read_before = scene.size
    asking.connection_lost(None)
    for _ in range(1000):
        scene.lanes.serve_round()
    assert len(scene.served) == FLOOD + read_before, "nobody waits for these answers"
    assert scene.server.left_bytes == 0


def test_what_peers_left_behind_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("appliance.remoting.server.LEFT_BYTES_MAX", 500_000)
    scene = Scene(clock)
    for _ in range(20):
        connection, _ = scene.connect()
        connection.data_received(requests(2000, is_oneway=True))
        connection.connection_lost(None)
    assert 0 < scene.server.left_bytes <= 500_000
    for _ in range(1000):
        scene.lanes.serve_round()
    assert scene.server.left_bytes == 0


def test_a_peer_that_does_not_read_stays_unread_though_its_turn_came(clock: Clock) -> None:
    scene = Scene(clock)
    connection, wire = scene.connect()
    connection.data_received(requests(FLOOD))
    connection.pause_writing()
    scene.rounds_until(FLOOD)
    scene.lanes.serve_round()
    assert not wire.is_reading
    connection.resume_writing()
    assert wire.is_reading


async def test_a_connection_with_much_under_way_is_not_read_on(clock: Clock) -> None:
    """Each coroutine may wait for as long as it likes; what they hold is bounded by their number."""
    release = asyncio.Event()

    async def waiting(*_: object) -> None:
        await release.wait()

    lanes = Lanes({"slow": LaneLimits(100_000)})
    server = RemotingServer(lanes, host="", port=0)
    server.serve({CODE: Route(waiting, "slow")})
    connection, wire = ServerConnection(server), Wire()
    connection.connection_made(wire)  # type: ignore[arg-type]
    connection.data_received(requests(FLOOD))
    for _ in range(1000):
        await asyncio.sleep(0)
    assert BEGUN_MAX <= connection.usage.begun < BEGUN_MAX + 2 * TURN_REQUESTS_MAX
    assert not wire.is_reading
    release.set()
    for _ in range(FLOOD):
        await asyncio.sleep(0)
    assert lanes.by_name["slow"].served == FLOOD
    await lanes.close()
