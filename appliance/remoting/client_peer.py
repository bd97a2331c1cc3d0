"""A client as handlers and lanes see it: who it is, what is written to it, and the end of its connection.

Answers are collected and written together at the end of a round (or of the read event, when the fast path served all of
it). How its requests are read is ServerConnection's business, which is the one class made of this.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from appliance.remoting.typed_request import TypedRequest
from gantrymq.errors import ConnectError, RequestTimeout
from gantrymq.remoting.command import RemotingCommand
from gantrymq.timeouts import timeout

if TYPE_CHECKING:
    from appliance.remoting.server import RemotingServer

WRITE_BUFFER_HIGH_BYTES = 4 * 1024 * 1024  # unless settings say otherwise
WRITE_BUFFER_MAX_BYTES = 64 * 1024 * 1024  # above it (pushes to a peer that never reads) the connection is closed
AWAITED_MAX = 64  # requests to one client that await its answer (RocketMQ: serverAsyncSemaphoreValue)
COPIED_BYTES_MAX = 8 * 1024  # smaller answers are joined, larger ones are written without a copy


class ClientPeer:
    """Lives on the loop thread; handlers get it with each request.

    remote_text: "ip:port". born_host: packed address as records store it (8 or 20 bytes). client: state that the
    process keeps for this peer; access: the same for the access gate. local_host: the address of this end.
    is_watched: by the compiled reader. may_hold_unsent: whether the transport got bytes since `holds_unsent` was False.
    """

    def __init__(self, server: RemotingServer) -> None:
        self._server = server
        self._lanes = server.lanes
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes | memoryview] = []
        self._client_requests = ClientRequests()
        self.reference = weakref.ref(self)
        self.remote_address: tuple[str, int] = ("", 0)
        self.remote_text = ""
        self.born_host = b""
        self.local_host = ""
        self.has_tls = False
        self.client: Any = None
        self.access: Any = None
        self._is_discarding = False  # closed by this side: requests that it still holds are dropped
        self._is_served_now = False  # by the fast path, which is followed by a flush
        self._descriptor = -1  # for the compiled reader; -1: it can't have this one
        self.is_watched = False  # by that reader, which then reads in the place of the transport
        self.may_hold_unsent = False
        self._close_reason = "closed by the peer"

    @property
    def is_gone(self) -> bool:
        return self._transport is None

    @property
    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    @property
    def is_congested(self) -> bool:
        """Whether the write buffer is so full that pushes to this peer should be left out."""
        return self._transport is not None and self._transport.get_write_buffer_size() > WRITE_BUFFER_HIGH_BYTES

    # -- for handlers -------------------------------------------------------------------------------------------------

    def write(self, frame: bytes) -> None:
        """Add a whole frame to the bytes that this round writes."""
        if not self._out and not self._is_served_now:
            self._lanes.mark_dirty(self)
        self._out.append(frame)

    def write_parts(self, parts: Sequence[bytes | memoryview]) -> None:
        """Add one frame given in parts; views must stay valid until they are sent."""
        if not self._out and not self._is_served_now:
            self._lanes.mark_dirty(self)
        self._out.extend(parts)

    def send(self, data: RemotingCommand | bytes) -> None:
        """Send a command or a whole frame, from anywhere on the loop."""
        self.write(data if isinstance(data, bytes) else data.encode())

    def reply(self, request: RemotingCommand | TypedRequest, response: RemotingCommand) -> None:
        """Answer a request whose response was delayed; one-way requests get none."""
        if not request.is_oneway:
            self.write(response.encode())

    def invoke_oneway(self, request: RemotingCommand) -> None:
        """Push a one-way request to the client."""
        self.write(request.mark_oneway().encode())

    async def invoke(self, request: RemotingCommand, *, timeout_s: float) -> RemotingCommand:
        """Send the client a request and return its response. Raises RequestTimeout or ConnectError."""
        return await self._client_requests.invoke(self, request, timeout_s)

    def close(self, reason: str) -> None:
        """Close when all answers so far are written; `reason` goes to the log."""
        self._close_reason = reason
        self._is_discarding = True
        if self._transport is not None:
            self._leave_reader()
            self.flush()
            self._transport.close()

    def reading_failed(self, error: Exception) -> None:
        """Close, since a bug kept this connection from being served: read, or written to."""
        context = {"message": "a connection can't be served", "exception": error, "protocol": self}
        asyncio.get_running_loop().call_exception_handler(context)
        self._close_reason = f"{type(error).__name__}: {error}"
        self._is_discarding = True
        self._leave_reader()
        if self._transport is not None:
            self._transport.abort()

    # -- for the lanes ------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the collected answers to the socket."""
        out, transport = self._out, self._transport
        if not out:
            return
        self._out = []
        if transport is None or transport.is_closing():
            return
        if len(out) == 1:
            transport.write(out[0])
        else:
            is_large = len(out) == 2 and len(out[1]) >= COPIED_BYTES_MAX  # the answer to a pull: nothing to join
            transport.writelines(out if is_large else _coalesced(out))
        self._note_written(transport)

    def write_rest(self, parts: Sequence[bytes | memoryview]) -> None:
        """Have the transport write what the socket did not take of answers: before all that comes later."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.writelines(parts)
            self._note_written(transport)

    def holds_unsent(self) -> bool:
        """Whether the transport has bytes that are not in the socket, so that others must queue up behind them."""
        self.may_hold_unsent = self._transport is None or self._transport.get_write_buffer_size() > 0
        return self.may_hold_unsent

    def _note_written(self, transport: asyncio.Transport) -> None:
        self.may_hold_unsent = True
        if transport.get_write_buffer_size() > WRITE_BUFFER_MAX_BYTES:
            self._close_reason = "does not read its answers"
            self._is_discarding = True
            self._leave_reader()
            transport.abort()

    def _leave_reader(self) -> None:
        if self.is_watched:
            self.is_watched = False
            assert self._server.reader is not None
            self._server.reader.unwatch(self._descriptor)


def _coalesced(parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Join runs of small parts and leave large ones alone: copying a few KiB is cheaper than one more buffer."""
    joined: list[bytes | memoryview] = []
    run: list[bytes | memoryview] = []
    for part in parts:
        if len(part) < COPIED_BYTES_MAX:
            run.append(part)
            continue
        if run:
            joined.append(b"".join(run))
            run = []
        joined.append(part)
    if run:
        joined.append(b"".join(run))
    return joined


