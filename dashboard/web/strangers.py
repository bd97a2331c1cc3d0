"""Requests that no account stands behind take turns by address, before the application begins with them.

Each costs looks into the database, which all pages share: a flood of them would hold up who is logged in for seconds,
though the machine has time. Who has a session or token that was good a moment ago takes no turn; log-ins have limits of
their own (`log_in_limit.py`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dashboard.access.log_in_limit import is_log_in
from dashboard.http.client_address import client_address, counted_address
from dashboard.web import credentials
from dashboard.web.turns import TooManyWaiting, Turns
from gantrymq.log_limit import LogLimit
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

AT_ONCE = 4
WAITING_MAX = 256  # fewer than connections: who waits in the line keeps its place there
OF_ONE_ADDRESS_MAX = 64
TURN_SECONDS_MAX = 5.0  # what takes longer waits for something else than our time
REMEMBERED_S = 60.0
REMEMBERED_MAX = 4096
RETRY_AFTER_S = 2
BUSY = b"Too many requests without an account at once. Try again in a moment.\n"
_HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", str(len(BUSY)).encode()),
    (b"retry-after", str(RETRY_AFTER_S).encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"connection", b"close"),
]
Application = Callable[[Any, Any, Any], Awaitable[None]]


class Strangers:
    """An ASGI application in front of the others; channels ask it about large bodies."""

    def __init__(self, application: Application, log_limit: LogLimit) -> None:
        self._application = application
        self._log_limit = log_limit
        self._turns = Turns(at_once=AT_ONCE, waiting_max=WAITING_MAX, of_one_max=OF_ONE_ADDRESS_MAX)
        self._good: dict[str, float] = {}  # session keys and tokens: until when (monotonic) they need no look

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = scope["headers"]
        credential = credentials.credential_of(lambda name: _first(headers, name))
        if (scope["type"] == "http" and is_log_in(scope)) or self._is_remembered(credential):
            await self._application(scope, receive, send)
            return
        address = client_address(scope)
        try:
            turn = await self._turns.take(counted_address(address))
        except TooManyWaiting:
            await self._refuse(scope, address, send)
            return
        limit = asyncio.get_running_loop().call_later(TURN_SECONDS_MAX, turn.end)
        try:
            if await self._look_up(credential):
                turn.end()
            await self._application(scope, receive, send)
        finally:
            limit.cancel()
            turn.end()

    async def is_known(self, credential: str, address: str) -> bool:
        """Whether a session or token is good now; no when its address asks too much."""
        if self._is_remembered(credential):
            return await self._look_up(credential)
        try:
            turn = await self._turns.take(counted_address(address))
        except TooManyWaiting:
            return False
        try:
            return await self._look_up(credential)
        finally:
            turn.end()

    def _is_remembered(self, credential: str) -> bool:
        return bool(credential) and self._good.get(credential, 0.0) > time.monotonic()

    async def _look_up(self, credential: str) -> bool:
        """No when the database does not answer: the pages tell why, and a body stays small."""
        if not credential:
            return False
        try:
            async with timeout(TURN_SECONDS_MAX):
                is_good = await credentials.is_good(credential)
        except Exception:
            logger.exception("session not looked up", extra={"event": "web_session_not_looked_up"})
            return False
        self._good.pop(credential, None)
        if is_good:
            if len(self._good) >= REMEMBERED_MAX:
                self._good.clear()
            self._good[credential] = time.monotonic() + REMEMBERED_S
        return is_good

    async def _refuse(self, scope: dict[str, Any], address: str, send: Any) -> None:
        left_out = self._log_limit.left_out("web_strangers_refused", address)
        if left_out is not None:
            facts = {"event": "web_strangers_refused", "address": address, "left_out": left_out or None}
            logger.warning("too many requests without an account", extra=facts)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        await send({"type": "http.response.start", "status": 503, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": BUSY})


def _first(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    return next((value.decode("latin-1") for header, value in headers if header == name), "")
