"""The dashboard's listener: Daphne's server, with the limits of this package in front.

Daphne runs the application and keeps its requests and websockets; what it would take from Twisted as it is (channels,
bodies in files, ports) comes from this room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from daphne.server import Server, reactor
from twisted.internet.error import CannotListenError
from twisted.logger import LogLevel, formatEvent, globalLogBeginner
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.web.http_headers import Headers

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.http.client_address import client_address
from dashboard.web import credentials, limits
from dashboard.web.certificate import Certificate
from dashboard.web.channel import WebFactory
from dashboard.web.client_connection import ClientConnectionFactory
from dashboard.web.hosts import ONLY_FOR_PROGRAMS
from dashboard.web.limits import BodyRoom, WebLimits
from dashboard.web.live import LiveFactory
from dashboard.web.proxies import PROXY_HEADERS, TrustedProxies
from dashboard.web.strangers import Strangers
from gantrymq.log_limit import LogLimit

logger = logging.getLogger(__name__)

BACKLOG = 512
ACCEPT_TROUBLES = ("EMFILE encountered", "Could not accept")  # Twisted calls them information


class WebServer(Server):
    """`run` until the reactor is stopped; `ready` is called once the port listens."""

    def __init__(self, application: Any, config: ApplianceConfig, ready: Callable[[], None]) -> None:
        self._log_limit = LogLimit()
        self._strangers = Strangers(application, self._log_limit)
        super().__init__(
            application=self._strangers,
            endpoints=[config.http_address],  # Daphne wants one; the port below is what listens
            signal_handlers=False,
            server_name="GantryMQ",
            verbosity=0,
            ready_callable=ready,
            request_buffer_size=64 * 1024,
            websocket_handshake_timeout=limits.HANDSHAKE_SECONDS_MAX,
            websocket_connect_timeout=limits.HANDSHAKE_SECONDS_MAX,  # else Daphne's own 20 s end it first
            websocket_max_message_size=limits.WEBSOCKET_BYTES_MAX,
            websocket_max_frame_size=limits.WEBSOCKET_BYTES_MAX,
        )
        self._config = config
        self._port: Any = None
        self._certificate = Certificate(config.tls_cert, config.tls_key) if config.http_tls else None
        self.proxies = TrustedProxies(config.trusted_networks, config.proxy_headers)
        self.limits = WebLimits.of(config)
        self.body_room = BodyRoom(max(limits.BODIES_BYTES_MAX, self.limits.body_bytes_max))

    def run(self) -> bool:
        """Listen and serve. False when the port can't be opened."""
        self.connections: dict[Any, Any] = {}
        self.http_factory = WebFactory(self)
        self.ws_factory = LiveFactory(self, server=self.server_name)
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=self.ping_timeout,
            allowNullOrigin=True,  # the application looks at the origin
            openHandshakeTimeout=self.websocket_handshake_timeout,
            maxMessagePayloadSize=self.websocket_max_message_size,
            maxFramePayloadSize=self.websocket_max_frame_size,
        )
        limit_log_lines()
        globalLogBeginner.beginLoggingTo([self._observe], redirectStandardIO=False, discardBuffer=True)
        asyncio.set_event_loop(reactor._asyncioEventloop)
        factory = ClientConnectionFactory(
            self.http_factory, self.limits, self.proxies, self._certificate, self._log_limit
        )
        try:
            self._port = reactor.listenTCP(self._config.http_port, factory, BACKLOG, self._config.bind)
        except CannotListenError as exc:
            logger.error("port not opened", extra={"event": "web_port_not_opened", "why": str(exc)})
            return False
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        reactor.addSystemEventTrigger("before", "shutdown", self.kill_all_applications)
        self.ready_callable()
        reactor.run(installSignalHandlers=False)
        return True

    async def stop_listening(self) -> None:
        """Take no new connections; those that are open end with the reactor."""
        stopped = self._port.stopListening()
        if stopped is not None:
            await stopped.asFuture(asyncio.get_running_loop())

    def kill_all_applications(self) -> Any:
        """Daphne's, without the requests that have no application yet: they would keep it from ending the others."""
        self.connections = {one: facts for one, facts in self.connections.items() if "application_instance" in facts}
        return super().kill_all_applications()

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Give the application the request as the browser sent it, and no proxy's headers."""
        headers = scope["headers"]
        is_tls = isinstance(protocol.transport, TLSMemoryBIOProtocol)
        address, port = scope["client"]
        scheme = "https" if is_tls else "http"
        seen = self.proxies.seen(address, port, scheme, lambda name: _values(headers, name.lower()))
        scope["client"] = [seen.address, seen.port]
        scope["scheme"] = seen.scheme if scope["type"] == "http" else {"http": "ws", "https": "wss"}[seen.scheme]
        kept = [(name, value) for name, value in headers if name not in PROXY_HEADERS]
        if seen.host is not None:
            kept = [(name, value) for name, value in kept if name != b"host"] + [(b"host", seen.host)]
        scope["headers"] = kept
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Daphne's. A frame for a tab that does not read waits, and the socket merges those that come after it."""
        if message["type"] == "websocket.send":
            await protocol.room()
        await super().handle_reply(protocol, message)

    # ---- what channels ask

    @property
    def http_address(self) -> str:
        return self._config.http_address

    def sends_to_tls(self, target: bytes) -> bool:
        """Whether a plain request for this target is answered with its place over TLS, and with nothing else.

        In permissive mode programs may go on without TLS; people may not: their cookies would be read on the way.
        """
        if self._certificate is None:
            return False
        return self._config.tls_mode == "enforcing" or not target.startswith(ONLY_FOR_PROGRAMS)

    def credential_of(self, headers: Headers) -> str:
        """The session or token of a head, "" without one."""
        return credentials.credential_of(lambda name: _first(headers, name))

    async def is_known(self, headers: Headers, host: str) -> bool:
        """Whether the head's session or token is good. host: the peer's address."""
        seen = self.proxies.seen(host, 0, "http", lambda name: list(headers.getRawHeaders(name, [])))
        return await self._strangers.is_known(self.credential_of(headers), client_address({"client": [seen.address]}))

    def _observe(self, event: Any) -> None:
        """What Twisted reports as an error: a port that can't accept, say. A few lines of a kind."""
        text = str(event.get("log_format") or "")
        if event.get("log_level", LogLevel.info) < LogLevel.error and not text.startswith(ACCEPT_TROUBLES):
            return
        left_out = self._log_limit.left_out(f"{event.get('log_namespace')} {text}", "")
        if left_out is not None:
            failure = event.get("log_failure")
            why = failure.getErrorMessage() if failure is not None else formatEvent(event)
            logger.error("twisted reports", extra={"event": "web_server_error", "why": why[:500], "left_out": left_out})


def _first(headers: Headers, name: bytes) -> str:
    values = headers.getRawHeaders(name)
    return values[0].decode("latin-1") if values else ""


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for header, value in headers if header == name]


LOGGERS = ("django.request", "django.security.csrf")


class PeerLogFilter(logging.Filter):
    """Limits Django's log lines about single requests: a few of a kind for each address, then only their number.

    Any client can request missing pages; a line for each would push all others out of the log. Server errors are
    always logged.
    """

    def __init__(self, limit: LogLimit | None = None) -> None:
        super().__init__()
        self._limit = limit or LogLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        if request is None or record.levelno >= logging.ERROR:
            return True
        kind = f"{record.name} {getattr(record, 'status_code', '')}"
        left_out = self._limit.left_out(kind, request.META.get("REMOTE_ADDR") or "unknown")
        if left_out:
            record.left_out = left_out
        return left_out is not None


def limit_log_lines() -> None:
    """Have Django's loggers pass through it."""
    lines = PeerLogFilter()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(lines)
