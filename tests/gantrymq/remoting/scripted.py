"""A server on a free loopback port that answers as a test tells it: real sockets, no broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol
from tests.waiting import WITHIN_S

Script = Callable[["ScriptedServer", asyncio.StreamWriter, RemotingCommand], None]


class PatientClient(RemotingClient):
    """Waits for connections and answers as long as a busy machine may take, where a test names no limit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"connect_timeout_s": WITHIN_S, **options})

    async def invoke(self, address: str, request: RemotingCommand, *, timeout_s: float = WITHIN_S) -> RemotingCommand:
        return await super().invoke(address, request, timeout_s=timeout_s)

    async def invoke_oneway(self, address: str, request: RemotingCommand, *, timeout_s: float = WITHIN_S) -> None:
        await super().invoke_oneway(address, request, timeout_s=timeout_s)


class ScriptedServer:
    """Keeps every request and every connection it saw."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[RemotingCommand] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        protocol = RemotingProtocol()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                protocol.receive_data(data)
                while (command := protocol.next_command()) is not None:
                    self.requests.append(command)
                    self.script(self, writer, command)
        writer.close()


@contextlib.asynccontextmanager
async def scripted_server(script: Script, *, port: int = 0) -> AsyncIterator[ScriptedServer]:
    """Serve until the block ends, then cut every connection."""
    scripted = ScriptedServer(script)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", port)
    scripted.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield scripted
    finally:
        server.close()
        for writer in scripted.writers:
            writer.close()
        await server.wait_closed()


def echo(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
    """Answer with the request's own fields and body."""
    if not request.is_response and not request.is_oneway:
        writer.write(request.reply(ext_fields=request.ext_fields, body=request.body).encode())


def silence(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
    """Never answer."""
