"""Watches the consumer groups: how far behind, with how many members. A few groups a second, each every few seconds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import replace

from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import GroupPlace, GroupSettings, GroupSummary, is_system_group
from dashboard.status.board import WatchedGroup

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
GROUPS_A_SECOND = 20  # two calls a broker for each: watching must cost a broker next to nothing
LOOK_EACH_S = 5.0
LISTING_EACH_S = 5.0


class GroupWatch:
    """`run` looks, `seen` is what was seen last."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._settings: dict[str, list[GroupSettings]] = {}
        self._listed_at = float("-inf")
        self._looked_at: dict[str, float] = {}  # by the monotonic clock
        self._seen: dict[str, WatchedGroup] = {}

    @property
    def seen(self) -> tuple[WatchedGroup, ...]:
        return tuple(self._seen.values())

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                await self.look()
            except GatewayError as exc:  # the brokers' own problems say it on the page
                logger.debug("groups not read", extra={"event": "groups_not_read", "error": str(exc)})
            except Exception:  # a bug here must not stop the watching for good
                logger.exception("watching groups failed", extra={"event": "sampling_failed"})

    async def look(self) -> None:
        """Look at the groups that were looked at longest ago."""
        now = time.monotonic()
        if now - self._listed_at >= LISTING_EACH_S:
            await self._list()
            self._listed_at = now
        due = [name for name in self._settings if now - self._looked_at.get(name, float("-inf")) >= LOOK_EACH_S]
        due.sort(key=lambda name: self._looked_at.get(name, float("-inf")))
        due = due[:GROUPS_A_SECOND]
        for row in await self._gateway.groups.summaries(due, self._settings):
            self._looked_at[row.name] = now
            self._seen[row.name] = watched(row, self._seen.get(row.name), time.time())

    async def _list(self) -> None:
        """Which groups there are; while a broker is silent none is forgotten."""
        known, failures = await self._gateway.groups.settings()
        known = {name: settings for name, settings in known.items() if not is_system_group(name)}
        self._settings = self._settings | known if failures else known
        for name in [name for name in self._seen if name not in self._settings]:
            del self._seen[name], self._looked_at[name]


def watched(row: GroupSummary, before: WatchedGroup | None, now: float) -> WatchedGroup:
    """What is remembered of a look at a group."""
    is_alone = row.members == 0 and bool(row.lag)
    alone_since = (before.alone_since if before is not None else None) or now if is_alone else None
    places = with_rates(row.places, before, now)
    return WatchedGroup(row.name, row.lag, row.lag_ms, row.members, now, alone_since, row.is_partial, places)


def with_rates(places: Iterable[GroupPlace], before: WatchedGroup | None, now: float) -> tuple[GroupPlace, ...]:
    """The places with what was consumed a second since the last look; None where that is not known."""
    if before is None or now <= before.at:
        return tuple(places)
    old = {(place.topic, place.broker_name): place.consumer_offset for place in before.places}

    def rate(place: GroupPlace) -> float | None:
        was = old.get((place.topic, place.broker_name))
        return None if was is None or place.consumer_offset < was else (place.consumer_offset - was) / (now - before.at)

    return tuple(replace(place, consume_rate=rate(place)) for place in places)
