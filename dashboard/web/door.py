"""One accepted connection: counted, given to HTTP, closed when others need its place."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from twisted.internet.protocol import ServerFactory
from twisted.protocols.policies import ProtocolWrapper
from zope.interface import directlyProvides, providedBy

from appliance.remoting.log_limit import LogLimit
from dashboard.web.connections import ConnectionTable, address_key
from dashboard.web.limits import WebLimits
from dashboard.web.proxies import TrustedProxies

if TYPE_CHECKING:
    from dashboard.web.channel import WebFactory

logger = logging.getLogger(__name__)


class DoorFactory(ServerFactory):
    """What a listening port gives its connections to."""

    def __init__(self, web: WebFactory, limits: WebLimits, proxies: TrustedProxies, log_limit: LogLimit) -> None:
        self.web = web
        self.limits = limits
        self.proxies = proxies
        self.log_limit = log_limit
        self.table: ConnectionTable[Door] = ConnectionTable(
            connections_max=limits.connections_max, per_address_max=limits.connections_per_address_max
        )

    def buildProtocol(self, addr: Any) -> Door:
        return Door(self, addr)

    def doStart(self) -> None:  # Twisted would write into a log that nobody reads
        pass

    def doStop(self) -> None:
        pass

    def tell(self, text: str, event: str, host: str, **facts: Any) -> None:
        """A line that a peer caused, a few of a kind for each address."""
        left_out = self.log_limit.left_out(event, host)
        if left_out is not None:
            facts |= {"event": event, "address": host} | ({"left_out": left_out} if left_out else {})
            logger.warning(text, extra=facts)


class Door(ProtocolWrapper):
    """The outermost layer of a connection, its only one that lives from the first byte to the last."""

    factory: DoorFactory
    wrappedProtocol: Any  # HTTP or, after an upgrade, a websocket

    def __init__(self, factory: DoorFactory, address: Any) -> None:
        super().__init__(factory, factory.web.build(address, self))
        self.host = str(getattr(address, "host", ""))

    def makeConnection(self, transport: Any) -> None:
        directlyProvides(self, providedBy(transport))
        self.transport = transport
        self.connected = 1
        key = "" if self.factory.proxies.trusts(self.host) else address_key(self.host)
        found = self.factory.table.enter(self, key)
        self.wrappedProtocol.makeConnection(self)
        if found is not None:
            found[0].displace(found[1])
        elif transport.fileno() > self.factory.limits.file_number_max:
            self._out_of_files()

    def connectionLost(self, reason: Any = None) -> None:
        self.factory.table.leave(self)
        self.wrappedProtocol.connectionLost(reason)
        self.wrappedProtocol = None

    def waits(self) -> None:
        self.factory.table.waits(self)

    def is_busy(self) -> None:
        self.factory.table.is_busy(self)

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
