"""A websocket before it is open."""

from __future__ import annotations

import pytest
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.testing import StringTransport

from dashboard.web.live import LiveProtocol


def test_what_comes_before_the_handshake_is_answered_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []
    monkeypatch.setattr(WebSocketProtocol, "dataReceived", lambda self, data: taken.append(data))
    live = LiveProtocol()
    live.transport = StringTransport()
    live.state = LiveProtocol.STATE_CONNECTING
    live.dataReceived(b"GET /live HTTP/1.1\r\n\r\n")
    live.dataReceived(b"\x81\x05hello")
    assert live.transport.disconnected and len(taken) == 1
    live.state = LiveProtocol.STATE_OPEN
    live.dataReceived(b"\x81\x05hello")
    assert len(taken) == 2
