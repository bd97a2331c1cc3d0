"""appliance/remoting: what connections may cost: their number, incomplete frames, time, memory, lines in the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.remoting import server as limits
from appliance.remoting.connection import REQUEST_HEADER_BYTES_MAX
from gantrymq import log_limit
from gantrymq.log_limit import LINES_MAX
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import Peer, connected
from tests.conftest import time_limit
from tests.harness import serving
from tests.waiting import until

ASK = RemotingCommand.request(RequestCode.GET_BROKER_RUNTIME_INFO)
PROBE_S_MAX = 10.0


@pytest.fixture
def blocking() -> Iterator[list[socket.socket]]:
    """Sockets that the test opened; closed at its end."""
    opened: list[socket.socket] = []
    yield opened
    for sock in opened:
        sock.close()


async def probe(peer: Peer) -> None:
    started = time.monotonic()
    assert (await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).code == 0
    assert time.monotonic() - started < time_limit(PROBE_S_MAX)


async def until_closed(reader: asyncio.StreamReader) -> None:
    """A reset is an end too: it comes when the server closes with something of ours unread."""
    async with asyncio.timeout(30):
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE])
@pytest.mark.parametrize("signed", [False, True])
async def test_brackets_without_end_are_a_bad_frame_in_the_quick_decoders_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: RequestCode, signed: bool
) -> None:
    """Python's limit of recursion would be an error of ours: its traceback in the log, as often as somebody likes."""
    caplog.set_level(logging.WARNING)
    header = b'{"code":%d,"unknown":' % code + b"[" * 100_000
    async with serving(tmp_path, broker={"acl_enable": signed}) as cluster:
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.port)
        writer.write((4 + len(header)).to_bytes(4) + len(header).to_bytes(4) + header)
        await until_closed(reader)
        writer.close()
    assert "bad_frame" in {getattr(record, "event", "") for record in caplog.records}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_header_nobody_needs_is_refused_before_it_arrives(tmp_path: Path) -> None:
    """Reading 16 MiB of fields kept everybody waiting for a second, looking for a key of 15 MiB for a minute."""
    async with serving(tmp_path) as cluster, connected(cluster.broker.port) as other:
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.port)
        header_bytes = REQUEST_HEADER_BYTES_MAX + 1
        writer.write((4 + header_bytes).to_bytes(4) + header_bytes.to_bytes(4))
        await until_closed(reader)
        writer.close()
        fields = {"topic": "T", "key": "k" * 200_000, "maxNum": "32", "beginTimestamp": "0", "endTimestamp": "9"}
        answer = await other.ask(RequestCode.QUERY_MESSAGE, fields)
        assert answer.code == ResponseCode.QUERY_NOT_FOUND, "a large one is answered"


async def test_a_frame_that_trickles_in_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S36, S37."""
    monkeypatch.setattr(limits, "FRAME_SECONDS_MAX", 0.4)
    async with serving(tmp_path) as cluster, connected(cluster.broker.port) as other:
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.port)
        closed = asyncio.create_task(until_closed(reader))
        writer.write(b"\0\0\xff\xff\0\0\0\x10")
        while not closed.done():
            writer.write(b"x")
            await asyncio.sleep(0.02)
        await closed
        writer.close()
        await probe(other)


async def test_frames_that_take_long_but_come_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a frame whenever somebody looks, never for long. The test looks, at times of its own."""
    allowed_s = 1e6
    monkeypatch.setattr(limits, "FRAME_SECONDS_MAX", allowed_s)
    monkeypatch.setattr(limits, "IDLE_SCAN_SECONDS", allowed_s)
    async with (
        serving(tmp_path, broker={"idle_seconds_max": 1 << 30}) as cluster,
        connected(cluster.broker.port) as peer,
    ):
        server, frame, began = cluster.broker.server, ASK.encode(), time.monotonic()
        for number in range(7):
            peer.write(frame[:30])
            await until(lambda: server.held_bytes > 0)
            server.close_the_lost(began + number * 0.7 * allowed_s)
            peer.write(frame[30:])
            assert (await peer.read()).code == 0
        peer.write(frame[:30])
        await until(lambda: server.held_bytes > 0)
        for number in (7, 9):
            server.close_the_lost(began + number * 0.7 * allowed_s)
        await until(lambda: server.held_bytes == 0)  # one that does not come is given up


async def test_one_address_can_not_take_all_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocking: list[socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    """S37."""
    monkeypatch.setattr(limits, "CONNECTIONS_PER_ADDRESS_MAX", 30)
    monkeypatch.setattr(log_limit, "WINDOW_S", 1e6)  # one window, however slow the machine is
    caplog.set_level(logging.INFO)
    async with serving(tmp_path) as cluster, connected(cluster.broker.port) as other:
        server = cluster.broker.server
        for _ in range(100):
            blocking.append(socket.create_connection(("127.0.0.1", cluster.broker.port)))
        for refused in blocking[29:]:  # `other` has a place too
            refused.settimeout(30)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.to_thread(refused.recv, 1) == b""
        assert server.connection_count == 30
        blocking.append(socket.create_connection(("127.0.0.1", cluster.broker.port), source_address=("127.0.0.2", 0)))
        async with asyncio.timeout(30):  # another address has room
            while server.connection_count != 31:
                await asyncio.sleep(0.02)
        await probe(other)
        for sock in blocking:
            sock.close()
        async with asyncio.timeout(30):
            while server.connection_count > 1:
                await asyncio.sleep(0.02)
    lines = [record for record in caplog.records if getattr(record, "event", "") == "too_many_connections"]
    assert 0 < len(lines) <= LINES_MAX


async def test_incomplete_frames_of_all_together_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocking: list[socket.socket]
) -> None:
    """S36."""
    monkeypatch.setattr(limits, "HELD_BYTES_MAX", 4 << 20)
    async with serving(tmp_path) as cluster, connected(cluster.broker.port) as other:
        server = cluster.broker.server
        streams = [await asyncio.open_connection("127.0.0.1", cluster.broker.port) for _ in range(12)]
        for _, writer in streams:
            writer.write((8 << 20).to_bytes(4) + bytes(1 << 20))
        for _ in range(100):
            await asyncio.sleep(0.02)
            assert server.held_bytes <= (5 << 20)
            await probe(other)
        assert 2 <= server.connection_count <= 6
        for _, writer in streams:
            writer.close()
        async with asyncio.timeout(30):
            while server.held_bytes or server.connection_count > 1:
                await asyncio.sleep(0.02)


async def test_bad_frames_are_logged_a_few_times_and_then_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_limit, "WINDOW_S", 1e6)
    caplog.set_level(logging.WARNING)
    async with serving(tmp_path) as cluster:
        for _ in range(3 * LINES_MAX):
            reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.port)
            writer.write(b"\xff\xff\xff\xff")
            await until_closed(reader)
            writer.close()
    lines = [record for record in caplog.records if getattr(record, "event", "") == "bad_frame"]
    assert len(lines) == LINES_MAX
    assert vars(lines[0])["peer"].startswith("127.0.0.1:")
