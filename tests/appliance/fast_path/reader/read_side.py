"""A side of a pair whose connections the compiled reader reads, from real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

from appliance.fast_path.loader import load
from appliance.remoting import lanes as lanes_module
from appliance.remoting.connection import ServerConnection
from tests.appliance.fast_path.rig import FakeSocket, Side

PIECE_BYTES = 64 * 1024


class Wire(FakeSocket):
    """A transport over one end of a pair of sockets. Who asked has the other end; `written` is what came there."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.here, self.there = socket.socketpair()
        self.here.setblocking(False)
        self.there.setblocking(False)
        self.unsent = bytearray()
        self.is_read = True  # the test lets the peer read what it is told

    def get_extra_info(self, name: str) -> Any:
        own = {"socket": self.here, "sslcontext": None}
        return own[name] if name in own else super().get_extra_info(name)

    def write(self, data: bytes) -> None:
        self.unsent += data
        self.push()

    def writelines(self, parts: list[bytes | memoryview]) -> None:
        self.write(b"".join(parts))

    def get_write_buffer_size(self) -> int:
        return len(self.unsent)

    def push(self) -> None:
        """Write what the socket takes, and have the peer read it."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                del self.unsent[: self.here.send(self.unsent)]
        with contextlib.suppress(BlockingIOError):
            while self.is_read and (data := self.there.recv(PIECE_BYTES)):
                self.written += data

    def pull(self) -> bytes:
        """What the transport reads, unless it is paused."""
        try:
            return b"" if self.is_paused else self.here.recv(PIECE_BYTES)
        except BlockingIOError:
            return b""

    def end(self) -> None:
        self.here.close()
        self.there.close()


class ReadSide(Side):
    """The same broker as another side's."""

    socket: Wire

    def __init__(self, side: Side) -> None:
        self.__dict__.update(side.__dict__)
        module = load()
        assert module is not None and side.fast_path is not None
        lanes = self.broker.lanes
        sends, pulls = lanes.by_name["send"], lanes.by_name["pull"]
        self.reader = module.FastReader(side.fast_path.compiled, lanes, sends, pulls, lanes_module)
        self.broker.server.reader = self.reader
        self.wires: list[Wire] = []
        self.connections: list[ServerConnection] = []
        self.connect()

    def connect(self, host: str = "127.0.0.1") -> None:
        self.socket = Wire(host)
        self.connection = ServerConnection(self.broker.server)
        self.connection.connection_made(self.socket)  # type: ignore[arg-type]
        self.wires.append(self.socket)
        self.connections.append(self.connection)

    @property
    def served_fast(self) -> int:
        assert self.fast_path is not None
        sends, pulls, _ = self.fast_path.figures()
        return sends + pulls

    async def receive(self, data: bytes) -> None:
        if self.socket.is_over:
            return
        rest = memoryview(data)
        while rest:
            with contextlib.suppress(BlockingIOError):
                rest = rest[self.socket.there.send(rest) :]
            await self.serve()

    async def serve(self) -> None:
        """Read and serve all that has come on any connection."""
        lanes = self.broker.lanes
        for _ in range(1000):
            self.reader.drain()
            came = False
            for wire, connection in zip(self.wires, self.connections, strict=True):
                if not wire.is_over and (data := wire.pull()):
                    came = True
                    connection.data_received(data)
            await asyncio.sleep(0)
            for wire in self.wires:
                wire.push()
            busy = any(lane.queue or lane.running for lane in lanes.by_name.values()) or lanes.parked_count
            if not came and not busy:
                break
        self.reader.drain()
        await asyncio.sleep(0)
        for wire in self.wires:
            wire.push()

    def close(self) -> None:
        self.reader.close()
        for wire in self.wires:
            wire.end()
