"""A port for plain connections, and the part that every kind of listener shares: accept, hand over, close."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from appliance.remoting.acceptor import Acceptor


class PlainListener:
    """One port. `make_protocol` is called for each connection."""

    def __init__(self, make_protocol: Callable[[], asyncio.Protocol], *, host: str, port: int, backlog: int) -> None:
        self._make_protocol = make_protocol
        self.acceptor = Acceptor(self._arrive, host=host, port=port, backlog=backlog)
        self._arriving: dict[asyncio.Task[None], None] = {}  # oldest first

    async def open(self) -> int:
        """Bind and listen; returns the port. Who connects waits until `accept`. Raises OSError when it is taken."""
        return await self.acceptor.open()

    def accept(self) -> None:
        """Take connections from now on, those that wait already first."""
        self.acceptor.accept()

    async def close(self) -> None:
        """Stop accepting, and drop connections that are not handed over yet. The others stay open."""
        self.acceptor.close()
        arriving = list(self._arriving)
        for task in arriving:
            task.cancel()
        await asyncio.gather(*arriving, return_exceptions=True)

    def _arrive(self, sock: socket.socket, peer: str) -> None:
        task = asyncio.get_running_loop().create_task(self._welcome(sock, peer))
        self._arriving[task] = None
        task.add_done_callback(lambda done: self._arriving.pop(done, None))

    async def _welcome(self, sock: socket.socket, peer: str) -> None:
        """Give the socket to the event loop, which then owns it."""
        with contextlib.suppress(OSError):  # the peer has closed it meanwhile
            await asyncio.get_running_loop().connect_accepted_socket(self._make_protocol, sock)
