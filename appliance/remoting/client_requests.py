"""Requests that this side sends to one client: which of them await an answer, and how many may."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gantrymq.errors import ConnectError, RequestTimeout
from gantrymq.remoting.command import RemotingCommand
from gantrymq.timeouts import timeout

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

AWAITED_MAX = 64  # requests to one client that await its answer (RocketMQ: serverAsyncSemaphoreValue)


class ClientRequests:
    """The requests to one client that await its answer, by opaque."""

    def __init__(self) -> None:
        self._awaited: dict[int, asyncio.Future[RemotingCommand]] = {}

    async def invoke(self, client: ServerConnection, request: RemotingCommand, timeout_s: float) -> RemotingCommand:
        """Send the client a request and return its response. Raises RequestTimeout or ConnectError."""
        if client.is_closing:
            raise ConnectError(client.remote_text, "connection is closed")
        if len(self._awaited) >= AWAITED_MAX:
            raise ConnectError(client.remote_text, f"{AWAITED_MAX} requests already await this client's answer")
        future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
        self._awaited[request.opaque] = future
        client.send(request)
        try:
            async with timeout(timeout_s):
                return await future
        except TimeoutError as exc:
            raise RequestTimeout(client.remote_text, request.code, timeout_s) from exc
        finally:
            self._awaited.pop(request.opaque, None)

    def answered(self, response: RemotingCommand) -> bool:
        """Hand the response to who awaits it. False when no request has its opaque."""
        future = self._awaited.get(response.opaque)
        if future is None:
            return False
        if not future.done():
            future.set_result(response)
        return True

    def connection_lost(self, remote_text: str, reason: str) -> None:
        """Fail all that is awaited."""
        for future in self._awaited.values():
            if not future.done():
                future.set_exception(ConnectError(remote_text, f"connection closed ({reason})"))
        self._awaited.clear()
