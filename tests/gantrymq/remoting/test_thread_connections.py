"""Connections of threads: one call at a time each, bounded, closed when something went wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from gantrymq.errors import ConnectError, RequestTimeout
from gantrymq.remoting import thread_connections
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.thread_connections import ThreadConnection, ThreadConnections
from tests.gantrymq.client.ports import closed_port, silent_host
from tests.gantrymq.client.seen import until
from tests.gantrymq.remoting.scripted import Script, ScriptedServer, echo, scripted_server, silence

T = TypeVar("T")
FOREVER_S = 3600.0


@pytest.fixture
def connections() -> Iterator[ThreadConnections]:
    made = ThreadConnections()
    yield made
    made.close()
    assert made.count == 0


def ask(connection: ThreadConnection, body: bytes = b"?", timeout_s: float = FOREVER_S) -> bytes:
    request = RemotingCommand.request(1, body=body)
    return connection.call(request.code, request.opaque, request.encode(), timeout_s).body


def taken(connections: ThreadConnections, server: ScriptedServer) -> ThreadConnection:
    connection = connections.take(server.address)
    assert connection is not None
    return connection


async def test_one_connection_serves_call_after_call(connections: ThreadConnections) -> None:
    def calls() -> list[bytes]:
        answers = []
        for number in range(5):
            connection = taken(connections, server)
            answers.append(ask(connection, b"%d" % number * 10_000))
            connections.give_back(connection)
        return answers

    async with scripted_server(echo) as server:
        assert await asyncio.to_thread(calls) == [b"%d" % number * 10_000 for number in range(5)]
        assert (len(server.writers), connections.count) == (1, 1)


async def test_only_the_answer_to_its_own_request_ends_a_call(connections: ThreadConnections) -> None:
    def script(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        late, own = request.reply(body=b"late"), request.reply(body=b"own").encode()
        late.opaque -= 1
        writer.write(RemotingCommand.request(request.code).encode() + late.encode() + own[:7])
        asyncio.get_running_loop().call_soon(writer.write, own[7:])

    async with scripted_server(script) as server:
        connection = await asyncio.to_thread(taken, connections, server)
        assert await asyncio.to_thread(ask, connection) == b"own"
        connections.give_back(connection)


def hangs_up(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
    writer.close()


def no_frame(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
    writer.write(b"\xff" * 64)


@pytest.mark.parametrize(
    ("script", "timeout_s", "error"),
    [(silence, 0.01, RequestTimeout), (hangs_up, FOREVER_S, ConnectError), (no_frame, FOREVER_S, ConnectError)],
)
async def test_a_call_without_a_usable_answer_says_so(
    connections: ThreadConnections, script: Script, timeout_s: float, error: type[Exception]
) -> None:
    async with scripted_server(script) as server:
        connection = await asyncio.to_thread(taken, connections, server)
        with pytest.raises(error):
            await asyncio.to_thread(ask, connection, b"?", timeout_s)
        connections.drop(connection, "failed")
        assert connections.count == 0


async def test_what_the_peer_has_closed_meanwhile_is_not_used_again(connections: ThreadConnections) -> None:
    async with scripted_server(echo) as server:
        first = await asyncio.to_thread(taken, connections, server)
        await asyncio.to_thread(ask, first)
        connections.give_back(first)
        server.writers[0].close()
        await until(lambda: not first.is_quiet())
        second = await asyncio.to_thread(taken, connections, server)
        assert second is not first
        assert await asyncio.to_thread(ask, second, b"again") == b"again"
        connections.give_back(second)
        assert connections.count == 1


async def test_a_thread_too_many_gets_none(connections: ThreadConnections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_connections, "CONNECTIONS_MAX", 2)
    async with scripted_server(echo) as server:
        first, second = taken(connections, server), taken(connections, server)
        assert connections.take(server.address) is None
        connections.give_back(first)
        assert connections.take(server.address) is first
        for each in (first, second):
            connections.drop(each, "done")


async def test_one_that_is_unused_for_long_is_closed_when_another_does(
    connections: ThreadConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_server(echo) as server:
        first, second = taken(connections, server), taken(connections, server)
        connections.give_back(first)
        monkeypatch.setattr(thread_connections, "IDLE_S", -1.0)
        connections.give_back(second)
        assert connections.count == 1
        assert connections.take(server.address) is second
        connections.drop(second, "done")


def test_an_address_that_refuses_rests_for_a_while(
    connections: ThreadConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    connect: Callable[..., object] = thread_connections.socket.create_connection
    monkeypatch.setattr(
        thread_connections.socket, "create_connection", lambda *given: tried.append(given) or connect(*given)
    )
    address = closed_port()
    monkeypatch.setattr(thread_connections, "PAUSE_S", FOREVER_S)
    assert [connections.take(address) for _ in range(3)] == [None] * 3
    assert len(tried) == 1
    assert connections.take("no address") is None


async def test_what_is_unused_at_an_address_that_is_over_takes_no_place(connections: ThreadConnections) -> None:
    def call() -> None:
        connection = taken(connections, server)
        ask(connection)
        connections.give_back(connection)

    async with scripted_server(echo) as server:
        await asyncio.to_thread(call)
        assert connections.count == 1
        connections.end_silent(server.address, FOREVER_S, "moved")
        assert connections.count == 0


async def test_closing_ends_the_calls_in_progress(connections: ThreadConnections) -> None:
    async with scripted_server(silence) as server:
        busy, unused = taken(connections, server), taken(connections, server)
        connections.give_back(unused)
        call = asyncio.create_task(asyncio.to_thread(ask, busy))
        await until(lambda: bool(server.requests))
        connections.close()
        with pytest.raises(ConnectError):
            await call
        connections.drop(busy, "failed")
        assert connections.take(server.address) is None


async def test_a_host_that_does_not_answer_is_told_from_one_without_a_place(connections: ThreadConnections) -> None:
    assert await asyncio.to_thread(connections.take, closed_port()) is None
    with silent_host() as address, pytest.raises(ConnectError, match="no connection within"):
        await asyncio.to_thread(connections.take, address)
