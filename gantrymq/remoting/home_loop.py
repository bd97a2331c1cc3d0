"""The event loop that a client lives in: the one it was started in, or first called in.

Its sockets, timers and waiting tasks are that loop's. In another loop nothing would ever wake a caller, whatever its
time limit, so each call looks first.
"""

from __future__ import annotations

import asyncio
import os

from gantrymq.errors import ClientClosed

ONE_A_LOOP = "make a client in each event loop, or use the blocking ones, such as SyncProducer, which all loops share"


class HomeLoop:
    """Unknown until `enter`."""

    __slots__ = ("_process_id", "loop")

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._process_id = 0

    def enter(self) -> None:
        """Make the running loop the client's home if it has none. ClientClosed when another one is."""
        loop = asyncio.get_running_loop()
        if loop is not self.loop:
            if self.loop is not None:
                raise self._elsewhere()
            self.loop, self._process_id = loop, os.getpid()

    def require(self) -> None:
        """ClientClosed when another loop is the client's home. A client without a home is at home everywhere."""
        if self.loop is not None and running_loop() is not self.loop:
            raise self._elsewhere()

    @property
    def is_gone(self) -> bool:
        """Whether the home will never run again in this process."""
        return self.loop is not None and (self.loop.is_closed() or self._process_id != os.getpid())

    def _elsewhere(self) -> ClientClosed:
        assert self.loop is not None
        if self._process_id != os.getpid():
            return ClientClosed("started before a fork: make a client in this process")
        if self.loop.is_closed():
            return ClientClosed(f"started in an event loop that is closed: {ONE_A_LOOP}")
        return ClientClosed(f"started in another event loop: {ONE_A_LOOP}")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, None in others."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
