"""Lanes whose rounds a test runs itself, with a clock and a wire of its own: what tests of pacing share."""

from __future__ import annotations

from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import LaneLimits, Route
from appliance.remoting.lanes import Lanes
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

    def set_write_buffer_limits(self, high: int) -> None:
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
