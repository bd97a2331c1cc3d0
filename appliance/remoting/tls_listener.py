"""A port for both TLS and plain connections: the client's first byte decides.

A TLS handshake begins with 0x16; a RocketMQ frame with that byte would be longer than 300 MB. The byte is peeked at
(MSG_PEEK) and stays in the socket, which then goes to the event loop's own transports: a plain connection has no extra
cost afterwards. Nothing is sent before the client's first byte (RocketMQ: NettyRemotingServer.HandshakeHandler).

Clients that connect and send nothing, or never finish the handshake, are bounded in time and number: when too many
connections are pending, the oldest is dropped, so silent clients can't keep others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import cast

from appliance.remoting.acceptor import PlainListener, hang_up
from appliance.remoting.tls import ServerTls
from gantrymq.errors import FrameError
from gantrymq.log_limit import LogLimit
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

TLS_HANDSHAKE_BYTE = 0x16
ARRIVING_MAX = 1024  # connections without a first byte, or in the handshake
FIRST_BYTE_SECONDS_MAX = 30.0
HANDSHAKE_SECONDS_MAX = 10.0
SHUTDOWN_SECONDS_MAX = 5.0  # waiting for the peer's close_notify
REFUSED_FRAME_BYTES_MAX = 64 * 1024  # of a plain request that is read only to be refused
REFUSAL_SECONDS_MAX = 5.0
REFUSALS_MAX = 64  # answers to one plain connection


class TlsListener(PlainListener):
    """One port. `make_protocol` is called for each connection that is served. is_enforcing: None is as `tls` says."""

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.Protocol],
        tls: ServerTls,
        *,
        host: str,
        port: int,
        backlog: int,
        is_enforcing: bool | None = None,
    ) -> None:
        super().__init__(make_protocol, host=host, port=port, backlog=backlog)
        self._tls = tls
        self._is_enforcing = tls.is_enforcing if is_enforcing is None else is_enforcing
        self._log_limit = LogLimit()

    def _arrive(self, sock: socket.socket, peer: str) -> None:
        if len(self._arriving) >= ARRIVING_MAX:
            oldest = next(iter(self._arriving))
            hang_up(self._arriving.pop(oldest))  # now: its task ends later, and the next arrival counts before that
        super()._arrive(sock, peer)

    # -- one connection -----------------------------------------------------------------------------------------------

    async def _welcome(self, sock: socket.socket, peer: str) -> None:
        """Hand the connection to TLS or plain, or close it. Raises nothing except cancellation."""
        owns_socket = True  # until the event loop has the socket and closes it
        try:
            async with timeout(FIRST_BYTE_SECONDS_MAX):
                first = await _first_byte(sock)
            if not first:
                return
            owns_socket = False
            await self._hand_over(sock, first[0] == TLS_HANDSHAKE_BYTE, peer)
        except (TimeoutError, OSError) as exc:  # ssl.SSLError is an OSError
            self._warn("connection not made", "tls_connection_not_made", peer, why=_reason(exc, is_silent=owns_socket))
        finally:
            if owns_socket:
                sock.close()

    async def _hand_over(self, sock: socket.socket, is_tls: bool, peer: str) -> None:
        loop = asyncio.get_running_loop()
        if is_tls:
            await loop.connect_accepted_socket(
                self._make_protocol,
                sock,
                ssl=self._tls.context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS_MAX,
            )
        elif self._is_enforcing:
            self._warn("plain connection refused", "plain_connection_refused", peer)
            transport, refusal = await loop.connect_accepted_socket(PlainRefusal, sock)
            try:
                with contextlib.suppress(TimeoutError):
                    async with timeout(REFUSAL_SECONDS_MAX):
                        await refusal.closed
            finally:
                transport.abort()
        else:
            await loop.connect_accepted_socket(self._make_protocol, sock)

    def _warn(self, text: str, event: str, peer: str, **facts: str) -> None:
        """A line about a peer, a few of a kind only."""
        left_out = self._log_limit.left_out(event, peer.rpartition(":")[0])
        if left_out is not None:
            facts |= {"event": event, "peer": peer}
            logger.warning(text, extra=facts | ({"left_out": left_out} if left_out else {}))


class PlainRefusal(asyncio.Protocol):
    """Tells a plain client of a TLS-only port why it is refused, in responses that it can read.

    Every request is answered, not only the first: a client's background tasks share its connection, and the second
    request would otherwise end with a lost connection and no reason. The listener closes it after REFUSAL_SECONDS_MAX.
    """

    def __init__(self) -> None:
        self._protocol = RemotingProtocol(frame_bytes_max=REFUSED_FRAME_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._answer_count = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if self._answer_count >= REFUSALS_MAX:
            return
        self._protocol.receive_data(data)
        try:
            while (request := self._protocol.next_command()) is not None:
                self._refuse(request)
        except FrameError:
            self._transport.abort()

    def _refuse(self, request: RemotingCommand) -> None:
        assert self._transport is not None
        self._answer_count += 1
        if self._answer_count > REFUSALS_MAX:
            return
        if not request.is_oneway:
            remark = "this port takes TLS connections only (tls.server.mode=enforcing): connect with TLS"
            self._transport.write(request.reply(ResponseCode.NO_PERMISSION, remark).encode())
        if self._answer_count == REFUSALS_MAX:
            # close() with unread bytes would reset the connection, and the peer would lose the answers.
            self._transport.write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        _set(self.closed)


async def _first_byte(sock: socket.socket) -> bytes:
    """Return the first byte, which stays in the socket; empty when the peer closed."""
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            return sock.recv(1, socket.MSG_PEEK)
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(sock, _set, readable)
        try:
            await readable
        finally:
            loop.remove_reader(sock)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _reason(exc: Exception, *, is_silent: bool) -> str:
    if isinstance(exc, TimeoutError) and is_silent:
        return f"sent nothing within {FIRST_BYTE_SECONDS_MAX:g} s"
    if isinstance(exc, ssl.SSLError):
        return f"TLS handshake failed: {exc.reason or exc}"
    return f"{type(exc).__name__}: {exc}"
