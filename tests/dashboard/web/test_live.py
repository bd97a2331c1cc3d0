"""A websocket before it is open."""

from __future__ import annotations

import asyncio

import pytest
from autobahn.twisted.websocket import WebSocketServerFactory
from autobahn.websocket.protocol import TrafficStats
from daphne.ws_protocol import WebSocketProtocol

from dashboard.web.live import LiveProtocol
from tests.dashboard.web.memory_transport import MemoryTransport


def test_what_comes_before_the_handshake_is_answered_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []
    monkeypatch.setattr(WebSocketProtocol, "dataReceived", lambda self, data: taken.append(data))
    live = LiveProtocol()
    live.transport = MemoryTransport()
    live.state = LiveProtocol.STATE_CONNECTING
    live.dataReceived(b"GET /live HTTP/1.1\r\n\r\n")
    live.dataReceived(b"\x81\x05hello")
    assert live.transport.disconnected and len(taken) == 1
    live.state = LiveProtocol.STATE_OPEN
    live.dataReceived(b"\x81\x05hello")
    assert len(taken) == 2


def test_our_own_messages_may_be_longer_than_a_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Overview's are, from three brokers on."""
    live = LiveProtocol()
    sent: list[bytes] = []
    monkeypatch.setattr(live, "sendFrame", lambda payload, **_how: sent.append(payload))
    live.factory = WebSocketServerFactory()
    live.state, live.maxMessagePayloadSize, live.trackedTimings = LiveProtocol.STATE_OPEN, 16_384, None
    live.autoFragmentSize, live.logFrames = 0, False
    live.trafficStats = TrafficStats()
    monkeypatch.setattr(live, "_perMessageCompress", None, raising=False)
    live.sendMessage(b"x" * 100_000)
    assert sent == [b"x" * 100_000] and live.maxMessagePayloadSize == 16_384


async def test_a_message_for_a_peer_that_does_not_read_waits_until_it_does_or_is_gone() -> None:
    live = LiveProtocol()
    live.factory, transport = WebSocketServerFactory(), MemoryTransport()
    live.makeConnection(transport)
    assert transport.producer is live, "no longer the HTTP channel before the upgrade"
    await live.room()
    for end in (live.resumeProducing, live.stopProducing):
        live.pauseProducing()
        waiting = asyncio.ensure_future(live.room())
        assert not (await asyncio.wait([waiting], timeout=0.01))[0], "to show that it waits takes some time"
        end()
        await waiting
