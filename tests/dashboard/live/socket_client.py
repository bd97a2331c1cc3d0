"""A browser's end of the live socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from channels.testing import WebsocketCommunicator
from django.test import AsyncClient

from dashboard.asgi import application
from tests.waiting import WITHIN_S

HOST = b"localhost:8080"


class PatientCommunicator(WebsocketCommunicator):
    """Waits for as long as any test does: a second, as the library has it, is little on a busy machine."""

    async def receive_output(self, timeout: float = WITHIN_S) -> Any:
        return await super().receive_output(max(timeout, WITHIN_S))

    async def wait(self, timeout: float = WITHIN_S) -> None:
        await super().wait(max(timeout, WITHIN_S))


def communicator(client: AsyncClient | None, origin: bytes | None = b"http://localhost:8080") -> WebsocketCommunicator:
    headers = [(b"host", HOST)]
    if origin is not None:
        headers.append((b"origin", origin))
    if client is not None:
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
        headers.append((b"cookie", cookies.encode()))
    return PatientCommunicator(application, "/live", headers=headers)


@asynccontextmanager
async def connected(client: AsyncClient) -> AsyncIterator[WebsocketCommunicator]:
    socket = communicator(client)
    is_open, _ = await socket.connect()
    assert is_open
    try:
        yield socket
    finally:
        await socket.disconnect()


async def frame_of(
    socket: WebsocketCommunicator, channel: str, holds: str = "", timeout: float = WITHIN_S
) -> dict[str, Any]:
    """The next frame of a channel that holds a key."""
    async with asyncio.timeout(timeout):
        while True:
            for frame in json.loads(await socket.receive_from(timeout)).get("frames", []):
                if frame["channel"] == channel and (not holds or holds in frame):
                    return dict(frame)
