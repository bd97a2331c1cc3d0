"""Deadlines of one connection: heads, bodies, silence. Real channels on a made-up clock."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.web import http

from dashboard.web import limits
from dashboard.web.channel import WebChannel, WebRequest
from dashboard.web.client_connection import ClientConnectionFactory
from dashboard.web.limits import BodyRoom, WebLimits
from dashboard.web.proxies import TrustedProxies
from gantrymq.log_limit import LogLimit
from tests.dashboard.web.memory_transport import MemoryTransport


class Visit:
    """A channel with a peer that says what the test says."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.transport = MemoryTransport()
        server = SimpleNamespace(
            limits=SimpleNamespace(body_bytes_max=1 << 20), body_room=BodyRoom(1 << 20), connections={},
            protocol_connected=lambda request: None, protocol_disconnected=lambda request: None,
            credential_of=lambda headers: "", sends_to_tls=lambda target: False,
        )  # fmt: skip
        client: Any = SimpleNamespace(
            waits=lambda: None, is_busy=lambda: None, tell=lambda *args, **facts: None, work=contextlib.nullcontext
        )
        self.channel = WebChannel(client)
        self.channel.factory = SimpleNamespace(server=server, log=lambda request: None)
        self.channel.callLater = self.clock.callLater
        self.channel.timeOut = limits.HEAD_SECONDS_MAX
        self.channel.makeConnection(self.transport)

    def says(self, text: str) -> None:
        self.channel.dataReceived(text.replace("\n", "\r\n").encode())

    @property
    def answer(self) -> str:
        return str(self.transport.written.partition(b"\r\n")[0].decode())

    @property
    def is_closed(self) -> bool:
        return bool(self.transport.disconnecting or self.transport.disconnected)


class AnsweredAtOnce(WebRequest):
    """What an application's short answer does to the channel."""

    def process(self) -> None:
        http.Request.write(self, b"hello")
        http.Request.finish(self)


@pytest.fixture
def visit() -> Visit:
    return Visit()


def test_a_head_that_drips_in_ends_with_its_time(visit: Visit) -> None:
    visit.says("GET / HTTP/1.1\n")
    for number in range(int(limits.HEAD_SECONDS_MAX)):
        visit.says(f"X-{number}: y\n")
        assert visit.answer == ""
        visit.clock.advance(1)
    assert visit.answer == "HTTP/1.1 408 Request Timeout"
    visit.clock.advance(limits.LINGER_SECONDS_MAX)
    assert visit.is_closed


def test_after_an_answer_silence_may_last_longer_and_a_head_may_not(visit: Visit) -> None:
    visit.channel.requestFactory = AnsweredAtOnce
    visit.says("GET / HTTP/1.1\nHost: x\n\n")
    assert visit.answer == "HTTP/1.1 200 OK"
    visit.clock.advance(limits.IDLE_SECONDS_MAX - 1)
    visit.says("GET / HTTP/1.1\n")
    visit.transport.written = b""
    visit.clock.advance(limits.HEAD_SECONDS_MAX - 1)
    assert visit.answer == ""
    visit.clock.advance(1)
    assert visit.answer == "HTTP/1.1 408 Request Timeout"


def test_an_idle_connection_is_closed_in_time(visit: Visit) -> None:
    visit.channel.requestFactory = AnsweredAtOnce
    visit.says("GET / HTTP/1.1\nHost: x\n\n")
    visit.transport.written = b""
    visit.clock.advance(limits.IDLE_SECONDS_MAX)
    assert visit.is_closed and visit.answer == ""


@pytest.mark.parametrize("line", ["Host: x", "Connection: close"])
def test_who_does_not_read_an_answer_is_cut_off_in_the_end(visit: Visit, line: str) -> None:
    visit.channel.requestFactory = AnsweredAtOnce
    visit.says(f"GET / HTTP/1.1\n{line}\n\n")
    visit.channel.pauseProducing()  # what the transport says when its peer does not read
    visit.clock.advance(limits.IDLE_SECONDS_MAX)
    assert not visit.transport.disconnected
    for _ in range(int(limits.DRAIN_SECONDS_MAX / limits.IDLE_SECONDS_MAX) + 1):
        visit.clock.advance(limits.IDLE_SECONDS_MAX)
    assert visit.transport.disconnected


def test_silence_is_closed_without_a_word(visit: Visit) -> None:
    visit.clock.advance(limits.HEAD_SECONDS_MAX)
    assert visit.is_closed and visit.answer == ""


def test_a_body_has_time_by_its_size(visit: Visit) -> None:
    visit.says(f"POST / HTTP/1.1\nContent-Length: {limits.UNKNOWN_BODY_BYTES_MAX}\n\n")
    visit.clock.advance(limits.HEAD_SECONDS_MAX + 1)
    visit.says("x")
    assert visit.answer == ""
    visit.clock.advance(limits.body_seconds_max(limits.UNKNOWN_BODY_BYTES_MAX) - limits.HEAD_SECONDS_MAX)
    assert visit.answer == "HTTP/1.1 408 Request Timeout"


def test_after_a_refusal_a_peer_that_goes_on_is_cut_off(visit: Visit) -> None:
    visit.says(f"POST / HTTP/1.1\nContent-Length: {1 << 30}\n\n")
    assert visit.answer == "HTTP/1.1 413 Content Too Large"
    visit.channel.dataReceived(b"x" * limits.LINGER_BYTES_MAX)
    assert not visit.is_closed
    visit.channel.dataReceived(b"x")
    assert visit.is_closed


def test_a_request_behind_a_refused_one_is_not_read(visit: Visit) -> None:
    visit.says("POST / HTTP/1.1\nContent-Length: 99999999\n\nGET /second HTTP/1.1\nHost: x\n\n")
    visit.says("GET /third HTTP/1.1\nHost: x\n\n")
    assert visit.transport.written.count(b"HTTP/1.1 ") == 1
    assert len(visit.channel.requests) == 1


def test_chunks_are_counted_whatever_their_size(visit: Visit) -> None:
    visit.says("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n")
    for _ in range(limits.UNKNOWN_BODY_BYTES_MAX):
        visit.says("1\nx\n")
    assert visit.answer == ""
    visit.says("1\nx\n")
    assert visit.answer == "HTTP/1.1 413 Content Too Large"


class NumberedTransport(MemoryTransport):
    """A transport with a descriptor."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def fileno(self) -> int:
        return self._number

    def setTcpNoDelay(self, enabled: bool) -> None:
        pass


def test_the_last_descriptors_are_not_for_connections(caplog: pytest.LogCaptureFixture) -> None:
    """One that got a high number goes, and with it the one that has waited longest: somebody else uses many files."""
    limits_here = WebLimits(body_bytes_max=1, connections_max=10, connections_per_address_max=10, file_number_max=200)
    channel: Any = SimpleNamespace(makeConnection=lambda client: None, connectionLost=lambda reason: None)
    web: Any = SimpleNamespace(build=lambda address, client, is_tls: channel)
    factory = ClientConnectionFactory(web, limits_here, TrustedProxies((), "x-forwarded"), None, LogLimit())
    transports = [NumberedTransport(number) for number in (198, 199, 201)]
    for transport in transports:
        connection = factory.buildProtocol(SimpleNamespace(host="10.0.0.1"))
        assert connection is not None
        connection.makeConnection(transport)
    assert [transport.disconnected for transport in transports] == [True, False, True]
    assert caplog.messages == ["connection closed to make room"] * 2
    assert len(factory.table) == 1
