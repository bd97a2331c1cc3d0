"""A websocket as Daphne hands it to the application: nothing is taken before it is open, and messages are small.

A tab that does not read gets nothing more until it does, and is not read from either: its frames take one buffer of
Twisted's. Its pings stay unanswered then, so it is cut off after less than a minute.
"""

from __future__ import annotations

import asyncio
from typing import Any

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

from dashboard.web.client_connection import ClientConnection


class LiveProtocol(WebSocketProtocol):
    """Refuses what a peer sends before its handshake is answered: Autobahn would keep it, without limit.

    The limit of a message's size is for what peers send. Autobahn holds it against our own frames too, and those grow
    with the brokers.
    """

    maxMessagePayloadSize: int
    _has_head = False
    _is_told = False

    def makeConnection(self, transport: Any) -> None:
        self._room = asyncio.Event()
        self._room.set()
        super().makeConnection(transport)
        transport.unregisterProducer()  # the HTTP channel before the upgrade
        transport.registerProducer(self, True)

    def pauseProducing(self) -> None:
        self._room.clear()
        self.transport.pauseProducing()  # or what it asks for would wait here

    def resumeProducing(self) -> None:
        self._room.set()
        self.transport.resumeProducing()
        if self.transport.disconnecting:  # Twisted waits for its producer before it closes
            self.transport.unregisterProducer()

    def stopProducing(self) -> None:
        self._room.set()

    async def room(self) -> None:
        """Wait until the peer has read most of what was sent, or is gone."""
        await self._room.wait()

    def dataReceived(self, data: bytes) -> None:
        if self.state == self.STATE_CONNECTING and self._has_head:
            self.transport.abortConnection()
            return
        self._has_head = True  # Daphne gives the whole head at once
        super().dataReceived(data)

    def serverSend(self, content: Any, binary: bool = False) -> None:
        """The application sends to signed-in accounts only; whom it refuses, it closes without a word before."""
        if not self._is_told:
            self._is_told = True
            _connection_of(self.transport).is_signed_in()
        super().serverSend(content, binary)

    def sendMessage(self, payload: bytes, isBinary: bool = False) -> None:
        limit, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        try:
            super().sendMessage(payload, isBinary)
        finally:
            self.maxMessagePayloadSize = limit


def _connection_of(transport: Any) -> ClientConnection:
    """The outermost layer, below TLS if there is any."""
    while not isinstance(transport, ClientConnection):
        transport = transport.transport
    return transport


class LiveFactory(WebSocketFactory):
    protocol = LiveProtocol
