"""One connection of a client: grpclib's protocol with bounds.

Bounded are the size of a message and of headers, streams, the time in which a message must come in, what is held of
messages that are not whole yet, frames without a request (`control_frames`), and what is taken at a time (`intake`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, cast

from grpclib.config import Configuration
from grpclib.const import Handler, Status
from grpclib.encoding.proto import ProtoCodec
from grpclib.events import _DispatchServerEvents
from grpclib.exceptions import GRPCError
from grpclib.protocol import Connection, EventsProcessor, H2Protocol, Stream
from grpclib.server import Handler as ServerHandler
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    PingReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from appliance.proxy.control_frames import ControlFrames, Frame
from appliance.proxy.intake import Intake
from gantrymq.timeouts import timeout

MESSAGE_BYTES_MAX = 5 << 20  # a body of 4 MiB, its properties, and protobuf's own bytes
SMALL_BYTES = 64 << 10  # messages up to this size need no room
ROOM_BYTES = 128 << 20  # of all messages above it that are coming in, in this process
MESSAGE_SECONDS_MAX = 30.0  # from a message's first byte to its last
HEADERS_BYTES_MAX = 32 << 10
STREAMS_MAX = 1024  # of one connection at a time: a parked receive is one
WINDOW_BYTES = 1 << 20  # that a connection may send, and no stream has asked for yet
SHUT_OUT_S = 3.0

CONFIGURATION = Configuration(
    http2_connection_window_size=WINDOW_BYTES, http2_stream_window_size=WINDOW_BYTES
).__for_server__()
H2_CONFIGURATION = H2Configuration(
    client_side=False,
    header_encoding="ascii",
    validate_inbound_headers=True,
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)  # what the proxy sends is constant or encoded


class Codec(ProtoCodec):
    """Protobuf; a message that is none is the client's fault."""

    def decode(self, data: bytes, message_type: Any) -> Any:
        try:
            return super().decode(data, message_type)
        except Exception as exc:  # protobuf's DecodeError differs between its implementations
            raise GRPCError(Status.INVALID_ARGUMENT, f"the message is no {message_type.DESCRIPTOR.name}") from exc


class Room:
    """Bytes for large messages that are coming in; who comes later waits."""

    def __init__(self, bytes_max: int = ROOM_BYTES) -> None:
        self._left = bytes_max
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> None:
        if not self._waiting and size <= self._left:
            self._left -= size
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, mine))
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.give_back(size)
            raise

    def give_back(self, size: int) -> None:
        self._left += size
        while self._waiting:
            wanted, waiter = self._waiting[0]
            if waiter.done():
                self._waiting.popleft()
            elif wanted <= self._left:
                self._waiting.popleft()
                self._left -= wanted
                waiter.set_result(None)
            else:
                return


class BoundedStream(Stream):
    """A stream whose messages have a largest size, and a time to come in."""

    room: Room
    _is_inside = False  # grpclib asks for a prefix, then for the message behind it

    async def recv_data(self, size: int) -> bytes:
        try:
            if not self._is_inside:
                prefix = await super().recv_data(size)
                if prefix:
                    checked_size(prefix)
                self._is_inside = bool(prefix)
                return prefix
            self._is_inside = False
            return await self._message(size)
        except AssertionError as exc:  # grpclib's, for a stream that ends inside a message
            raise GRPCError(Status.INVALID_ARGUMENT, "the message ends before its length") from exc
        except TimeoutError as exc:
            raise GRPCError(Status.DEADLINE_EXCEEDED, f"no whole message in {MESSAGE_SECONDS_MAX:g} s") from exc

    async def _message(self, size: int) -> bytes:
        async with timeout(MESSAGE_SECONDS_MAX):
            if size <= SMALL_BYTES:
                return await super().recv_data(size)
            await self.room.take(size)
            try:
                return await super().recv_data(size)
            finally:
                self.room.give_back(size)


def checked_size(prefix: bytes) -> int:
    """The size of the message behind this prefix, if it can be taken. GRPCError."""
    if prefix[0]:
        raise GRPCError(Status.UNIMPLEMENTED, "compressed messages are not taken: send them as they are")
    if (size := int.from_bytes(prefix[1:])) > MESSAGE_BYTES_MAX:
        raise GRPCError(Status.RESOURCE_EXHAUSTED, f"a message of {size} bytes: {MESSAGE_BYTES_MAX} at most")
    return size


