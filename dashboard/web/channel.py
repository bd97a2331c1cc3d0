"""HTTP on one connection: limits for size and time of head and body, and refusals that reach the client.

Twisted reads a whole body, into a temporary file when it is large, before the application sees the head. Here the head
is checked first: a body may have 64 KiB; a larger one is read only if the head has a valid session or token, up to the
setting's limit. Bodies stay in memory. A refusal is written at once, and further bytes are read and dropped for a
moment: closing a connection with unread bytes would reset it, and the client would not get the response.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from daphne.http_protocol import HTTPFactory
from daphne.http_protocol import WebRequest as DaphneRequest
from OpenSSL import SSL
from twisted.protocols.basic import LineReceiver
from twisted.web.http import HTTPChannel

from dashboard.http.phrases import phrase_of
from dashboard.http.problems import MEDIA_TYPE, problem_document
from dashboard.web import limits
from dashboard.web.hosts import place_over_tls

if TYPE_CHECKING:
    from dashboard.web.client_connection import ClientConnection
    from dashboard.web.server import WebServer

TOO_LARGE = "The body is larger than {} bytes."
NOT_KNOWN = "A body of more than {} bytes needs a session or an API token."


class WebRequest(DaphneRequest):
    """The channel says how large the body may become."""

    def __init__(self, channel: Any, queued: Any = False) -> None:
        super().__init__(channel, queued, parsePOSTFormSubmission=False)  # the application does it, off the loop

    def gotLength(self, length: int | None) -> None:
        self.content = BytesIO()  # never a file: the channel bounds it

    def handleContentChunk(self, data: bytes) -> None:
        if self.channel.takes(self.content.tell() + len(data)):
            self.content.write(data)


class WebFactory(HTTPFactory):
    """Makes channels, and writes no access log."""

    protocol = None  # `build` makes them
    server: WebServer

    def build(self, address: Any, client: ClientConnection, *, is_tls: bool) -> WebChannel:
        channel = WebChannel(client, is_tls=is_tls)
        channel.factory = self
        channel.callLater = self.reactor.callLater
        channel.timeOut = limits.HEAD_SECONDS_MAX
        return channel

    def log(self, request: Any) -> None:
        pass


class WebChannel(HTTPChannel):
    """See the module."""

    maxHeaders = limits.HEADERS_MAX
    totalHeadersSize = limits.HEAD_BYTES_MAX
    requestFactory = WebRequest
    factory: WebFactory

    def __init__(self, client: ClientConnection, *, is_tls: bool = False) -> None:
        super().__init__()
        self._client = client
        self._is_tls = is_tls
        self._body_bytes_max = 0
        self._room_bytes = 0  # reserved for the body that is read
        self._asking: asyncio.Task[None] | None = None  # whether a session is good
        self._held: list[bytes] = []  # what came in meanwhile
        self._is_idle = False  # between an answer and the next head
        self._is_refused = False
        self._drained_seconds = 0.0  # given to a peer that reads an answer slowly
        self._lingered_bytes = 0

    # ---- bytes

    def dataReceived(self, data: bytes) -> None:
        """Unlike Twisted's, this does not begin the time limit anew: a head has its seconds, not each byte of it."""
        if self._is_refused:
            self._linger(len(data))
        else:
            if self._is_idle:
                self._is_idle = False
                self.setTimeout(limits.HEAD_SECONDS_MAX)
            LineReceiver.dataReceived(self, data)

    def lineReceived(self, line: bytes) -> None:
        if not self._is_refused:
            super().lineReceived(line)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(431, f"The head is larger than {limits.HEAD_BYTES_MAX} bytes.")

    def rawDataReceived(self, data: bytes) -> None:
        if self._is_refused:
            self._linger(len(data))
        elif self._asking is not None:
            self._held.append(data)
        else:
            super().rawDataReceived(data)

    def _linger(self, size_bytes: int) -> None:
        self._lingered_bytes += size_bytes
        if self._lingered_bytes > limits.LINGER_BYTES_MAX:
            self.transport.abortConnection()

    # ---- the head

    def allHeadersReceived(self) -> None:
        request = self.requests[-1]
        self.persistent = self.checkPersistence(request, self._version)
        request.requestHeaders.removeHeader(b"Daphne-Root-Path")  # Daphne would trust it; any client can send it
        request.gotLength(self.length)
        if len(self._path) > limits.TARGET_BYTES_MAX:
            self.refuse(414, f"The address is longer than {limits.TARGET_BYTES_MAX} bytes.")
            return
        if not self._path.startswith(b"/"):  # CONNECT's, a proxy's, OPTIONS *: no page has one of these
            self.refuse(400, "An address here begins with a slash.")
            return
        if (place := self._place_over_tls(request)) is not None:
            self.refuse(308, "This address is served over TLS.", more=[("Location", place)])
            return
        if self.length == 0:
            return
        if request.requestHeaders.hasHeader(b"Upgrade"):
            self.refuse(400, "A request that changes the protocol has no body.")
        elif self.length is not None and self.length <= limits.UNKNOWN_BODY_BYTES_MAX:
            self._begin_body(request, self.length)
        else:
            self._judge_large_body(request)

    def _place_over_tls(self, request: WebRequest) -> str | None:
        """Where to send a plain request instead of serving it; None when it is served."""
        if self._is_tls or not self.server.sends_to_tls(self._path):
            return None
        values = request.requestHeaders
        seen = self.server.proxies.seen(self._client.host, 0, "http", lambda name: list(values.getRawHeaders(name, [])))
        if seen.scheme == "https":
            return None
        host = seen.host or b"".join(values.getRawHeaders(b"Host", [])[:1])
        return place_over_tls(host, self._path, self.server.http_address)

    def _judge_large_body(self, request: WebRequest) -> None:
        """A body that is large, or of unknown size."""
        bytes_max, stranger_max = self.server.limits.body_bytes_max, limits.UNKNOWN_BODY_BYTES_MAX
        if self.length is not None and self.length > bytes_max:
            self.refuse(413, TOO_LARGE.format(bytes_max))
        elif self.server.credential_of(request.requestHeaders):
            self._networkProducer.pauseProducing()
            self._asking = asyncio.ensure_future(self._ask(request))
        elif self.length is None:
            self._begin_body(request, stranger_max)
        else:
            self.refuse(413, NOT_KNOWN.format(stranger_max))

    async def _ask(self, request: WebRequest) -> None:
        """Look the session or token up, then go on with what came in meanwhile."""
        is_known = await self.server.is_known(request.requestHeaders, self._client.host)
        self._asking = None
        if self._is_refused:  # its time was over first
            return
        wanted = self.server.limits.body_bytes_max if self.length is None else self.length
        if is_known and not self.server.body_room.take(wanted):
            self.refuse(503, "Other large bodies are being read; try again.", more=[("Retry-After", "5")])
        elif is_known:
            self._room_bytes = wanted
            self._begin_body(request, wanted)
            self._client.is_busy()
        elif self.length is None:
            self._begin_body(request, limits.UNKNOWN_BODY_BYTES_MAX)
        else:
            self.refuse(413, NOT_KNOWN.format(limits.UNKNOWN_BODY_BYTES_MAX))
        self._networkProducer.resumeProducing()
        held, self._held = self._held, []
        for data in held:
            self.dataReceived(data)

    # ---- the body

    def _begin_body(self, request: WebRequest, bytes_max: int) -> None:
        self._body_bytes_max = bytes_max
        self.setTimeout(limits.body_seconds_max(bytes_max))
        expected = request.requestHeaders.getRawHeaders(b"Expect")
        if expected and expected[0].lower() == b"100-continue" and self._version == b"HTTP/1.1":
            self._send100Continue()

    def takes(self, body_bytes: int) -> bool:
        """Whether the body may have grown to this size; if not it is refused here."""
        if self._is_refused:
            return False
        if body_bytes <= self._body_bytes_max:
            return True
        is_stranger = self._body_bytes_max < self.server.limits.body_bytes_max
        self.refuse(413, (NOT_KNOWN if is_stranger else TOO_LARGE).format(self._body_bytes_max))
        return False

    def allContentReceived(self) -> None:
        if self._is_refused:
            return
        self._drained_seconds = 0.0
        self.setTimeout(limits.IDLE_SECONDS_MAX)  # Twisted switches it off now, and on again after the answer
        self._client.is_busy()
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:
        self._give_room_back()
        self._client.waits()
        self._is_idle = True
        super().requestDone(request)
        if not self.persistent:  # it closes when its peer has read the answer, or has had its time
            self.setTimeout(limits.IDLE_SECONDS_MAX)

    def _give_room_back(self) -> None:
        self.server.body_room.give_back(self._room_bytes)
        self._room_bytes = 0

    # ---- the end

    def timeoutConnection(self) -> None:
        if self._is_refused:
            self.transport.abortConnection()
        elif self._waitingForTransport and self._drained_seconds < limits.DRAIN_SECONDS_MAX:
            self._drained_seconds += limits.IDLE_SECONDS_MAX
            self.setTimeout(limits.IDLE_SECONDS_MAX)
        elif self.requests:
            self.refuse(408, "The request took too long to arrive.")
        elif not self.persistent:  # it is closing already
            self.transport.abortConnection()
        else:
            super().timeoutConnection()

    def connectionLost(self, reason: Any) -> None:
        if self._asking is not None:
            self._asking.cancel()
        self._give_room_back()
        if reason.check(SSL.Error):
            self._client.tell("TLS connection failed", "web_tls_failed", why=str(reason.value)[:200])
        super().connectionLost(reason)

    def refuse(self, status: int, sentence: str, *, more: Sequence[tuple[str, str]] = ()) -> None:
        """Answer with an error, or another place, and read no further request. `more`: headers."""
        with self._client.work():
            self._refuse(status, sentence, more)

    def _refuse(self, status: int, sentence: str, more: Sequence[tuple[str, str]]) -> None:
        self._is_refused = True
        self._give_room_back()
        self._client.waits()
        if status >= 400:
            self._client.tell("request refused", "web_request_refused", status=status, why=sentence)
        self.transport.write(refusal(status, sentence, is_api=self._is_api(), more=more))
        self.setRawMode()
        self.setTimeout(None)  # Twisted looks through all timers to make one end sooner
        self.setTimeout(limits.LINGER_SECONDS_MAX)

    def _respondToBadRequestAndDisconnect(self) -> None:  # Twisted's own refusals; it says no reason
        if not self._is_refused:
            is_large = self._receivedHeaderSize > limits.HEAD_BYTES_MAX or self._receivedHeaderCount > self.maxHeaders
            self.refuse(431 if is_large else 400, "The head is too large." if is_large else "This is not HTTP.")

    def _is_api(self) -> bool:
        return bytes(getattr(self, "_path", b"")).startswith(b"/api/")

    @property
    def server(self) -> WebServer:
        return self.factory.server


def refusal(status: int, sentence: str, *, is_api: bool, more: Sequence[tuple[str, str]]) -> bytes:
    """A whole answer that ends the connection."""
    is_problem = is_api and status >= 400
    body = json.dumps(problem_document(status, sentence)) if is_problem else f"{sentence}\n"
    kind = MEDIA_TYPE if is_problem else "text/plain; charset=utf-8"
    headers = [
        ("Content-Type", kind),
        ("Content-Length", str(len(body.encode()))),
        ("Connection", "close"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        *more,
    ]
    lines = [
        f"HTTP/1.1 {status} {phrase_of(status)}",
        *(f"{name}: {value}" for name, value in headers),
        "",
        body,
    ]
    return "\r\n".join(lines).encode()