class ClientRequests:
    """The requests to one client that await its answer, by opaque."""

    def __init__(self) -> None:
        self._awaited: dict[int, asyncio.Future[RemotingCommand]] = {}

    async def invoke(self, client: ClientPeer, request: RemotingCommand, timeout_s: float) -> RemotingCommand:
        """Send the client a request and return its response. Raises RequestTimeout or ConnectError."""
        if client.is_closing:
            raise ConnectError(client.remote_text, "connection is closed")
        if len(self._awaited) >= AWAITED_MAX:
            raise ConnectError(client.remote_text, f"{AWAITED_MAX} requests already await this client's answer")
        future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
        self._awaited[request.opaque] = future
        client.send(request)
        try:
            async with timeout(timeout_s):
                return await future
        except TimeoutError as exc:
            raise RequestTimeout(client.remote_text, request.code, timeout_s) from exc
        finally:
            self._awaited.pop(request.opaque, None)

    def answered(self, response: RemotingCommand) -> bool:
        """Hand the response to who awaits it. False when no request has its opaque."""
        future = self._awaited.get(response.opaque)
        if future is None:
            return False
        if not future.done():
            future.set_result(response)
        return True

    def connection_lost(self, remote_text: str, reason: str) -> None:
        """Fail all that is awaited."""
        for future in self._awaited.values():
            if not future.done():
                future.set_exception(ConnectError(remote_text, f"connection closed ({reason})"))
        self._awaited.clear()
