"""One accepted connection: counted, given to HTTP, closed when others need its place.

With a certificate the port takes TLS and plain connections alike, as brokers' ports do: the first byte tells which
(`appliance.remoting.tls_listener`). What plain ones get then is the channel's to say.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from twisted.internet.protocol import ServerFactory
from twisted.protocols.policies import ProtocolWrapper
from twisted.protocols.tls import TLSMemoryBIOFactory
from zope.interface import directlyProvides, providedBy

from dashboard.http.client_address import client_address, counted_address
from dashboard.web.certificate import Certificate
from dashboard.web.connections import ConnectionTable
from dashboard.web.limits import HEAD_SECONDS_MAX, WebLimits
from dashboard.web.loop_shares import LoopShares
from dashboard.web.proxies import TrustedProxies
from gantrymq.log_limit import LogLimit

if TYPE_CHECKING:
    from dashboard.web.channel import WebFactory

logger = logging.getLogger(__name__)

TLS_HANDSHAKE_BYTE = 0x16


class ClientConnectionFactory(ServerFactory):
    """What a listening port gives its connections to."""

    def __init__(
        self,
        web: WebFactory,
        limits: WebLimits,
        proxies: TrustedProxies,
        certificate: Certificate | None,
        log_limit: LogLimit,
    ) -> None:
        self.web = web
        self.limits = limits
        self.proxies = proxies
        self.tls = TLSMemoryBIOFactory(certificate, False, web) if certificate is not None else None
        self.log_limit = log_limit
        self.shares = LoopShares()
        self.table: ConnectionTable[ClientConnection] = ConnectionTable(
            connections_max=limits.connections_max, per_address_max=limits.connections_per_address_max
        )

    def buildProtocol(self, addr: Any) -> ClientConnection | None:
        """None closes the connection at once, which costs least."""
        host = str(getattr(addr, "host", ""))
        key = self._key_of(host)
        if not self.shares.takes(key):
            self.tell("connection not taken", "web_connection_not_taken", host, why="its address uses too much time")
            return None
        return ClientConnection(self, addr, host, key)

    def _key_of(self, host: str) -> str:
        """Under which its limits count; "" for a trusted proxy."""
        return "" if self.proxies.trusts(host) else counted_address(client_address({"client": [host]}))

    def doStart(self) -> None:  # Twisted would log each start
        pass

    def doStop(self) -> None:
        pass

    def tell(self, text: str, event: str, host: str, **facts: Any) -> None:
        """A line that a peer caused, a few of a kind for each address."""
        left_out = self.log_limit.left_out(event, host)
        if left_out is not None:
            facts |= {"event": event, "address": host} | ({"left_out": left_out} if left_out else {})
            logger.warning(text, extra=facts)


class ClientConnection(ProtocolWrapper):
    """The outermost layer of a connection, its only one that lives from the first byte to the last."""

    factory: ClientConnectionFactory
    wrappedProtocol: Any  # HTTP, TLS around it, or a websocket after an upgrade; None: the first byte is awaited

    def __init__(self, factory: ClientConnectionFactory, address: Any, host: str, key: str) -> None:
        super().__init__(factory, None)
        self._address = address
        self._silence: Any = None  # the timer until the first byte
        self.host = host
        self._key = key
        self._accepted = factory.shares.now()

    def makeConnection(self, transport: Any) -> None:
        with self.factory.shares.work_for(self._key, self._accepted):
            self._enter(transport)

    def _enter(self, transport: Any) -> None:
        directlyProvides(self, providedBy(transport))
        self.transport = transport
        self.connected = 1
        found = self.factory.table.enter(self, self._key)
        transport.setTcpNoDelay(True)
        if self.factory.tls is None:
            self._begin(is_tls=False)
        else:
            self._silence = self.factory.web.reactor.callLater(HEAD_SECONDS_MAX, transport.abortConnection)
        if found is not None:
            found[0].displace(found[1])
        elif transport.fileno() > self.factory.limits.file_number_max:
            self._out_of_files()

    def dataReceived(self, data: bytes) -> None:
        with self.work():
            if self.wrappedProtocol is None:
                self._begin(is_tls=data[0] == TLS_HANDSHAKE_BYTE)
            self.wrappedProtocol.dataReceived(data)

    def connectionLost(self, reason: Any = None) -> None:
        self.factory.table.leave(self)
        self._end_silence()
        if self.wrappedProtocol is not None:
            with self.work():
                self.wrappedProtocol.connectionLost(reason)
            self.wrappedProtocol = None

    def _begin(self, *, is_tls: bool) -> None:
        self._end_silence()
        channel, tls = self.factory.web.build(self._address, self, is_tls=is_tls), self.factory.tls
        self.wrappedProtocol = tls.protocol(tls, channel) if is_tls and tls is not None else channel
        self.wrappedProtocol.makeConnection(self)

    def _end_silence(self) -> None:
        if self._silence is not None and self._silence.active():
            self._silence.cancel()

    def work(self) -> AbstractContextManager[None]:
        """Around what takes time because of this connection."""
        return self.factory.shares.work_for(self._key)

    def waits(self) -> None:
        self.factory.table.waits(self)

    def is_busy(self) -> None:
        self.factory.table.is_busy(self)

    def is_signed_in(self) -> None:
        self.factory.table.is_signed_in(self)

    def displace(self, why: str) -> None:
        """Close it at once, for the sake of others."""
        self.factory.tell("connection closed to make room", "web_connection_displaced", self.host, why=why)
        self.factory.table.leave(self)
        self.transport.abortConnection()

    def tell(self, text: str, event: str, **facts: Any) -> None:
        self.factory.tell(text, event, self.host, **facts)

    def _out_of_files(self) -> None:
        """Other parts of the process have taken most descriptors: this connection goes, and one that waits with it."""
        why = "hardly any file descriptor is left"
        self.displace(why)
        if (other := self.factory.table.longest_waiting()) is not None:
            other.displace(why)
