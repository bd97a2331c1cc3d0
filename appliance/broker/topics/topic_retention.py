"""Retention of a topic's own: messages older than it, or beyond a number, can't be read any more.

Two attributes of a topic, set with it by 17 or 18 and kept in topics.json:

    retention.ms        a message can be read for so long after it was stored
    retention.messages  so many of the newest of each queue can be read

Messages of all topics share the commit log, so nothing is deleted earlier on disk: the queue's min offset advances,
which every reader respects, and who is behind it is moved as usual (OFFSET_TOO_SMALL). By key or id a message can be
found until its log file goes. The log's own retention (fileReservedTime) is the upper limit.

A clock that is ahead for less than an hour hides nothing; what one has hidden for longer can be read again once it was
set back.
"""

from __future__ import annotations

import asyncio
import logging

from appliance.broker.topics.topic_config import TopicConfigManager
from gantrymq.message.topic_attributes import OWN_DIGITS_MAX, RETENTION_MESSAGES, RETENTION_MS
from gantrymq.remoting.admin_bodies import TopicConfig
from store.message_store import MessageStore
from store.upkeep.steady_clock import SteadyClock

logger = logging.getLogger(__name__)

CHECK_INTERVAL_S = 10.0


class TopicRetention:
    """Advances min offsets: `apply` once before any client reads, then run()."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicConfigManager,
        *,
        clock: SteadyClock | None = None,
    ) -> None:
        self._store = store
        self._topics = topics
        self._clock = clock or SteadyClock()
        self._steps_back = 0  # of the clock, when messages were hidden last
        self.expired = 0  # messages since the start

    async def run(self) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            await self.apply()

    async def apply(self) -> None:
        """Look at each queue whose topic has a retention of its own."""
        now_ms = int(self._clock.now() * 1000)
        was_ahead, self._steps_back = self._clock.steps_back != self._steps_back, self._clock.steps_back
        for config in [config for config in self._topics.configs.values() if config.attributes]:
            keep_ms, keep_messages = _limit(config, RETENTION_MS), _limit(config, RETENTION_MESSAGES)
            if keep_ms is None and keep_messages is None:
                continue
            for queue_id in self._store.queue_ids(config.topic_name):
                if was_ahead and keep_ms is not None:
                    self._store.forget_raised_min_offset(config.topic_name, queue_id)
                since_ms = now_ms - keep_ms if keep_ms is not None else None
                await self._apply(config.topic_name, queue_id, since_ms, keep_messages)
                await asyncio.sleep(0)

    async def _apply(self, topic: str, queue_id: int, since_ms: int | None, keep_messages: int | None) -> None:
        low, high = self._store.min_offset(topic, queue_id), self._store.max_offset(topic, queue_id)
        first = low
        if since_ms is not None:
            first = await self._first_since(topic, queue_id, low, high, since_ms)
        if keep_messages is not None:
            first = max(first, high - keep_messages)
        if first > low:
            self._store.raise_min_offset(topic, queue_id, first)
            self.expired += first - low
            logger.debug(
                "messages of a topic expired",
                extra={"event": "topic_expired", "topic": topic, "queue_id": queue_id, "min_offset": first},
            )

    async def _first_since(self, topic: str, queue_id: int, low: int, high: int, since_ms: int) -> int:
        """The first offset whose message was stored at that time or later. Steps double from the queue's start."""
        step = 1
        while low < high and await self._stored_ms(topic, queue_id, low) < since_ms:
            probe = min(low + step, high - 1)
            if await self._stored_ms(topic, queue_id, probe) < since_ms:
                low, step = probe + 1, step * 2
                continue
            low += 1
            while low < probe:
                middle = (low + probe) // 2
                if await self._stored_ms(topic, queue_id, middle) < since_ms:
                    low = middle + 1
                else:
                    probe = middle
            return low
        return low

    async def _stored_ms(self, topic: str, queue_id: int, offset: int) -> int:
        """When a message was stored. An old one is read from the disk by a thread before it is looked at."""
        units = self._store.consume_queue_units(topic, queue_id, offset, 1)
        if not units:
            return -1
        reading = self._store.read_ahead([(units[0].physical_offset, HEAD_BYTES)])
        if reading is not None:
            await asyncio.wrap_future(reading)
        return self._store.store_timestamp(topic, queue_id, offset)


HEAD_BYTES = 128  # of a record, with its store time


def _limit(config: TopicConfig, name: str) -> int | None:
    value = (config.attributes or {}).get(name)
    return int(value) if value is not None and value.isdigit() and len(value) <= OWN_DIGITS_MAX else None
