"""What was seen of consumer groups, shared by all tabs: a page asks no broker for what was just looked at.

The watch (`dashboard/live/book_watch.py`) looks at a few groups a second, those first that pages show. So the number
of tabs changes nothing about what the brokers are asked.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Sequence
from typing import NamedTuple

from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import GroupSettings, is_system_group
from dashboard.cluster.values import PartialFailure
from dashboard.groups.trend import watched
from dashboard.limits.names import current
from dashboard.status.board import WatchedGroup

LISTING_EACH_S = 5.0
LOOK_EACH_S = 5.0
LOOKS_A_SECOND = 20  # two calls a broker for each: watching must cost a broker next to nothing
WANTED_EACH_S = 2.0
WANTED_A_SECOND = 15  # the rest of a second's looks goes round among all groups
WANTED_S = 10.0  # so long after the last page that showed it
WANTED_MAX = 500
LOOKS_FOR_A_PAGE = 20  # at groups that were never seen; the next seconds bring the others

Settings = dict[str, list[GroupSettings]]
_NEVER = float("-inf")


class GroupListing(NamedTuple):
    """Every group's settings by broker, and the brokers that did not answer."""

    settings: Settings
    failures: list[PartialFailure]


class GroupBook:
    """One per process. Written by the watch, read by pages, REST and the sampler."""

    def __init__(self) -> None:
        self.changes = 0  # grows with each look: what was made of `seen` holds as long as it stays
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.changes += 1
        self._seen: dict[str, WatchedGroup] = {}
        self._looked_at: dict[str, float] = {}  # by the monotonic clock
        self._wanted: dict[str, float] = {}  # until when
        self._settings: Settings = {}
        self._listed: tuple[Gateway, float, asyncio.Task[GroupListing]] | None = None
        self._gate = asyncio.Lock()

    @property
    def seen(self) -> tuple[WatchedGroup, ...]:
        """The applications' groups, as they were seen last."""
        may = current().allows
        return tuple(group for group in self._seen.values() if not is_system_group(group.name) and may(group.name))

    def known(self, name: str) -> WatchedGroup | None:
        return self._seen.get(name) if current().allows(name) else None

    def forget(self, name: str) -> None:
        """It was moved: what was seen before says nothing any more."""
        self._seen.pop(name, None)
        self.changes += 1
        self._looked_at.pop(name, None)

    async def listing(self, gateway: Gateway) -> GroupListing:
        """Which groups there are, read once every few seconds for all who ask. Raises GatewayError."""
        now, listed = time.monotonic(), self._listed
        is_of_now = listed is not None and listed[0] is gateway and now - listed[1] < LISTING_EACH_S
        if listed is None or not is_of_now or _has_failed(listed[2]):
            task = asyncio.get_running_loop().create_task(self._list(gateway), name="group listing")
            listed = self._listed = (gateway, now, task)
        found, limit = await asyncio.shield(listed[2]), current()
        if not limit.is_limited:
            return found
        return GroupListing({name: of for name, of in found.settings.items() if limit.allows(name)}, found.failures)

    async def rows(self, gateway: Gateway, names: Sequence[str]) -> list[WatchedGroup]:
        """These groups as they were seen last; from now on they are looked at more often."""
        names = list(filter(current().allows, names))
        until = time.monotonic() + WANTED_S
        for name in names:
            if name in self._wanted or len(self._wanted) < WANTED_MAX:
                self._wanted[name] = until
        async with self._gate:  # of two tabs that show the same one asks
            unseen = [name for name in names if name not in self._seen][:LOOKS_FOR_A_PAGE]
            await self._look(gateway, unseen)
        return [self._seen.get(name) or WatchedGroup(name, None, None, None, 0.0) for name in names]

    async def look_round(self, gateway: Gateway) -> None:
        """One second's looks: at what pages show, and at those that were looked at longest ago."""
        await self.listing(gateway)
        now = time.monotonic()
        self._wanted = {name: until for name, until in self._wanted.items() if until > now}
        wanted = [name for name in self._wanted if name in self._settings and self._age(name, now) >= WANTED_EACH_S]
        due = heapq.nsmallest(WANTED_A_SECOND, wanted, key=self._last_look)
        others = [name for name in self._settings if self._age(name, now) >= LOOK_EACH_S and not is_system_group(name)]
        others = heapq.nsmallest(LOOKS_A_SECOND, others, key=self._last_look)
        await self._look(gateway, list(dict.fromkeys([*due, *others]))[:LOOKS_A_SECOND])

    # ---- helpers

    async def _list(self, gateway: Gateway) -> GroupListing:
        """While a broker is silent none of its groups is forgotten."""
        settings, failures = await gateway.groups.settings()
        self._settings = dict(sorted((self._settings | settings).items())) if failures else settings
        for name in [name for name in self._seen if name not in self._settings]:
            self.forget(name)
        return GroupListing(self._settings, failures)

    async def _look(self, gateway: Gateway, names: Sequence[str]) -> None:
        if not names:
            return
        for row in await gateway.groups.summaries(names, self._settings):
            self._looked_at[row.name] = time.monotonic()
            self._seen[row.name] = watched(row, self._seen.get(row.name), time.time())
        self.changes += 1

    def _last_look(self, name: str) -> float:
        return self._looked_at.get(name, _NEVER)

    def _age(self, name: str, now: float) -> float:
        return now - self._last_look(name)


def _has_failed(task: asyncio.Task[GroupListing]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


group_book = GroupBook()
