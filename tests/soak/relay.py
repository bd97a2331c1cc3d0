"""Relay: a TCP port before a server's own, that can be slow and can break its connections.

Brokers are found through the name server, so the relay before that one writes the port of the broker's relay into
its answers: of the same length, and frame by frame, so that no frame changes its size.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Self

LENGTH = struct.Struct(">i")  # of a frame, without itself
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST
CHUNK_BYTES = 1 << 16


class Relay:
    """`async with Relay(target) as relay`: clients connect to `relay.address`. delay_s: of each piece, both ways."""

    def __init__(self, target: str, *, rewrite: tuple[bytes, bytes] | None = None) -> None:
        """rewrite: bytes of the server's answers, and what stands there instead; both of one length."""
        assert rewrite is None or len(rewrite[0]) == len(rewrite[1])
        self._target = target
        self._rewrite = rewrite
        self.delay_s = 0.0
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        self.reset()
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    def reset(self) -> None:
        """Break every connection, on both sides, as a router does that forgot them."""
        for writer in self._writers:
            sock: socket.socket = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._target.rpartition(":")
        try:
            to_server, server = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        both = {writer, server}
        self._writers |= both
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(reader, server))
                group.create_task(self._pass_back(to_server, writer))
        except* (OSError, asyncio.IncompleteReadError, _Ended):
            pass  # one side is gone, so the other one goes, too
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            await self._write(writer, data)
        raise _Ended

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._rewrite is None:
            await self._pass_on(reader, writer)
        while self._rewrite is not None:
            head = await reader.readexactly(LENGTH.size)
            frame = await reader.readexactly(*LENGTH.unpack(head))
            await self._write(writer, head + frame.replace(*self._rewrite))

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)  # slowness is what the relay is for
        writer.write(data)
        await writer.drain()


class _Ended(Exception):
    """The peer has nothing more to say."""
