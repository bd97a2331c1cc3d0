"""appliance/remoting: real sockets into lanes and back."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

import pytest

from appliance.errors import BrokerError
from appliance.remoting import lanes as lanes_module
from appliance.remoting import server as server_module
from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import LaneLimits, Route
from appliance.remoting.lanes import Lanes
from appliance.remoting.server import RemotingServer
from appliance.settings.sockets import SocketSettings
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol

ECHO, SLOW, REFUSE, BREAK, ASK_BACK = 10, 11, 12, 14, 15


def echo(connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    return request.reply(0, None, request.ext_fields, request.body)


async def slow(connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    await asyncio.sleep(0.01)
    return request.reply(0, "slow")


def refuse(connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    raise BrokerError(ResponseCode.NO_PERMISSION, "not you")


def broken(connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    raise RuntimeError("a bug with a secret in it")


async def ask_back(connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    answer = await connection.invoke(RemotingCommand.request(307), timeout_s=60)
    return request.reply(0, answer.remark)


ROUTES = {
    ECHO: Route(echo, "fast"),
    SLOW: Route(slow, "fast"),
    REFUSE: Route(refuse, "fast"),
    BREAK: Route(broken, "fast"),
    ASK_BACK: Route(ask_back, "fast"),
}


ROOMY = LaneLimits(1000)


class Peer:
    """A raw client: sends bytes, reads commands."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._protocol = RemotingProtocol()

    def send(self, *requests: RemotingCommand) -> None:
        self.writer.write(b"".join(request.encode() for request in requests))

    async def receive(self) -> RemotingCommand | None:
        """The next command, None when the server closed."""
        async with asyncio.timeout(30):
            while (command := self._protocol.next_command()) is None:
                data = await self.reader.read(65536)
                if not data:
                    return None
                self._protocol.receive_data(data)
            return command

    async def ask(self, request: RemotingCommand) -> RemotingCommand | None:
        self.send(request)
        return await self.receive()


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that comes at once is read at once, however long a request took before."""
    for name in ("READ_AHEAD_SECONDS", "TURN_SECONDS", "ROUND_SECONDS_MAX", "LANE_SECONDS_MAX"):
        monkeypatch.setattr(lanes_module, name, 60.0)


@contextlib.asynccontextmanager
async def connected(limits: LaneLimits = ROOMY) -> AsyncIterator[tuple[Peer, Lanes, RemotingServer]]:
    lanes = Lanes({"fast": limits})
    server = RemotingServer(lanes, host="127.0.0.1", port=0)
    port = await server.open()
    server.serve(ROUTES)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Peer(reader, writer), lanes, server
    finally:
        writer.close()
        await server.close()
        await lanes.close()


async def test_what_comes_before_the_routes_are_known_waits_for_them() -> None:
    """A client that reconnects while its broker starts is served by a broker that knows its own address."""
    lanes = Lanes({"fast": ROOMY})
    server = RemotingServer(lanes, host="127.0.0.1", port=0)
    port = await server.open()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    peer = Peer(reader, writer)
    try:
        peer.send(RemotingCommand.request(ECHO, {"n": "1"}))
        for _ in range(50):
            await asyncio.sleep(0)
        assert server.connection_count == 0
        server.serve(ROUTES)
        answer = await peer.receive()
        assert answer is not None and answer.code == 0
    finally:
        writer.close()
        await server.close()
        await lanes.close()


async def test_pipelined_requests_are_all_answered_by_their_opaque() -> None:
    async with connected() as (peer, _, _):
        requests = [RemotingCommand.request(ECHO, {"n": str(n)}, b"x" * n) for n in range(500)]
        peer.send(*requests)
        answers = {}
        for _ in requests:
            answer = await peer.receive()
            assert answer is not None
            answers[answer.opaque] = answer
        for request in requests:
            assert answers[request.opaque].ext_fields == request.ext_fields
            assert answers[request.opaque].body == request.body


@pytest.mark.parametrize("serialize_type", [0, 1])
async def test_an_answer_speaks_the_header_encoding_of_its_request(serialize_type: int) -> None:
    async with connected() as (peer, _, _):
        answer = await peer.ask(RemotingCommand.request(ECHO, {"a": "b"}, b"body", serialize_type=serialize_type))
        assert answer is not None
        assert (answer.serialize_type, answer.ext_fields, answer.body) == (serialize_type, {"a": "b"}, b"body")


async def test_refusals_and_bugs_become_codes_without_leaking_their_text() -> None:
    async with connected() as (peer, _, _):
        refused = await peer.ask(RemotingCommand.request(REFUSE))
        broke = await peer.ask(RemotingCommand.request(BREAK))
        assert refused is not None and broke is not None
        assert (refused.code, refused.remark) == (ResponseCode.NO_PERMISSION, "not you")
        assert (broke.code, broke.remark) == (ResponseCode.SYSTEM_ERROR, "system error")


async def test_a_oneway_request_gets_no_answer_whatever_happens() -> None:
    async with connected() as (peer, _, _):
        for code in (ECHO, SLOW, REFUSE, BREAK, 9999):
            peer.send(RemotingCommand.request(code).mark_oneway())
        last = RemotingCommand.request(SLOW)
        answer = await peer.ask(last)
        assert answer is not None and answer.opaque == last.opaque


async def test_the_server_may_ask_its_client() -> None:
    async with connected() as (peer, _, _):
        question = RemotingCommand.request(ASK_BACK)
        pushed = await peer.ask(question)
        assert pushed is not None and pushed.code == 307 and not pushed.is_response
        answer = await peer.ask(pushed.reply(0, "here I am"))
        assert answer is not None
        assert (answer.opaque, answer.remark) == (question.opaque, "here I am")


async def test_a_client_that_answers_nothing_is_not_asked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("appliance.remoting.client_peer.AWAITED_MAX", 1)
    async with connected() as (peer, _, _):
        pushed = await peer.ask(RemotingCommand.request(ASK_BACK))
        assert pushed is not None and not pushed.is_response
        second = RemotingCommand.request(ASK_BACK)
        refused = await peer.ask(second)
        assert refused is not None and refused.is_response
        assert refused.opaque == second.opaque and refused.code != 0
        answer = await peer.ask(pushed.reply(0, "here I am"))
        assert answer is not None and answer.remark == "here I am", "the first is still awaited"


@pytest.mark.parametrize(
    "frame",
    [
        b"\x7f\xff\xff\xff",  # far over the limit
        b"\xff\xff\xff\xff" + bytes(100),  # negative
        b"\x00\x00\x00\x03" + bytes(100),  # no room for the header word
        b"\x00\x00\x00\x08\x00\x00\x00\xff" + bytes(100),  # header longer than its frame
        b"\x00\x00\x00\x08\x07\x00\x00\x04{}{}",  # unknown encoding
        b"\x00\x00\x00\x08\x00\x00\x00\x04{{{{",  # no JSON
        b"\0\0\x27\x14\0\0\x27\x10" + b"[" * 10_000,  # a bomb for readers that recurse
        b"\0\0\x27\x14\0\0\x27\x10" + b'{"a":' * 2_000,
        b"\0\0\0\x0e\0\0\0\x0a" + b'{"code":"}',
        b"\0\0\0\x18\x01\0\0\x14" + b"\xff" * 20,  # binary: lengths that are negative
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03",  # a TLS hello
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_a_hostile_frame_ends_its_connection_and_no_other(frame: bytes) -> None:
    """S36."""
    async with connected() as (peer, _, server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        hostile = Peer(reader, writer)
        writer.write(frame)
        with contextlib.suppress(ConnectionResetError):
            assert await hostile.receive() is None
        writer.close()
        assert await peer.ask(RemotingCommand.request(ECHO)) is not None


@pytest.mark.usefixtures("unhurried")
async def test_a_full_lane_refuses_at_once_and_recovers() -> None:
    async with connected(LaneLimits(2)) as (peer, lanes, _):
        requests = [RemotingCommand.request(SLOW) for _ in range(5)]
        peer.send(*requests)
        codes = sorted([answer.code for _ in requests if (answer := await peer.receive()) is not None])
        assert codes == [0, 0, 2, 2, 2]
        assert lanes.by_name["fast"].rejected == 3
        again = await peer.ask(RemotingCommand.request(ECHO))
        assert again is not None and again.code == 0


async def test_requests_under_way_take_their_place_in_the_lane() -> None:
    async with connected(LaneLimits(2)) as (peer, lanes, _):
        held = RemotingCommand.request(ASK_BACK), RemotingCommand.request(ASK_BACK)
        peer.send(*held)
        questions = [await peer.receive(), await peer.receive()]  # both are served, and wait for us
        assert lanes.by_name["fast"].size == 2
        refused = await peer.ask(RemotingCommand.request(ECHO))
        assert refused is not None and refused.code == ResponseCode.SYSTEM_BUSY
        assert refused.remark == "[OVERLOAD]system busy, start flow control for a while"
        for question in questions:
            assert question is not None and question.code == 307
            peer.send(question.reply(0, "done"))
        answers = [await peer.receive(), await peer.receive()]
        assert {answer.opaque for answer in answers if answer is not None} == {request.opaque for request in held}
        served = await peer.ask(RemotingCommand.request(ECHO))
        assert served is not None and served.code == 0


@pytest.mark.usefixtures("unhurried")
async def test_a_request_that_waited_too_long_is_refused_unserved() -> None:
    async with connected(LaneLimits(10, wait_ms_max=0)) as (peer, lanes, _):
        answer = await peer.ask(RemotingCommand.request(ECHO))
        assert answer is not None
        assert answer.code == ResponseCode.SYSTEM_BUSY
        assert answer.remark is not None and answer.remark.startswith("[TIMEOUT_CLEAN_QUEUE]broker busy")
        assert lanes.by_name["fast"].expired == 1
        requests = [RemotingCommand.request(ECHO) for _ in range(3)]
        peer.send(*requests)
        remarks = [str(answer.remark) for _ in requests if (answer := await peer.receive()) is not None]
        assert [remark.rpartition(", ")[2] for remark in remarks] == [f"size of queue: {left}" for left in (2, 1, 0)]
        assert all(re.search(r"control for a while, period in queue: \d+ms, ", each) for each in remarks)


async def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "IDLE_SCAN_SECONDS", 0.02)
    async with connected() as (peer, _, server):
        server.sockets = SocketSettings(idle_seconds_max=1)
        watch = asyncio.create_task(server.run())
        assert await peer.receive() is None
        watch.cancel()


async def test_too_many_connections_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECTIONS_MAX", 1)
    async with connected() as (peer, _, server):
        assert await peer.ask(RemotingCommand.request(ECHO)) is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await Peer(reader, writer).receive() is None
        writer.close()


async def test_a_peer_that_reads_nothing_is_not_read_from(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(LaneLimits(100_000)) as (peer, _, _):
        peer.writer.transport.pause_reading()
        big = RemotingCommand.request(ECHO, None, b"x" * 1_000_000)
        sent = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                while sent < 200:
                    peer.send(big)
                    await peer.writer.drain()
                    sent += 1
        assert sent < 200, "the server kept reading although its answers were not read"
