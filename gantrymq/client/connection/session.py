"""ClientSession: what a running producer or consumer is made of, apart from its purpose.

One remoting client, the routes, the heartbeat to every broker that matters, and the tasks that keep them fresh. A
session belongs to one producer or consumer and has a client id of its own, as each has a connection of its own to each
broker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, Unpack

from gantrymq.client.connection.background import Background, every
from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.name_servers import NameServers
from gantrymq.client.connection.routes import REFRESH_S, Routes
from gantrymq.errors import ClientClosed, GantryError
from gantrymq.message.ids import local_address
from gantrymq.remoting.bodies import HeartbeatData
from gantrymq.remoting.client import RemotingClient, RequestHandler
from gantrymq.remoting.command import JSON
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

logger = logging.getLogger(__name__)


class ConnectionOptions(TypedDict, total=False):
    """How a client connects. `instance_name`: the client id's second half, when it must stay the same over restarts."""

    instance_name: str | None
    credentials: Credentials | None
    tls: ssl.SSLContext | TlsConfig | None
    serialize_type: int


REMARK_REPEAT_S = 600.0
HEARTBEAT_S = 30.0  # RocketMQ: heartbeatBrokerInterval; brokers forget a client after 120 s of silence


def local_ip() -> str:
    """The address this host would use to leave itself."""
    packed = local_address()
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


class ClientSession:
    """Open with `open`, close with `close`; both from the same event loop."""

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        heartbeat: Callable[[str], HeartbeatData],
        heartbeat_slaves: bool = False,
        request_handlers: Mapping[int, RequestHandler] | None = None,
        timeout_s: float = 3.0,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        instance_name = options.get("instance_name")
        self.client_id = f"{local_ip()}@{instance_name or f'{os.getpid()}#{secrets.token_hex(6)}'}"
        self.remoting = RemotingClient(
            request_handlers=request_handlers,
            credentials=options.get("credentials"),
            tls=options.get("tls"),
            serialize_type=options.get("serialize_type", JSON),
        )
        self.name_servers = NameServers(self.remoting, name_servers, timeout_s=timeout_s)
        self.routes = Routes(self.name_servers)
        self.calls = BrokerCalls(self.remoting, timeout_s=timeout_s)
        self.background = Background()
        self.is_open = False
        self._was_closed = False
        self._heartbeat = heartbeat
        self._heartbeat_slaves = heartbeat_slaves
        self._greeted: set[str] = set()
        self._remarks: dict[str, tuple[str, float]] = {}  # by broker: what it said last, and when that was logged
        self._brokers_changed = asyncio.Event()

    def answer_requests(self, handlers: Mapping[int, RequestHandler]) -> None:
        """Have requests that brokers send to this client answered; one handler a code."""
        self.remoting.request_handlers.update(handlers)

    def open(self) -> None:
        """Start the periodic work. Nothing is sent before a route is known. A closed session stays closed."""
        if self.is_open:
            return
        if self._was_closed:
            raise ClientClosed("closed already: make a new client")
        self.is_open = True
        self.background.start(self._refresh_routes(), "refresh routes")
        self.background.start(every(HEARTBEAT_S, self.send_heartbeats, wake=self._brokers_changed), "heartbeats")

    def require_open(self) -> None:
        """ClientClosed unless the session is open."""
        if not self.is_open:
            raise ClientClosed("not started, or closed already")

    async def close(self, *, producer_group: str | None = None, consumer_group: str | None = None) -> None:
        """End the periodic work, leave the groups, close the connections."""
        if not self.is_open:
            return
        self.is_open = False
        self._was_closed = True
        await self.background.close()
        leaving = (
            self.calls.unregister(address, self.client_id, producer_group=producer_group, consumer_group=consumer_group)
            for address in self._greeted
        )
        for outcome in await asyncio.gather(*leaving, return_exceptions=True):
            if isinstance(outcome, GantryError):  # the broker notices when the connection closes
                logger.info("not unregistered", extra={"event": "not_unregistered", "error": str(outcome)})
        await self.remoting.close()

    def meet_brokers(self) -> None:
        """Greet brokers that became known since the last heartbeat soon, not at the next round."""
        if not self._greeted.issuperset(self._addresses()):
            self._brokers_changed.set()

    async def greet_new_brokers(self) -> None:
        """As meet_brokers, but now: a broker that is to push something must know us before."""
        if not self._greeted.issuperset(self._addresses()):
            await self.send_heartbeats()

    async def send_heartbeats(self) -> None:
        """Tell every broker that matters who is here."""
        addresses = self._addresses()
        heartbeat = self._heartbeat(self.client_id)
        self._greeted.update(addresses)
        sending = (self.calls.heartbeat(address, heartbeat) for address in addresses)
        for address, outcome in zip(addresses, await asyncio.gather(*sending, return_exceptions=True), strict=True):
            if isinstance(outcome, GantryError):
                logger.warning(
                    "heartbeat failed", extra={"event": "heartbeat_failed", "address": address, "error": str(outcome)}
                )
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._note_remark(address, outcome)

    def _note_remark(self, address: str, remark: str | None) -> None:
        """Log what a broker said about our groups; the same again only after REMARK_REPEAT_S."""
        if remark is None:
            self._remarks.pop(address, None)
            return
        told, at = self._remarks.get(address, ("", 0.0))
        now = time.monotonic()
        if remark != told or now - at >= REMARK_REPEAT_S:
            self._remarks[address] = remark, now
            logger.warning(
                "broker warns of a group", extra={"event": "broker_remark", "address": address, "remark": remark}
            )

    def _addresses(self) -> list[str]:
        return self.routes.brokers() if self._heartbeat_slaves else self.routes.masters()

    async def _refresh_routes(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            await self.routes.refresh()
            self.meet_brokers()
