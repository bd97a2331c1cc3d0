"""A port for plain connections only."""

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
        self._arriving: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """Bind and listen; returns the port. Raises OSError when it is taken."""
        return await self.acceptor.open()

    async def close(self) -> None:
        """Stop accepting. Connections made before stay."""
        self.acceptor.close()
        arriving = list(self._arriving)
        for task in arriving:
            task.cancel()
        await asyncio.gather(*arriving, return_exceptions=True)

    def _arrive(self, sock: socket.socket, peer: str) -> None:
        task = asyncio.get_running_loop().create_task(self._hand_over(sock))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _hand_over(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it was closed again meanwhile
            await asyncio.get_running_loop().connect_accepted_socket(self._make_protocol, sock)
