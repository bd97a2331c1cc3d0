"""appliance/remoting: who waits is served in turn, and time is what is shared."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import LaneLimits, Route, Turn
from appliance.remoting.lanes import COSTLY_BODY_BYTES, READ_AHEAD_SECONDS, Lanes
from appliance.remoting.server import RemotingServer
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.remoting.paced import CODE, FLOOD, OTHER, Clock, Scene, Wire, requests


def test_who_asks_little_is_not_behind_those_who_flood(clock: Clock) -> None:
    scene = Scene(clock)
    floods = [scene.connect() for _ in range(100)]
    for connection, _ in floods:
        connection.data_received(requests(FLOOD // 10))
    scene.rounds_until(FLOOD)
    for place, host in enumerate(("127.0.0.1", "127.0.0.2")):
        modest, wire = scene.connect(host)
        before, served = clock.now, len(scene.served)
        modest.data_received(requests(1, 777_777))
        while 777_777 not in scene.served[served:]:
            scene.lanes.serve_round()
        assert clock.now - before < 3 * READ_AHEAD_SECONDS, place
        assert wire.is_reading


def test_who_costs_much_waits_and_not_who_asks_as_often(clock: Clock) -> None:
    """Four connections whose requests take 50 ms each, and one whose take 20 us, as many: time is what is shared."""
    scene = Scene(clock)
    for number in range(4):
        scene.connect()[0].data_received(requests(200, number * 200, cost=0.05))
    scene.rounds_until(8)  # what they cost is known now
    modest, _ = scene.connect()
    waits = []
    for number in range(100):
        sent = clock.now
        modest.data_received(requests(1, 10_000 + number))
        while 10_000 + number not in scene.served[-50:]:
            scene.lanes.serve_round()
        waits.append(clock.now - sent)
    assert max(waits) <= 0.15 + READ_AHEAD_SECONDS, "one costly request under way, and one that was read before"


def test_an_address_with_many_connections_is_one_address(clock: Clock) -> None:
    scene = Scene(clock)
    crowd, single = 50, 1_000_000
    for number in range(crowd):
        scene.connect("127.0.0.2")[0].data_received(requests(1000, number * 1000))
    scene.connect("127.0.0.3")[0].data_received(requests(10_000, single))
    scene.rounds_until(10_000)
    of_single = sum(opaque >= single for opaque in scene.served)
    assert 0.35 * 10_000 < of_single < 0.65 * 10_000


def test_parked_connections_take_turns(clock: Clock) -> None:
    scene = Scene(clock)
    owners: Counter[Any] = Counter()
    for number in range(4):
        scene.connect()[0].data_received(requests(FLOOD, number * FLOOD))
    scene.rounds_until(3 * FLOOD)
    owners.update(opaque // FLOOD for opaque in scene.served)
    assert max(owners.values()) - min(owners.values()) <= FLOOD // 10


def test_a_lane_of_costly_requests_lets_the_others_in_after_a_few(clock: Clock) -> None:
    scene = Scene(clock, LaneLimits(1000))
    connection, _ = scene.connect()
    connection.turn = Turn(connection.usage)
    connection.turn.arrived = clock.now
    for opaque in range(200):
        request = RemotingCommand.request(CODE, {"cost": "0.01"})
        request.opaque = opaque
        scene.lanes.submit(scene.lanes.by_name["fast"], connection, request, Route(scene.note, "fast"))
    other = RemotingCommand.request(OTHER)
    other.opaque = 777_777
    scene.lanes.submit(scene.lanes.by_name["other"], connection, other, Route(scene.note, "other"))
    scene.lanes.serve_round()
    assert scene.served.index(777_777) <= 4
    scene.rounds_until(201)


@pytest.mark.usefixtures("clock")
async def test_costly_work_that_is_done_later_is_begun_once_a_round() -> None:
    """Coroutines run after the round: begun all at once, they would keep the loop for as long as all of them take."""
    begun: list[int] = []
    lanes = Lanes({"slow": LaneLimits(1000), "fast": LaneLimits(1000)})
    lanes.wake = lambda: None  # type: ignore[method-assign]
    connection = ServerConnection(RemotingServer(lanes, host="", port=0))
    connection.connection_made(Wire())  # type: ignore[arg-type]

    async def costly(_connection: object, request: RemotingCommand) -> None:
        begun.append(request.opaque)

    def fill(name: str, body: bytes) -> None:
        for _ in range(5):
            request = RemotingCommand.request(CODE, body=body)
            lanes.submit(lanes.by_name[name], connection, request, Route(costly, name))

    fill("slow", bytes(COSTLY_BODY_BYTES + 1))
    fill("fast", b"")
    for expected in (6, 7, 8, 9, 10):
        lanes.serve_round()
        await asyncio.sleep(0)
        assert len(begun) == expected
    await lanes.close()
