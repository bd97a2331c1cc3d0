"""RocketMQ's HA protocol as bytes, with no socket in sight.

slave -> master   i64: up to here I have the log. First the place to begin at, then acknowledgements
master -> slave   i64 place, i32 size, that many bytes of the log; size 0 says that the connection lives

Between brokers of GantryMQ, after their greeting (handshake.py), each carries the epoch before all else:

slave -> master   i64 epoch, i64 place; place -1: the next state of the tables is taken over, and so this slave has all
                  topics and groups that it tells of; -2: it is taken over, and the slave asks for tables still
master -> slave   i64 epoch, i64 place, i32 size; place -1: the bytes are the state of the master's tables, as JSON
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from gantrymq.errors import GantryError

OFFSET = struct.Struct(">q")
HEAD = struct.Struct(">qi")
EPOCH_OFFSET = struct.Struct(">qq")
EPOCH_HEAD = struct.Struct(">qqi")
STATE, STATE_OF_PART = -1, -2  # instead of a place
FRAME_BYTES_MAX = 16 << 20  # far above any haTransferBatchSize; more is no frame


class FrameError(GantryError):
    """What the master sent is no frame: the connection can't go on."""


class PlaceReader:
    """A slave's bytes to the places that it names. epoch: as in FrameReader."""

    def __init__(self, epoch: int | None) -> None:
        self._epoch = epoch
        self._rest = b""  # of a place that is not whole

    def feed(self, data: bytes) -> list[int]:
        """The places that are whole now. FrameError."""
        data = self._rest + data
        if self._epoch is None:
            end = len(data) - len(data) % OFFSET.size
            self._rest = data[end:]
            return [place for (place,) in OFFSET.iter_unpack(data[:end])]
        end = len(data) - len(data) % EPOCH_OFFSET.size
        self._rest = data[end:]
        places = []
        for epoch, place in EPOCH_OFFSET.iter_unpack(data[:end]):
            if epoch != self._epoch:
                raise FrameError(f"acknowledges in epoch {epoch}, this is epoch {self._epoch}")
            places.append(place)
        return places


class FrameReader:
    """A master's bytes to pieces of the log. A frame needs not be whole: what came of it is handed on at once.

    epoch: that of all frames, between brokers of GantryMQ. States are handed on whole, with STATE as their place.
    """

    def __init__(self, epoch: int | None = None) -> None:
        self._epoch = epoch
        self._head_bytes = HEAD.size if epoch is None else EPOCH_HEAD.size
        self._state = bytearray()  # of one that is not whole
        self._head = b""  # of a frame whose head is not whole
        self._position = 0
        self._missing_bytes = 0  # of the frame that has begun

    def feed(self, data: bytes | memoryview) -> Iterator[tuple[int, memoryview]]:
        """Yield (place, bytes) for each piece; no bytes: a sign of life, which names the next place. FrameError."""
        rest = memoryview(data)
        while rest:
            if self._missing_bytes:
                piece = rest[: self._missing_bytes]
                rest = rest[len(piece) :]
                self._missing_bytes -= len(piece)
                if self._position == STATE:
                    yield from self._add_to_state(piece)
                    continue
                position = self._position
                self._position += len(piece)
                yield position, piece
                continue
            wanted = self._head_bytes - len(self._head)
            self._head += rest[:wanted]
            rest = rest[wanted:]
            if len(self._head) < self._head_bytes:
                return
            self._begin_frame()
            if not self._missing_bytes:
                yield self._position, memoryview(b"")

    def _begin_frame(self) -> None:
        head, self._head = self._head, b""
        least = 0
        if self._epoch is None:
            self._position, self._missing_bytes = HEAD.unpack(head)
        else:
            epoch, self._position, self._missing_bytes = EPOCH_HEAD.unpack(head)
            if epoch != self._epoch:
                raise FrameError(f"a frame of epoch {epoch} on a connection of epoch {self._epoch}")
            least = STATE
        is_empty_state = self._position == STATE and not self._missing_bytes
        if self._position < least or not 0 <= self._missing_bytes <= FRAME_BYTES_MAX or is_empty_state:
            raise FrameError(f"a frame of {self._missing_bytes} bytes at {self._position}: not the HA protocol")

    def _add_to_state(self, piece: memoryview) -> Iterator[tuple[int, memoryview]]:
        self._state += piece
        if not self._missing_bytes:
            state, self._state = bytes(self._state), bytearray()
            yield STATE, memoryview(state)


def runs(pieces: Iterable[tuple[int, memoryview]]) -> Iterator[tuple[int, list[memoryview]]]:
    """Put pieces that follow each other in the log together: one look at many costs less. States stand alone."""
    place, end, run = 0, 0, list[memoryview]()
    try:
        for position, piece in pieces:
            if not run or position == STATE or place == STATE or position != end or not piece or not run[0]:
                if run:
                    yield place, run
                place, run = position, []
            run.append(piece)
            end = position + len(piece)
    except FrameError:  # what came before it is good
        if run:
            yield place, run
        raise
    if run:
        yield place, run
