"""appliance/remoting: connections are read no faster than their requests are served, each in its turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from appliance.remoting import lanes as lanes_module
from appliance.remoting.connection import ServerConnection
from appliance.remoting.lanes import (
    BACKLOG_WANTED,
    COSTLY_BODY_BYTES,
    READ_SHARE,
    SMALL_BODY_BYTES,
    LaneLimits,
    Lanes,
    Route,
)
from appliance.remoting.server import RemotingServer
from gantrymq.remoting.command import RemotingCommand

CODE = 10
FLOOD = 5 * BACKLOG_WANTED


class Wire:
    """A transport that remembers what is done to it."""

    def __init__(self) -> None:
        self.is_reading = True
        self.written = b""

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("127.0.0.1", 5555)

    def set_write_buffer_limits(self, high: int, low: int | None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def write(self, data: bytes) -> None:
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        self.written += b"".join(parts)


class Scene:
    """Lanes whose rounds the test runs itself, and what was served in which order."""

    def __init__(self) -> None:
        self.served: list[int] = []  # the opaques
        self.lanes = Lanes(self, {"fast": LaneLimits(100_000)})
        self.lanes.wake = lambda: None  # type: ignore[method-assign]
        self._server = RemotingServer({CODE: Route(note, "fast")}, self.lanes, host="", port=0)

    def connect(self) -> tuple[ServerConnection, Wire]:
        connection, wire = ServerConnection(self._server), Wire()
        connection.connection_made(wire)  # type: ignore[arg-type]
        return connection, wire

    def rounds_until(self, count: int) -> int:
        """Run rounds until so many requests were served; returns how many rounds that took."""
        rounds = 0
        while len(self.served) < count:
            self.lanes._round()
            rounds += 1
            assert rounds < 10_000
        return rounds


def note(scene: Scene, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    scene.served.append(request.opaque)
    return request.reply()


def requests(count: int, first: int = 0) -> bytes:
    frames = []
    for opaque in range(first, first + count):
        request = RemotingCommand.request(CODE)
        request.opaque = opaque
        frames.append(request.encode())
    return b"".join(frames)


def test_a_flood_is_read_in_portions_and_served_whole_and_in_order() -> None:
    scene = Scene()
    connection, wire = scene.connect()
    connection.data_received(requests(FLOOD))
    assert scene.lanes.backlog == BACKLOG_WANTED
    assert not wire.is_reading, "its socket has to wait"
    scene.rounds_until(FLOOD)
    scene.lanes._round()
    assert scene.served == list(range(FLOOD))
    assert wire.is_reading, "all was read: it may go on"
    connection.data_received(requests(1, FLOOD))
    scene.rounds_until(FLOOD + 1)


def test_what_waits_is_bounded_however_many_flood() -> None:
    scene = Scene()
    for _ in range(20):
        scene.connect()[0].data_received(requests(FLOOD))
    waiting = scene.lanes.by_name["fast"].size
    assert waiting <= BACKLOG_WANTED + 20 * READ_SHARE
    for _ in range(50):
        scene.lanes._round()
        assert scene.lanes.by_name["fast"].size <= 2 * BACKLOG_WANTED


def test_who_asks_little_is_not_behind_those_who_flood() -> None:
    scene = Scene()
    floods = [scene.connect() for _ in range(10)]
    for connection, _ in floods:
        connection.data_received(requests(FLOOD))
    modest, wire = scene.connect()
    modest.data_received(requests(1, 777_777))
    before = BACKLOG_WANTED + 10 * READ_SHARE
    scene.rounds_until(before + 1)
    assert 777_777 in scene.served[: before + 1]
    assert wire.is_reading, "never parked"


def test_parked_connections_take_turns() -> None:
    scene = Scene()
    owners: Counter[Any] = Counter()
    for number in range(4):
        scene.connect()[0].data_received(requests(FLOOD, number * FLOOD))
    scene.rounds_until(3 * FLOOD)
    owners.update(opaque // FLOOD for opaque in scene.served)
    assert max(owners.values()) - min(owners.values()) <= 2 * BACKLOG_WANTED


def test_a_peer_that_does_not_read_stays_unread_though_its_turn_came() -> None:
    scene = Scene()
    connection, wire = scene.connect()
    connection.data_received(requests(FLOOD))
    connection.pause_writing()
    scene.rounds_until(FLOOD)
    scene.lanes._round()
    assert not wire.is_reading
    connection.resume_writing()
    assert wire.is_reading


def test_a_lane_of_costly_requests_lets_the_others_in_after_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is timed: each costly request moves the clock that the lanes see."""
    clock = Ticks()
    monkeypatch.setattr(lanes_module.time, "monotonic", clock)
    served: list[str] = []

    def costly(*_: object) -> None:
        served.append("costly")
        clock.now += 0.05

    lanes = Lanes(None, {"slow": LaneLimits(1000), "fast": LaneLimits(1000)})
    lanes.wake = lambda: None  # type: ignore[method-assign]
    server = RemotingServer({}, lanes, host="", port=0)
    connection = ServerConnection(server)
    connection.connection_made(Wire())  # type: ignore[arg-type]
    connection.read_at = clock.now
    for _ in range(200):
        lanes.submit(lanes.by_name["slow"], connection, RemotingCommand.request(CODE), Route(costly, "slow"))
    fast = Route(lambda *_: served.append("fast"), "fast")
    lanes.submit(lanes.by_name["fast"], connection, RemotingCommand.request(CODE), fast)
    lanes._round()
    assert served.index("fast") <= 4
    while len(served) < 201:
        lanes._round()
    assert lanes.by_name["slow"].size == 0


