"""Counts the stored messages of all topics. That needs a call for each topic, so they are read in turn.

A sum that lacks a broker says so: what was read while a broker was gone stays marked until it is read again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import TopicMetrics, TopicSummary
from dashboard.language.sentences import gettext, joined
from dashboard.status.board import Stored
from gantrymq.message.topics import DLQ_PREFIX

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
TOPICS_A_SECOND = 40
LISTING_EACH_S = 5.0


class _Count(NamedTuple):
    """One topic's messages, and the brokers that were gone when they were counted."""

    messages: int
    at: float
    missing: frozenset[str]
    metrics: TopicMetrics


class StoredCount:
    """`run` counts, `total` is the sum. `expected`: the names of the masters that a whole sum has."""

    def __init__(self, gateway: Gateway, expected: Callable[[], frozenset[str]]) -> None:
        self.why: str | None = gettext("counted within seconds")
        self._gateway = gateway
        self._expected_brokers = expected
        self._rows: list[TopicSummary] = []
        self._listed_at = 0.0
        self._listed_of: frozenset[str] = frozenset()  # the brokers that the listing has
        self._missing: frozenset[str] = frozenset()
        self._counts: dict[str, _Count] = {}
        self._nothing_at: float | None = None
        self._topics: dict[str, TopicMetrics] = {}

    async def run(self) -> None:
        """Go round all topics, at most TOPICS_A_SECOND, so that the sum is seconds old. Ends by cancellation."""
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                await self.look()
            except GatewayError as exc:
                self.why = str(exc)
            except Exception:  # a bug here must not stop the counting for good
                logger.exception("counting stored messages failed", extra={"event": "sampling_failed"})

    async def look(self) -> None:
        """Read the topics that were read longest ago."""
        brokers = await self._brokers()
        if time.monotonic() - self._listed_at > self._listing_each_s() or brokers != self._listed_of:
            listing = await self._gateway.topics.list()
            self._listed_at, self._listed_of = time.monotonic(), brokers
            if listing.failures:  # what is missing must not count as nothing: the old sum grows old instead
                self.why = joined([listing.failures[0].what, listing.failures[0].reason], ": ")
                self._listed_at = 0.0
                return
            self._keep([row for row in listing.rows if row.kind != "system"])
        oldest = sorted(self._rows, key=lambda row: self._counts[row.name].at if row.name in self._counts else 0.0)
        read = await self._gateway.topics.with_metrics(oldest[:TOPICS_A_SECOND], max_age_s=0.5)
        if await self._brokers() != brokers:  # one came or went meanwhile: what was read may lack it
            self._listed_at = 0.0
            return
        self._missing = self._expected_brokers() - brokers
        self._take(read)

    def total(self) -> Stored | None:
        """The sum, None until every topic was read once."""
        if self._nothing_at is not None:
            return Stored(0, 0, self._nothing_at, tuple(sorted(self._missing)))
        names = {row.name for row in self._rows}
        if not self._counts or names - self._counts.keys():
            return None
        missing = self._missing.union(*(count.missing for count in self._counts.values()))
        dead = {
            name.removeprefix(DLQ_PREFIX): count.messages
            for name, count in self._counts.items()
            if name.startswith(DLQ_PREFIX) and count.messages
        }
        return Stored(
            messages=sum(count.messages for count in self._counts.values()),
            topics=sum(row.kind == "normal" for row in self._rows),
            at=min(count.at for count in self._counts.values()),
            missing=tuple(sorted(missing)),
            dead_letters=tuple(sorted(dead.items(), key=lambda item: (-item[1], item[0]))),
        )

    def _listing_each_s(self) -> float:
        """The first message may come in a new topic: while nothing is stored the few topics are listed at each look."""
        total = self.total()
        is_empty = total is not None and total.messages == 0 and len(self._rows) <= TOPICS_A_SECOND
        return 0.0 if is_empty else LISTING_EACH_S

    def topics(self) -> dict[str, TopicMetrics]:
        """Each topic as it was counted last; not changed any more once handed out."""
        return self._topics

    async def _brokers(self) -> frozenset[str]:
        return frozenset(broker.name for broker in (await self._gateway.brokers.list(max_age_s=0.0)).brokers)

    def _keep(self, rows: list[TopicSummary]) -> None:
        self._rows = rows
        names = {row.name for row in rows}
        self._counts = {name: count for name, count in self._counts.items() if name in names}

    def _take(self, rows: Sequence[TopicSummary]) -> None:
        if not self._rows:
            self._nothing_at, self.why, self._topics = time.time(), None, {}
            return
        self._nothing_at = None
        for row in rows:
            if row.metrics is not None and row.metrics.value is not None and row.metrics.why is None:
                self._counts[row.name] = _Count(
                    row.metrics.value.stored, row.metrics.at, self._missing, row.metrics.value
                )
                self.why = None
        self._topics = {name: count.metrics for name, count in self._counts.items()}
