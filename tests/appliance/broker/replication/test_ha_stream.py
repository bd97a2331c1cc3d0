"""A slave's connection: one block of memory, on asyncio's loop and on the one that brokers run on."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
import struct
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from appliance.broker.replication.ha_stream import HaStream, connect
from appliance.broker.replication.master.slave import SlaveLost, give
from tests.appliance.loops import LOOPS
from tests.certificates import authority
from tests.waiting import WITHIN_S

SIZE = 4096
Loop = Callable[[], asyncio.AbstractEventLoop]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Loop:
    return LOOPS[request.param]


def talk(loop: Loop, serve: Serve, act: Callable[[HaStream], Awaitable[None]]) -> None:
    """Have one connection, `serve` at its master's end and `act` at the slave's."""

    async def both() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            stream = await connect("127.0.0.1", server.sockets[0].getsockname()[1], SIZE, None)
            try:
                await act(stream)
            finally:
                await stream.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(both())


def test_more_than_the_memory_arrives_whole_and_in_order(loop: Loop) -> None:
    sent = bytes(range(256)) * 400  # 25 times the memory

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(sent), 1000):
            writer.write(sent[start : start + 1000])
            await asyncio.sleep(0)
        writer.close()

    async def act(stream: HaStream) -> None:
        came = [bytes(await stream.readexactly(12))]
        while data := await stream.read(WITHIN_S):
            assert len(data) <= SIZE
            await asyncio.sleep(0.001)  # what comes meanwhile goes behind, or waits in the socket
            came.append(bytes(data))
            stream.release()
        assert b"".join(came) == sent

    talk(loop, serve, act)


def test_a_greeting_as_large_as_the_memory_is_read_behind_other_bytes(loop: Loop) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"12345678" + b"g" * SIZE + b"rest")
        assert await reader.readexactly(3) == b"ack"
        writer.close()

    async def act(stream: HaStream) -> None:
        assert await stream.readexactly(8) == b"12345678"
        assert await stream.readexactly(SIZE) == b"g" * SIZE
        assert await stream.readexactly(4) == b"rest"
        stream.write(b"ack")
        await stream.drain()
        with pytest.raises(asyncio.IncompleteReadError) as end:
            await stream.readexactly(1)
        assert end.value.partial == b""
        assert not await stream.read(WITHIN_S)

    talk(loop, serve, act)


def test_a_connection_that_is_reset_is_an_error(loop: Loop) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def act(stream: HaStream) -> None:
        with pytest.raises(ConnectionResetError):
            await stream.read(WITHIN_S)
        stream.write(b"not heard")
        with pytest.raises(ConnectionResetError):
            await stream.drain()

    talk(loop, serve, act)


def test_a_connection_that_the_system_gives_up_is_no_limit_of_the_reader(loop: Loop) -> None:
    """Taken for one, it would be read again and again, without a turn for anything else."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def act(stream: HaStream) -> None:
        stream.connection_lost(TimeoutError(110, "Connection timed out"))
        for say in (functools.partial(stream.read, WITHIN_S), stream.drain):
            with pytest.raises(ConnectionAbortedError, match="timed out"):
                await say()

    talk(loop, serve, act)


def test_a_reader_is_told_when_nothing_came_in_time_and_again_when_something_did(loop: Loop) -> None:
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(b"late")
        await reader.read()
        writer.close()

    async def act(stream: HaStream) -> None:
        for within_s in (0.01, 0.0102, 0.0001, 0.0, 0.01):  # a loop that counts milliseconds calls some at once
            assert await stream.read(within_s) is None
            asyncio.get_running_loop().call_soon(stream.buffer_updated, 0)  # wakes the reader beside its timer
        go_on.set()
        assert await stream.read(WITHIN_S) == b"late"
        stream.release()
        assert await stream.read(0.01) is None, "a shorter limit than the timer's"

    talk(loop, serve, act)


def test_a_master_says_nothing_to_a_slave_that_has_gone(loop: Loop) -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with pytest.raises(ConnectionResetError):
            await reader.read()
        with pytest.raises(SlaveLost, match="closed by the slave"):
            await give(writer, b"not heard")
        gone.set()

    async def act(stream: HaStream) -> None:
        stream.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        stream.transport.abort()
        await gone.wait()

    talk(loop, serve, act)


def test_a_good_bye_does_not_wait_for_a_master_that_stands_still(loop: Loop) -> None:
    folder = authority()
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(folder / "server.pem", folder / "server.key")
    ours = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    still, is_over = threading.Event(), threading.Event()

    def serve(server: socket.socket) -> None:
        with server.accept()[0] as plain, theirs.wrap_socket(plain, server_side=True) as connection:
            connection.sendall(b"greeting")
            still.set()
            is_over.wait()

    async def act(port: int) -> float:
        stream = await connect("127.0.0.1", port, SIZE, ours)
        assert await stream.readexactly(8) == b"greeting"
        await asyncio.to_thread(still.wait)
        start = time.monotonic()
        await stream.close()
        return time.monotonic() - start

    with socket.create_server(("127.0.0.1", 0)) as server, asyncio.Runner(loop_factory=loop) as runner:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        try:
            assert runner.run(act(server.getsockname()[1])) < 30.0, "the time that TLS gives a good-bye"
        finally:
            is_over.set()
            thread.join()