async def test_costly_work_that_is_done_later_is_begun_once_a_round() -> None:
    """Coroutines run after the round: begun all at once, they would keep the loop for as long as all of them take."""
    begun: list[int] = []
    lanes = Lanes(None, {"slow": LaneLimits(1000), "fast": LaneLimits(1000)})
    lanes.wake = lambda: None  # type: ignore[method-assign]
    connection = ServerConnection(RemotingServer({}, lanes, host="", port=0))
    connection.connection_made(Wire())  # type: ignore[arg-type]

    async def costly(_context: object, _connection: object, request: RemotingCommand) -> None:
        begun.append(request.opaque)

    def fill(name: str, body: bytes) -> None:
        for _ in range(5):
            request = RemotingCommand.request(CODE, body=body)
            lanes.submit(lanes.by_name[name], connection, request, Route(costly, name))

    fill("slow", bytes(COSTLY_BODY_BYTES + 1))
    fill("fast", b"")
    for expected in (6, 7, 8, 9, 10):
        lanes._round()
        await asyncio.sleep(0)
        assert len(begun) == expected
    await lanes.close()


def test_others_large_bodies_leave_room_for_small_requests() -> None:
    lanes = Lanes(None, {"beats": LaneLimits(8, queued_bytes_max=100_000)})
    lanes.wake = lambda: None  # type: ignore[method-assign]
    connection = ServerConnection(RemotingServer({}, lanes, host="", port=0))
    connection.connection_made(Wire())  # type: ignore[arg-type]
    lane = lanes.by_name["beats"]
    route = Route(note, "beats")
    sizes = [90_000, 90_000, 90_000, SMALL_BODY_BYTES + 1, SMALL_BODY_BYTES, 0]
    for size in sizes:
        lanes.submit(lane, connection, RemotingCommand.request(CODE, body=bytes(size)), route)
    assert [len(request.body) for _, _, request, _ in lane.queue] == [90_000, 90_000, SMALL_BODY_BYTES, 0]
    assert lane.rejected == 2
    for _ in range(10):
        lanes.submit(lane, connection, RemotingCommand.request(CODE), route)
    assert lane.size == 8


class Ticks:
    """Seconds, moved by the test alone."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now
