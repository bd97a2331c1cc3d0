"""Greetings: a client's heartbeats, each broker's independent of the others'.

An address has one heartbeat on its way at a time, and one that waits for it at most: a broker that is dead or silent
delays no other broker's greeting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from gantrymq.client.connection.background import Background
from gantrymq.errors import GantryError

JOIN_S = 1.0  # between two heartbeats to a broker that does not know this client

Greeting = asyncio.Task[GantryError | None]  # with what went wrong


class Greetings:
    """Of one client. greet: tells the broker at the address, and returns what went wrong."""

    def __init__(self, background: Background, greet: Callable[[str], Awaitable[GantryError | None]]) -> None:
        self._background = background
        self._greet = greet
        self._under_way: dict[str, Greeting] = {}
        self._waiting: dict[str, Greeting] = {}
        self._failing: set[str] = set()
        self._joining: dict[str, bool] = {}  # by broker that does not know this client: whether it said so again

    def begin(self, address: str) -> Greeting:
        """A heartbeat that tells what is so from now on: sent now, or once the one under way has ended."""
        waiting = self._waiting.get(address)
        if waiting is not None:
            return waiting
        before = self._under_way.get(address)
        made = self._background.start(self._send(address, before), f"heartbeat to {address}")
        (self._under_way if before is None else self._waiting)[address] = made
        return made

    async def round(self, addresses: Iterable[str]) -> None:
        """Begin one to each, and wait for the answers of those that the last one reached or that are new."""
        begun = {address: self.begin(address) for address in addresses}
        awaited = [greeting for address, greeting in begun.items() if address not in self._failing]
        if awaited:
            await asyncio.wait(awaited)

    def join(self, address: str, joined: Callable[[], object]) -> None:
        """The broker there says that it does not know this client. joined: called after each heartbeat that it gets
        because of that, one each JOIN_S."""
        is_joining = address in self._joining
        self._joining[address] = True
        if not is_joining:
            self._background.start(self._join(address, joined), f"join at {address}")

    async def _send(self, address: str, before: Greeting | None) -> GantryError | None:
        if before is not None:
            await asyncio.wait([before])
            self._under_way[address] = self._waiting.pop(address)
        try:
            failure = await self._greet(address)
        finally:
            del self._under_way[address]
        if failure is None:
            self._failing.discard(address)
        else:
            self._failing.add(address)
        return failure

    async def _join(self, address: str, joined: Callable[[], object]) -> None:
        while self._joining.pop(address, False):
            self._joining[address] = False
            await asyncio.wait([self.begin(address)])
            joined()
            await asyncio.sleep(JOIN_S)
