"""One connection of a client on libnghttp2: what `http2` does with grpclib, with the same bounds and the same answers.

Used where the compiled module is and libnghttp2 can be opened; the proxy's tests run with both.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

from grpclib.const import Handler, Status
from grpclib.encoding.base import GRPC_CONTENT_TYPE
from grpclib.metadata import Deadline
from grpclib.protocol import Peer
from h2.errors import ErrorCodes

from appliance.fast_path import loader
from appliance.proxy.control_frames import ControlFrames, Frame
from appliance.proxy.http2 import HEADERS_BYTES_MAX, SHUT_OUT_S, STREAMS_MAX, WINDOW_BYTES, Room
from appliance.proxy.intake import Intake
from appliance.proxy.nghttp2_call import Call

logger = logging.getLogger(__name__)

FRAMES = {3: Frame.RESET, 6: Frame.PING, 8: Frame.WINDOW}
GOAWAY_FRAME = 7


def compiled_http2() -> tuple[ModuleType | None, str]:
    """The compiled module, when it can serve HTTP/2 here; else why it can't."""
    module = loader.load()
    if module is None:
        return None, loader.status().why
    try:
        module.open_http2()
    except OSError as exc:
        return None, f"libnghttp2 is missing (Debian: libnghttp2-14): {exc}"
    return module, ""


class Nghttp2Connection(asyncio.Protocol):
    """One connection. `last_data_at`: monotonic seconds."""

    def __init__(
        self, compiled: ModuleType, mapping: Mapping[str, Handler], room: Room, ended: Callable[[Any], object]
    ) -> None:
        self.room = room
        self.messages_sent = 0
        self.last_data_at = time.monotonic()
        self._compiled = compiled
        self._mapping = mapping
        self._ended = ended
        self._frames = ControlFrames(self.last_data_at)
        self._calls: dict[int, Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._resets: list[int] = []
        self._is_flushing = self._is_full = False
        self._flushed: asyncio.Future[None] | None = None
        self._kinds: dict[int, Callable[..., None]] = {
            compiled.REQUEST_CAME: self._request_came,
            compiled.DATA_CAME: self._data_came,
            compiled.STREAM_ENDED: self._stream_ended,
            compiled.STREAM_CLOSED: self._stream_closed,
            compiled.FRAME_CAME: self._frame_came,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if (sock := transport.get_extra_info("socket")) is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer = Peer(self.transport)
        self.session = self._compiled.Http2Session(STREAMS_MAX, WINDOW_BYTES, HEADERS_BYTES_MAX)
        self._intake = Intake(self.transport, self._take)
        self._flush()

    @property
    def has_streams(self) -> bool:
        return bool(self._calls)

    # -- what comes ---------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self.last_data_at = time.monotonic()
        self._intake.add(data)

    def _take(self, data: bytes) -> int:
        try:
            events = self.session.receive(data)
        except self._compiled.Http2Flood:
            self.end(ErrorCodes.ENHANCE_YOUR_CALM)
            return 0
        except self._compiled.Http2Error:
            self.end(ErrorCodes.PROTOCOL_ERROR)
            return 0
        for kind, stream_id, *more in events:
            self._kinds[kind](stream_id, *more)
            if self.transport.is_closing():
                return 0
        self.flush_soon()
        return len(events)

    def _frame_came(self, stream_id: int, kind: int) -> None:
        call = self._calls.get(stream_id)
        now_s = time.monotonic()
        age_s = now_s - call.created if call is not None else 0.0
        if not self._frames.allows(FRAMES.get(kind, Frame.OTHER), now_s, sent=self.messages_sent, age_s=age_s):
            # Read no more, and end it after a while: one that were ended at once would be back at once.
            self._intake.end()
            asyncio.get_running_loop().call_later(SHUT_OUT_S, self.end, ErrorCodes.ENHANCE_YOUR_CALM)
        elif kind == GOAWAY_FRAME:
            self.end()

    def _request_came(self, stream_id: int, headers: list[tuple[str, str]]) -> None:
        call = self._calls[stream_id] = Call(self, stream_id, headers)
        named = call.metadata
        base, _, sub_type = named.get("content-type", "").partition("+")
        if named.get(":method") != "POST":
            call.abort(405)
        elif "content-type" not in named:
            call.abort(415, Status.UNKNOWN, "Missing content-type header")
        elif base != GRPC_CONTENT_TYPE or sub_type not in ("", "proto"):
            call.abort(415, Status.UNKNOWN, "Unacceptable content-type header")
        elif named.get("te") != "trailers":
            call.abort(400, Status.UNKNOWN, 'Required "te: trailers" header is missing')
        elif (method := self._mapping.get(named[":path"])) is None:
            call.abort(200, Status.UNIMPLEMENTED, "Method not found")
        else:
            self._begin(call, method, headers)

    def _begin(self, call: Call, method: Handler, headers: list[tuple[str, str]]) -> None:
        try:
            call.deadline = Deadline.from_headers(headers) if "grpc-timeout" in call.metadata else None
        except ValueError:
            call.abort(200, Status.UNKNOWN, "Invalid grpc-timeout header")
            return
        call.method = method
        call.task = task = asyncio.get_running_loop().create_task(call.serve())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _data_came(self, stream_id: int, data: bytes) -> None:
        call = self._calls.get(stream_id)
        if call is not None:
            call.came(data)
        else:
            self.session.consume_of_closed(len(data))

    def _stream_ended(self, stream_id: int) -> None:
        call = self._calls.get(stream_id)
        if call is not None:
            call.ended()

    def _stream_closed(self, stream_id: int, code: int) -> None:
        call = self._calls.pop(stream_id, None)
        if call is not None:
            call.closed()

    # -- what is sent -------------------------------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Send what there is, once others of this turn have had their say."""
        if not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if self._is_full or self.transport.is_closing():
            return
        try:
            data = self._to_send()
        except self._compiled.Http2Error as exc:
            logger.warning("connection ended: %s", exc, extra={"event": "proxy_connection_failed"})
            self._close()
            return
        if data:
            self.transport.write(data)
        for _, stream_id, *more in self.session.closed():
            self._stream_closed(stream_id, *more)
        if self._flushed is not None:
            self._flushed.set_result(None)
            self._flushed = None

    def _to_send(self) -> bytes | bytearray:
        data: bytes | bytearray = self.session.to_send()
        if self._resets:
            waiting = [stream_id for stream_id in self._resets if self.session.unsent(stream_id)]
            for stream_id in self._resets:
                if stream_id not in waiting and stream_id in self._calls:
                    self.session.reset(stream_id, ErrorCodes.NO_ERROR)
            self._resets = waiting
            data += self.session.to_send()
        return data

    def reset_after(self, stream_id: int) -> None:
        """Have the client send no more of a call, behind the answer."""
        self._resets.append(stream_id)

    async def flushed(self) -> None:
        """Wait until something was sent again."""
        if self._flushed is None:
            self._flushed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._flushed)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._flush()

    # -- its end ------------------------------------------------------------------------------------------------------

    def end(self, why: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Tell the client that the connection ends, and end it."""
        if self.transport.is_closing():
            return
        with contextlib.suppress(self._compiled.Http2Error):
            self.session.terminate(why)
            self._is_full = False
            self._flush()
        self._close()

    def _close(self) -> None:
        self._intake.end()
        self.transport.close()
        self._cancel()

    def _cancel(self) -> None:
        for call in self._calls.values():
            call.is_closed = True
        self._calls.clear()
        for task in list(self._tasks):
            task.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._intake.end()
        self._cancel()
        self._ended(self)

    async def wait_closed(self) -> None:
        """Until its calls have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks)
