"""A connection's transport that keeps what is written to it.

Twisted has one, StringTransport. But its module loads trial, and once that is loaded pytest reads Twisted's metadata
around every test to see which version of trial it has to support: two milliseconds a test, for all that follow.
"""

from __future__ import annotations

from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IConsumer, IPushProducer, ITransport
from zope.interface import implementer


@implementer(ITransport, IConsumer, IPushProducer)
class MemoryTransport:
    """disconnecting: closed when all is written; disconnected: cut off."""

    def __init__(self) -> None:
        self.written = b""
        self.disconnecting = self.disconnected = False

    def write(self, data: bytes) -> None:
        self.written += data

    def writeSequence(self, parts: list[bytes]) -> None:
        self.written += b"".join(parts)

    def loseConnection(self) -> None:
        self.disconnecting = True

    def abortConnection(self) -> None:
        self.disconnected = True

    def getHost(self) -> IPv4Address:
        return IPv4Address("TCP", "10.0.0.1", 80)

    def getPeer(self) -> IPv4Address:
        return IPv4Address("TCP", "192.168.1.1", 54321)

    def registerProducer(self, producer: object, streaming: bool) -> None:
        self.producer = producer

    def unregisterProducer(self) -> None:
        self.producer = None

    def pauseProducing(self) -> None:
        """Reading stops; nothing is read here."""

    def resumeProducing(self) -> None:
        """Reading goes on."""

    def stopProducing(self) -> None:
        self.loseConnection()
