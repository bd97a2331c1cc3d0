"""A slave's connection to its master's HA port: one block of memory, which each reading fills anew.

asyncio's own stream allocates for each reading, and copies what came twice. Here the kernel's copy is the only one.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from appliance.broker.replication.limited_event import LimitedEvent
from gantrymq.timeouts import wait_for_event

WRITE_BYTES_MAX = 64 << 10  # acknowledgements that the master does not take
GOOD_BYE_S = 1.0  # TLS waits for the other side's, which a master that stands still does not say


class HaStream(asyncio.BufferedProtocol):
    """Use `connect`. One reader at a time. What `read` returned is valid until `release`."""

    def __init__(self, size_bytes: int, *, has_tls: bool) -> None:
        self._has_tls = has_tls
        self.own_address = ""  # once it is connected
        self._memory = memoryview(bytearray(size_bytes))
        self._end = 0  # of what came and was not taken yet
        self._given = 0  # up to here `read` has returned it
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._is_over = False  # nothing more comes
        self._why: Exception | None = None
        self._changed = LimitedEvent()  # something came, or nothing more comes
        self._may_write = asyncio.Event()
        self._closed = asyncio.Event()

    # -- what asyncio calls -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._transport.set_write_buffer_limits(WRITE_BYTES_MAX)
        host, port = transport.get_extra_info("sockname")[:2]  # not later: it may be closed then
        self.own_address = f"{host}:{port}"
        self._may_write.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._memory[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        if self._end == len(self._memory):
            self._is_paused = True
            self.transport.pause_reading()
        self._changed.set()

    def eof_received(self) -> bool:
        self._is_over = True
        self._changed.set()
        return not self._has_tls  # TLS has no half of a connection; else what came may still be acknowledged

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, TimeoutError):  # the system's, of a peer that is no more: who reads has limits of their own
            exc = ConnectionAbortedError(f"given up by the system: {exc}")
        self._is_over, self._why = True, exc
        self._changed.set()
        self._may_write.set()
        self._closed.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    # -- what a slave calls -------------------------------------------------------------------------------------------

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    async def read(self, within_s: float) -> memoryview | None:
        """What came, as soon as anything did; nothing at the connection's end; None: within that time nothing came.

        OSError when it broke.
        """
        while not self._end and not self._is_over:
            if not await self._changed.wait(within_s):
                return None
        if not self._end and self._why is not None:
            raise self._why
        self._given = self._end
        return self._memory[: self._end]

    def release(self) -> None:
        """What `read` returned has been taken; what came meanwhile has not."""
        self._take(self._given)
        self._given = 0

    def _take(self, size_bytes: int) -> None:
        """Put what lies behind so many bytes to the beginning, so that there is room."""
        rest = self._end - size_bytes
        if rest:
            self._memory[:rest] = self._memory[size_bytes : self._end]
        self._end = rest
        if self._is_paused and size_bytes:
            self._is_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    async def readexactly(self, n: int) -> bytes:
        """So many bytes. asyncio.IncompleteReadError at the connection's end; OSError when it broke."""
        assert n <= len(self._memory)
        await self._until(n)
        if self._end < n:
            raise self._why or asyncio.IncompleteReadError(bytes(self._memory[: self._end]), n)
        data = bytes(self._memory[:n])
        self._take(n)
        return data

    async def _until(self, size_bytes: int) -> None:
        """Wait until so many bytes are there, or nothing more comes."""
        while self._end < size_bytes and not self._is_over:
            await self._changed.wait(None)

    def write(self, data: bytes) -> None:
        """Send, or do nothing once the connection is over: reading tells that. uvloop's transport would raise."""
        if not self.transport.is_closing():
            self.transport.write(data)

    async def drain(self) -> None:
        """Wait while the master takes nothing. OSError when the connection broke."""
        await self._may_write.wait()
        if self._why is not None:
            raise self._why

    async def close(self) -> None:
        """Say good-bye, unless what is to be said waits for the master."""
        self._changed.close()
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        self.transport.close()
        await wait_for_event(self._closed, GOOD_BYE_S)
        self.transport.abort()
        await self._closed.wait()


async def connect(host: str, port: int, size_bytes: int, tls: ssl.SSLContext | None) -> HaStream:
    """Connect to a master's port. Raises OSError."""
    loop = asyncio.get_running_loop()
    _transport, stream = await loop.create_connection(
        lambda: HaStream(size_bytes, has_tls=tls is not None), host, port, ssl=tls
    )
    return stream
