"""appliance/remoting: connections are read no faster than their requests are served, each in its turn."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import Any

import pytest

from appliance.remoting import connection as connection_module
from appliance.remoting import lanes as lanes_module
from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import LaneLimits, Route, Turn
from appliance.remoting.lanes import (
    AT_ONCE_SECONDS,
    BEGUN_MAX,
    COSTLY_BODY_BYTES,
    READ_AHEAD_SECONDS,
    ROUND_AFTER_SECONDS,
    TURN_REQUESTS_MAX,
    Lanes,
)
from appliance.remoting.server import RemotingServer
from gantrymq.remoting.command import RemotingCommand

CODE, OTHER = 10, 11
ROOMY = LaneLimits(100_000, wait_ms_max=200)
FLOOD = 5000  # requests


class Wire:
    """A transport that remembers what is done to it."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.is_reading = True
        self.written = b""
        self._host = host

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return (self._host, 5555)

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


class Clock:
    """Seconds, moved by the test alone: the clock, and the CPU's where the process worked."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.worked = 1.0

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.worked


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (lanes_module, connection_module):
        monkeypatch.setattr(module, "time", clock)
    return clock


class Scene:
    """Lanes whose rounds the test runs itself, and what was served in which order. Each request takes its cost."""

    def __init__(self, clock: Clock, limits: LaneLimits = ROOMY) -> None:
        self.served: list[int] = []  # the opaques
        self.clock = clock
        self.cost = 0.000_020
        self.lanes = Lanes({"fast": limits, "other": limits})
        self.lanes.wake = lambda: None  # type: ignore[method-assign]
        self.server = RemotingServer(self.lanes, host="", port=0)
        self.server.serve({CODE: Route(self.note, "fast"), OTHER: Route(self.note, "other")})

    def note(self, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
        self.served.append(request.opaque)
        self.clock.work(float(request.ext_fields.get("cost", self.cost)))
        return request.reply()

    def connect(self, host: str = "127.0.0.1") -> tuple[ServerConnection, Wire]:
        connection, wire = ServerConnection(self.server), Wire(host)
        connection.connection_made(wire)  # type: ignore[arg-type]
        return connection, wire

    @property
    def size(self) -> int:
        return sum(lane.size for lane in self.lanes.by_name.values())

    def rounds_until(self, count: int) -> int:
        """Run rounds until so many requests were served; returns how many rounds that took."""
        rounds = 0
        while len(self.served) < count:
            self.lanes.serve_round()
            rounds += 1
            assert rounds < 100_000
        return rounds


def requests(count: int, first: int = 0, cost: float | None = None, *, is_oneway: bool = False) -> bytes:
    frames = []
    for opaque in range(first, first + count):
        request = RemotingCommand.request(CODE, {} if cost is None else {"cost": str(cost)})
        request.opaque = opaque
        frames.append((request.mark_oneway() if is_oneway else request).encode())
    return b"".join(frames)


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


class AtOnce:
    """A fast path: serves requests of CODE where they lie, each at its scene's cost."""

    pull_count = 0

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.count = 0

    def serve(self, buffer: bytes, start: int, count_max: int, connection: ServerConnection) -> int:
        self.count = 0
        while self.count < count_max and len(buffer) - start >= 4:
            end = start + 4 + int.from_bytes(buffer[start : start + 4])
            request = RemotingCommand.decode(buffer[start + 4 : end]) if end <= len(buffer) else None
            if request is None or request.code != CODE:
                break
            answer = self._scene.note(connection, request)
            if not request.is_oneway:
                connection.write(answer.encode())
            self.count += 1
            start = end
        return start


def at_once_scene(clock: Clock) -> Scene:
    scene = Scene(clock)
    scene.lanes = Lanes({"send": ROOMY, "pull": ROOMY, "other": ROOMY})
    scene.lanes.wake = lambda: None  # type: ignore[method-assign]
    scene.server = RemotingServer(scene.lanes, host="", port=0)
    routes = {CODE: Route(scene.note, "send"), OTHER: Route(scene.note, "other")}
    scene.server.serve(routes, AtOnce(scene))
    return scene


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
