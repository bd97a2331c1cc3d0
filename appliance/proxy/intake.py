"""What comes on a connection, in slices: one that sends without end lets others have their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

SLICE_BYTES = 16 << 10  # of messages, looked at before others have their turn
SLICE_OF_FRAMES_BYTES = 1 << 10  # the same of many small frames
FEW_EVENTS = 4


class Intake:
    """Hands slices to `take`, which says how many things they told of."""

    def __init__(self, transport: asyncio.Transport, take: Callable[[bytes], int]) -> None:
        self._transport = transport
        self._take = take
        self._waiting = bytearray()
        self._slice_bytes = SLICE_OF_FRAMES_BYTES
        self._is_paused = False
        self._is_ended = False

    def add(self, data: bytes) -> None:
        if self._is_ended:
            return
        self._waiting += data
        if self._is_paused:
            return
        self._take_slice()
        if self._waiting:
            self._is_paused = True
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._take_further)

    def end(self) -> None:
        """Take no more."""
        self._is_ended = True
        self._waiting.clear()
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _take_further(self) -> None:
        self._take_slice()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._take_further)
        else:
            self._is_paused = False
            if not self._transport.is_closing() and not self._is_ended:
                self._transport.resume_reading()

    def _take_slice(self) -> None:
        data = bytes(self._waiting[: self._slice_bytes])
        del self._waiting[: self._slice_bytes]
        if self._transport.is_closing():
            self._waiting.clear()
        elif data:
            self._slice_bytes = SLICE_BYTES if self._take(data) <= FEW_EVENTS else SLICE_OF_FRAMES_BYTES
