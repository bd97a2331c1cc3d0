"""One connection's bytes to commands, with no socket in sight.

The receiver hands over whatever arrived and takes commands until None comes back. A frame that is still incomplete is
kept as a list of chunks and joined once, so a body of 16 MiB that arrives in pieces is copied once, not once a piece.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol

from gantrymq.errors import FrameError
from gantrymq.remoting.command import RemotingCommand

FRAME_BYTES_MAX = 16 * 1024 * 1024  # RocketMQ: com.rocketmq.remoting.frameMaxLength; the length field counts
HEADER_BYTES_MAX = 0xFFFFFF  # what the header word can say

_LENGTH = struct.Struct(">i")
_HEADER_WORD = struct.Struct(">I")
_HEADER_LENGTH_MASK = 0xFFFFFF
_TLS_RECORDS = (0x1503, 0x1603)  # how a TLS alert and a TLS handshake begin
_OTHER_SERVERS = {b"HTTP": "an HTTP server", b"-ERR": "a Redis server", b"SSH-": "an SSH server"}  # how they begin


class FrameTaker(Protocol):
    """Serves frames from `start` on; returns where the first byte is that it leaves. count: of the last call."""

    @property
    def count(self) -> int: ...
    def serve(self, buffer: bytes, start: int, count_max: int, connection: Any) -> int: ...


class RemotingProtocol:
    """Splits a byte stream into commands. After FrameError only closing the connection is left.

    header_bytes_max: of one frame. Servers take less than the protocol allows, for a header is much work for its bytes.
    decode: reads one frame, (buffer, start of the header word, end) -> command; a server may know quicker ways for
    some.
    """

    __slots__ = (
        "_buffer",
        "_chunk_bytes",
        "_chunks",
        "_decode",
        "_frame_bytes_max",
        "_header_bytes_max",
        "_missing",
        "_position",
    )

    def __init__(
        self,
        *,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        header_bytes_max: int = HEADER_BYTES_MAX,
        decode: Callable[[bytes, int, int], Any] = RemotingCommand.decode_at,
    ) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._header_bytes_max = header_bytes_max
        self._decode = decode
        self._buffer = b""
        self._position = 0  # of the next unread byte in _buffer
        self._chunk_bytes = 0  # in
        self._chunks: list[bytes] = []  # arrived after _buffer; joined when the frame they belong to is whole
        self._missing = 0  # bytes still to come before it is worth looking again

    @property
    def pending_bytes(self) -> int:
        """Bytes received but not yet returned as commands."""
        return len(self._buffer) - self._position + self._chunk_bytes

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the peer; then call next_command until it returns None."""
        if self._missing > len(data):
            self._missing -= len(data)
            self._chunks.append(data)
            self._chunk_bytes += len(data)
            return
        self._missing = 0
        if self._chunks:
            self._buffer = b"".join((self._buffer[self._position :], *self._chunks, data))
            self._chunks.clear()
            self._chunk_bytes = 0
        elif self._position < len(self._buffer):
            self._buffer = self._buffer[self._position :] + data
        else:
            self._buffer = data
        self._position = 0

    def take_frames(self, taker: FrameTaker, count_max: int, connection: Any) -> int:
        """Let `taker` have up to `count_max` whole frames first: those that it takes, next_command will not return.

        Returns how many it took.
        """
        if self._missing:
            return 0
        self._position = taker.serve(self._buffer, self._position, count_max, connection)
        return taker.count

    def next_command(self) -> RemotingCommand | None:
        """The next whole command, or None while bytes are missing. Raises FrameError; the stream is lost then."""
        if self._missing:
            return None
        buffer, start = self._buffer, self._position
        available = len(buffer) - start
        if available < 4:
            self._missing = 4 - available
            return None
        (total,) = _LENGTH.unpack_from(buffer, start)
        if total < 4 or total + 4 > self._frame_bytes_max:
            hint = ": a TLS record, and this side speaks without TLS" if total >> 16 in _TLS_RECORDS else ""
            if (other := _OTHER_SERVERS.get(bytes(buffer[start : start + 4]))) is not None:
                hint = f": {other} answers there, neither a name server nor a broker"
            raise FrameError(f"frame length {total} is outside 4..{self._frame_bytes_max - 4}{hint}")
        if total > self._header_bytes_max and not self._is_header_bounded(buffer, start, available):
            return None
        if available < 4 + total:
            self._missing = 4 + total - available
            return None
        self._position = end = start + 4 + total
        return self._decode(buffer, start + 4, end)  # type: ignore[no-any-return]  # a command, or what acts as one

    def _is_header_bounded(self, buffer: bytes, start: int, available: int) -> bool:
        """Look at the header's length, before its bytes are there. False: that is still to come. Raises FrameError."""
        if available < 8:
            self._missing = 8 - available
            return False
        header_bytes = _HEADER_WORD.unpack_from(buffer, start + 4)[0] & _HEADER_LENGTH_MASK
        if header_bytes > self._header_bytes_max:
            raise FrameError(f"header of {header_bytes} bytes: at most {self._header_bytes_max} are read")
        return True
