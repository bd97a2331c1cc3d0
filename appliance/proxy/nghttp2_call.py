"""One call of a client on libnghttp2: what handlers use of grpclib's stream, with the same bounds and answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Protocol

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.metadata import Deadline, encode_grpc_message
from grpclib.protocol import Peer

from appliance.proxy.http2 import MESSAGE_SECONDS_MAX, SMALL_BYTES, Codec, Room, checked_size
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

PREFIX_BYTES = 5
Headers = tuple[tuple[bytes, bytes], ...]
HEAD: Headers = ((b":status", b"200"), (b"content-type", b"application/grpc+proto"))
OK = ((b"grpc-status", b"0"),)
CODEC = Codec()


class CallsConnection(Protocol):
    """What a call uses of its connection. session: the compiled module's Http2Session."""

    session: Any
    room: Room
    peer: Peer
    messages_sent: int

    def flush_soon(self) -> None: ...

    def reset_after(self, stream_id: int) -> None: ...

    async def flushed(self) -> None: ...


class Call:
    """One call: what handlers use of grpclib's stream. The request's bytes are taken as they are asked for."""

    def __init__(self, connection: CallsConnection, stream_id: int, headers: list[tuple[str, str]]) -> None:
        self._connection = connection
        self._session = connection.session
        self.id = stream_id
        self.created = time.monotonic()
        self.metadata: Mapping[str, str] = dict(reversed(headers))  # the first of a name
        self.deadline: Deadline | None = None
        self.peer = connection.peer
        self.method: Handler | None = None
        self.task: asyncio.Task[None] | None = None
        self.has_ended = False  # the client sends no more
        self.is_closed = False
        self._came = bytearray()
        self._untaken = 0  # bytes that the client may not send again yet
        self._is_taking = False
        self._more: asyncio.Future[None] | None = None
        self._has_head = False
        self._is_late = False

    # -- what comes ---------------------------------------------------------------------------------------------------

    def came(self, data: bytes) -> None:
        self._came += data
        self._untaken += len(data)
        if self._is_taking:
            self._let_send()
        self._wake()

    def ended(self) -> None:
        self.has_ended = True
        self._wake()

    def closed(self) -> None:
        """Nothing comes any more, and nothing can be sent."""
        self.is_closed = True
        if self._untaken:
            self._session.consume_of_closed(self._untaken)
            self._untaken = 0
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def _let_send(self) -> None:
        if self._untaken and not self.is_closed:
            self._session.consume(self.id, self._untaken)
            self._untaken = 0
            self._connection.flush_soon()

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    async def _until(self, size: int) -> bool:
        """Whether so many bytes came before the client ended."""
        self._is_taking = True
        self._let_send()
        while len(self._came) < size and not self.has_ended:
            self._more = asyncio.get_running_loop().create_future()
            await self._more
        self._is_taking = False
        return len(self._came) >= size

    async def recv_message(self) -> Any:
        """The next message; None: the client has ended."""
        if not await self._until(PREFIX_BYTES):
            if self._came:
                raise GRPCError(Status.INVALID_ARGUMENT, "the message ends before its length")
            return None
        size = checked_size(bytes(self._came[:PREFIX_BYTES]))
        if len(self._came) < PREFIX_BYTES + size:
            await self._whole(PREFIX_BYTES + size)
        data = bytes(self._came[PREFIX_BYTES : PREFIX_BYTES + size])
        del self._came[: PREFIX_BYTES + size]
        assert self.method is not None
        return CODEC.decode(data, self.method.request_type)

    async def _whole(self, size: int) -> None:
        try:
            async with timeout(MESSAGE_SECONDS_MAX):
                if size <= SMALL_BYTES:
                    is_whole = await self._until(size)
                else:
                    room = self._connection.room
                    await room.take(size)
                    try:
                        is_whole = await self._until(size)
                    finally:
                        room.give_back(size)
        except TimeoutError as exc:
            raise GRPCError(Status.DEADLINE_EXCEEDED, f"no whole message in {MESSAGE_SECONDS_MAX:g} s") from exc
        if not is_whole:
            raise GRPCError(Status.INVALID_ARGUMENT, "the message ends before its length")

    def __aiter__(self) -> Call:
        return self

    async def __anext__(self) -> Any:
        message = await self.recv_message()
        if message is None:
            raise StopAsyncIteration
        return message

    # -- what is sent -------------------------------------------------------------------------------------------------

    async def send_message(self, message: Any) -> None:
        """Return once the client's window has let it go; of calls with one answer, at once. StreamTerminatedError when
        the client has gone."""
        self._require_open()
        data = message.SerializeToString()
        if not self._has_head:
            self._has_head = True
            self._session.respond(self.id, HEAD)
        self._session.send(self.id, b"\x00" + len(data).to_bytes(4) + data)
        self._connection.messages_sent += 1
        assert self.method is not None
        if self.method.cardinality is Cardinality.UNARY_UNARY:
            return  # its end follows
        self._connection.flush_soon()
        while self._session.unsent(self.id) and not self.is_closed:
            await self._connection.flushed()
        self._require_open()

    def _require_open(self) -> None:
        if self.is_closed:
            raise StreamTerminatedError("the client has ended the call")

    def finish(self, status: Status = Status.OK, text: str | None = None) -> None:
        """End the answer."""
        if self.is_closed:
            return
        trailers: Headers = OK if status is Status.OK else ((b"grpc-status", str(status.value).encode()),)
        if text is not None:
            trailers = (*trailers, (b"grpc-message", encode_grpc_message(text).encode()))
        if self._has_head:
            self._session.end(self.id, trailers)
        else:
            self._session.respond_only(self.id, (*HEAD, *trailers))
        self._after_end(status)

    def abort(self, http: int, status: Status | None = None, text: str = "") -> None:
        """Refuse what is no call."""
        headers: Headers = ((b":status", str(http).encode()),)
        if status is not None:
            headers += (
                (b"grpc-status", str(status.value).encode()),
                (b"grpc-message", encode_grpc_message(text).encode()),
            )
        self._session.respond_only(self.id, headers)
        self._after_end(Status.UNKNOWN)

    def _after_end(self, status: Status) -> None:
        if status is not Status.OK and not self.has_ended:
            self._connection.reset_after(self.id)
        self._connection.flush_soon()

    # -- its task -----------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Run the handler and end the answer."""
        timer: asyncio.TimerHandle | None = None
        assert self.method is not None
        if self.deadline is not None:
            if not (left_s := self.deadline.time_remaining()):
                self.finish(Status.DEADLINE_EXCEEDED)
                return
            timer = asyncio.get_running_loop().call_later(left_s, self._late)
        try:
            await self.method.func(self)
        except GRPCError as exc:
            self.finish(exc.status, exc.message)
        except asyncio.CancelledError:
            if not self._is_late:
                raise
            self.finish(Status.DEADLINE_EXCEEDED)
        except Exception:
            logger.exception("call failed", extra={"event": "proxy_call_failed"})
            self.finish(Status.UNKNOWN, "Internal Server Error")
        else:
            self.finish()
        finally:
            if timer is not None:
                timer.cancel()

    def _late(self) -> None:
        if self.task is not None and not self.task.done():
            self._is_late = True
            self.task.cancel()
