"""RocketMQ's HA protocol as bytes, with no socket in sight.

slave -> master   i64: up to here I have the log. First the place to begin at, then acknowledgements
master -> slave   i64 place, i32 size, that many bytes of the log; size 0 says that the connection lives
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from gantrymq.errors import GantryError

OFFSET = struct.Struct(">q")
HEAD = struct.Struct(">qi")
FRAME_BYTES_MAX = 16 << 20  # far above any haTransferBatchSize; more is no frame


class FrameError(GantryError):
    """What the master sent is no frame: the connection can't go on."""


class FrameReader:
    """A master's bytes to pieces of the log. A frame needs not be whole: what came of it is handed on at once."""

    def __init__(self) -> None:
        self._head = b""  # of a frame whose head is not whole
        self._position = 0
        self._missing_bytes = 0  # of the frame that has begun

    def feed(self, data: bytes) -> Iterator[tuple[int, memoryview]]:
        """Yield (place, bytes) for each piece; no bytes: a sign of life, which names the next place. FrameError."""
        rest = memoryview(data)
        while rest:
            if self._missing_bytes:
                piece = rest[: self._missing_bytes]
                rest = rest[len(piece) :]
                position = self._position
                self._position += len(piece)
                self._missing_bytes -= len(piece)
                yield position, piece
                continue
            wanted = HEAD.size - len(self._head)
            self._head += rest[:wanted]
            rest = rest[wanted:]
            if len(self._head) < HEAD.size:
                return
            self._position, self._missing_bytes = HEAD.unpack(self._head)
            self._head = b""
            if self._position < 0 or not 0 <= self._missing_bytes <= FRAME_BYTES_MAX:
                raise FrameError(f"a frame of {self._missing_bytes} bytes at {self._position}: not the HA protocol")
            if not self._missing_bytes:
                yield self._position, memoryview(b"")