class BoundedConnection(Connection):
    """A connection that makes such streams."""

    room: Room

    def create_stream(self, *, stream_id: int | None = None, wrapper: Any = None) -> Stream:
        stream = BoundedStream(self, self._connection, self._transport, stream_id=stream_id, wrapper=wrapper)
        stream.room = self.room
        return stream


class TolerantEvents(EventsProcessor):
    """What HTTP/2 adds later, and what is no business of a server, changes nothing."""

    def process(self, event: Event) -> None:
        if type(event) in getattr(self, "processors", ()):
            super().process(event)


class ClientConnection(H2Protocol):
    """One connection. `last_data_at`: monotonic seconds."""

    def __init__(self, mapping: Mapping[str, Handler], room: Room, ended: Callable[[Any], object]) -> None:
        handler = ServerHandler(dict(mapping), Codec(), None, _DispatchServerEvents())
        super().__init__(handler, CONFIGURATION, H2_CONFIGURATION)
        self._room = room
        self._ended = ended
        self.last_data_at = time.monotonic()
        self._frames = ControlFrames(self.last_data_at)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._h2 = h2 = H2Connection(config=self.h2_config)
        h2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS_MAX,
                SettingCodes.MAX_HEADER_LIST_SIZE: HEADERS_BYTES_MAX,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
            },
        )
        h2.decoder.max_header_list_size = HEADERS_BYTES_MAX
        h2.initiate_connection()
        h2.increment_flow_control_window(WINDOW_BYTES - 65_535)
        self.transport = cast(asyncio.Transport, transport)
        self._intake = Intake(self.transport, self._take)
        connection = BoundedConnection(h2, self.transport, config=self.config)
        connection.room = self._room
        self.connection = connection
        connection.flush()
        self.processor = TolerantEvents(self.handler, connection)

    @property
    def has_streams(self) -> bool:
        return bool(self.processor.streams)

    def data_received(self, data: bytes) -> None:
        self.last_data_at = time.monotonic()
        self._intake.add(data)

    def _take(self, data: bytes) -> int:
        try:
            events = self.connection.feed(data)
        except ProtocolError:
            self._close_after_flush("protocol error")
            return 0
        now_s = time.monotonic()
        for event in events:
            if not self._allows(event, now_s):
                self._shut_out()
                return 0
            self.processor.process(event)
        if not self.connection.is_closing():
            self.connection.flush()
        return len(events)

    def _allows(self, event: Event, now_s: float) -> bool:
        frame = _frame_of(event)
        if frame is None:
            return True
        stream = self.processor.streams.get(getattr(event, "stream_id", None) or 0)
        age_s = now_s - stream.created if stream is not None and stream.created is not None else 0.0
        return self._frames.allows(frame, now_s, sent=self.connection.messages_sent, age_s=age_s)

    def _shut_out(self) -> None:
        """Read no more of a connection that abuses the protocol, and end it after a while: one that were ended at once
        would be back at once."""
        self._intake.end()
        asyncio.get_running_loop().call_later(SHUT_OUT_S, self.end, ErrorCodes.ENHANCE_YOUR_CALM)

    async def wait_closed(self) -> None:
        """Until its calls have ended."""
        await cast(ServerHandler, self.handler).wait_closed()

    def end(self, why: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Tell the client that the connection ends, and end it."""
        if not self.connection.is_closing():
            self._h2.close_connection(error_code=why)
            self._close_after_flush("connection ended")

    def _close_after_flush(self, reason: str) -> None:
        if not self.connection.is_closing():
            self.connection.flush()  # h2 has put a GOAWAY with the reason there
        self._intake.end()
        self.processor.close(reason)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._intake.end()
        super().connection_lost(exc)
        self._ended(self)


def _frame_of(event: Event) -> Frame | None:
    """What an event tells of; None: a request, or data of one."""
    if isinstance(event, RequestReceived | StreamEnded | TrailersReceived):
        return None
    if isinstance(event, DataReceived):
        return None if event.data or event.stream_ended is not None else Frame.OTHER
    if isinstance(event, WindowUpdated):
        return Frame.WINDOW
    if isinstance(event, PingReceived):
        return Frame.PING
    return Frame.RESET if isinstance(event, StreamReset) else Frame.OTHER
