"""Connections that have not shown who they are yet: few of an address, few in all, and each for a short time.

There is always room for one more: the longest waiting of its address leaves, or of the address that has most here. So
connections that say nothing keep no slave out, and hold no more than these places.

A fixed time would shut out a slave on a machine that is short of its processor. An address whose time ran out has twice
as much at its next try, up to a bound.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

from appliance.broker.replication.master.slave import SlaveLost
from gantrymq.timeouts import timeout

HOSTS_MAX = 256  # whose time ran out, the latest


class _Waiting:
    """One connection."""

    def __init__(self, host: str, limit: asyncio.Timeout) -> None:
        self.host = host
        self.limit = limit
        self.has_made_room = False

    def make_room(self) -> None:
        self.has_made_room = True
        if not self.limit.expired():  # its time may be over at this moment
            self.limit.reschedule(asyncio.get_running_loop().time())


class WaitingRoom:
    """patience_s: how long an address may take at first; patience_s_max: at most."""

    def __init__(self, *, places: int, places_an_address: int, patience_s: float, patience_s_max: float) -> None:
        self._places = places
        self._places_an_address = places_an_address
        self._patience_s = patience_s
        self._patience_s_max = max(patience_s, patience_s_max)
        self._waiting: dict[_Waiting, None] = {}  # the longest waiting first
        self._slow: dict[str, float] = {}  # address -> how long it may take, the latest last

    @property
    def hosts_remembered(self) -> int:
        """Addresses that may take longer than others."""
        return len(self._slow)

    @contextlib.asynccontextmanager
    async def place(self, host: str) -> AsyncIterator[None]:
        """Run the block as one of those who wait. SlaveLost when it took too long, or made room for another."""
        patience_s = self._slow.get(host, self._patience_s)
        self._make_room(host)
        limit = timeout(patience_s)
        waiting = _Waiting(host, limit)
        try:
            async with limit:
                self._waiting[waiting] = None
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            if waiting.has_made_room:
                raise SlaveLost("closed to make room: it had not identified itself") from None
            self._note_slow(host, min(patience_s * 2, self._patience_s_max))
            raise SlaveLost(f"did not say who it is within {patience_s:g} s") from None
        else:
            self._slow.pop(host, None)
        finally:
            self._waiting.pop(waiting, None)

    def _make_room(self, host: str) -> None:
        counts = Counter(each.host for each in self._waiting)
        if counts[host] < self._places_an_address:
            if len(self._waiting) < self._places:
                return
            host = max(counts, key=counts.__getitem__)  # of several the one whose first has waited longest
        longest = next(each for each in self._waiting if each.host == host)
        del self._waiting[longest]  # now: the next one may come before its task runs
        longest.make_room()

    def _note_slow(self, host: str, patience_s: float) -> None:
        self._slow.pop(host, None)
        self._slow[host] = patience_s
        if len(self._slow) > HOSTS_MAX:
            del self._slow[next(iter(self._slow))]
