"""The SQL92 conditions of consumer groups, by topic; kept in consumerFilter.json.

A heartbeat brings them. A group that left keeps its condition as dead for a day, so that messages stored meanwhile get
its bits and it can go on quickly; after a restart all are dead until their group says hello. A newer version of the
client's replaces an older one, an equal one revives, and one that is no condition takes the old one away: then pulls
are told so (RocketMQ: ConsumerFilterManager).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson

from appliance.broker.filters.bloom import BloomFilter, mask_of
from appliance.broker.filters.filter import SQL92, SqlFilter, is_by_tag
from appliance.broker.sql_filter import Condition, SqlError, compile_condition
from appliance.process.json_file import Document, JsonFile, SavedTable, StateWriter, member_text
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.message.properties import decode_properties
from gantrymq.message.topics import check_topic
from gantrymq.remoting.bodies import SubscriptionData

logger = logging.getLogger(__name__)

PERSIST_INTERVAL_S = 10.0  # RocketMQ's
DEAD_BEFORE_LOAD_MS = 30_000  # at a start groups count as dead for so long
FORGOTTEN_AFTER_MS = 86_400_000  # filters of groups without members
FILTERS_MAX = 10_000
CHARS_MAX = 8 << 20  # of all conditions together


class ConsumerFilter:
    """One group's condition on one topic (RocketMQ: ConsumerFilterData). Times in ms since the epoch; 0: not dead."""

    __slots__ = (
        "bits", "born_ms", "client_version", "condition", "content_filter", "dead_ms", "expression_type", "group",
        "positions", "topic",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        group: str,
        condition: Condition,
        bloom: BloomFilter,
        *,
        born_ms: int,
        client_version: int,
        dead_ms: int = 0,
    ) -> None:
        self.topic = topic
        self.group = group
        self.condition = condition
        self.expression_type = SQL92
        self.born_ms = born_ms
        self.dead_ms = dead_ms
        self.client_version = client_version
        self.positions = bloom.positions(group, topic)
        self.bits = mask_of(self.positions)
        self.content_filter = SqlFilter(condition, bits=self.bits, bitmap_bytes=bloom.bit_count // 8, born_ms=born_ms)

    @property
    def is_dead(self) -> bool:
        return self.dead_ms >= self.born_ms

    def to_dict(self, bit_count: int) -> dict[str, Any]:
        """As it stands in the file, and in the answer to 321."""
        return {
            "bloomFilterData": {"bitNum": bit_count, "bitPos": list(self.positions)},
            "bornTime": self.born_ms,
            "clientVersion": self.client_version,
            "consumerGroup": self.group,
            "dead": self.is_dead,
            "deadTime": self.dead_ms,
            "expression": self.condition.text,
            "expressionType": self.expression_type,
            "topic": self.topic,
        }


class ConsumerFilterManager(SavedTable):
    """The table of conditions. load() before anything else; run() writes the file and drops the long dead."""

    def __init__(self, path: Path, config: BrokerConfig, *, clock: Callable[[], float] = time.time) -> None:
        self.bloom = BloomFilter()
        self.by_topic: dict[str, dict[str, ConsumerFilter]] = {}
        self._topics_of_group: dict[str, set[str]] = {}
        self._chars = 0
        self._count = 0
        self._config = config
        self._clock = clock
        self._file = JsonFile(path)
        self._writer = StateWriter(self._file, self._render, delay_s=PERSIST_INTERVAL_S)

    # -- reading ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._count

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        filters = self.by_topic.get(topic)
        return filters.get(group) if filters is not None else None

    def condition(self, topic: str, group: str) -> Condition | None:
        found = self.get(topic, group)
        return found.condition if found is not None else None

    def bitmap_of(self, topic: str, properties: bytes) -> bytes:
        """Return the bits of all groups whose conditions the message meets; empty when the topic has no conditions."""
        filters = self.by_topic.get(topic)
        if not filters:
            return b""
        decoded = decode_properties(properties)
        bits = 0
        for consumer_filter in filters.values():
            if consumer_filter.condition.is_met(decoded):
                bits |= consumer_filter.bits
        return bits.to_bytes(self.bloom.bit_count // 8, "little")

    # -- groups come and go -------------------------------------------------------------------------------------------

    def register(self, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
        """Take over what a heartbeat says of a group; its conditions for other topics die."""
        topics = set()
        for subscription in subscriptions:
            topics.add(subscription.topic)
            if subscription.sub_string and subscription.topic and not is_by_tag(subscription.expression_type):
                self._register(group, subscription)
        known = self._topics_of_group.get(group)
        if known is not None and not known <= topics:
            for topic in known - topics:
                self._bury(self.by_topic[topic][group])

    def unregister(self, group: str) -> None:
        """The group has no members any more."""
        for topic in self._topics_of_group.get(group, ()):
            self._bury(self.by_topic[topic][group])

    def _register(self, group: str, subscription: SubscriptionData) -> None:
        topic, text, version = subscription.topic, subscription.sub_string, subscription.sub_version
        old = self.get(topic, group)
        if old is not None and version <= old.client_version:
            if version == old.client_version and old.is_dead:
                self._revive(old)
            return
        if old is not None and text == old.condition.text and subscription.expression_type == old.expression_type:
            old.client_version = version
            self._revive(old)
            return
        if old is not None:
            self._remove(old)  # if the new text is no condition, the client is to hear of it at its pulls
        try:
            check_topic(topic)
            condition = compiled(subscription.expression_type, text)
        except (MessageRejected, SqlError) as exc:
            logger.warning(
                "filter rejected",
                extra={"event": "filter_refused", "group": group, "topic": topic, "reason": str(exc)},
            )
            return
        if not self._make_room(len(text)):
            logger.error("too many filters", extra={"event": "filters_full", "group": group, "topic": topic})
            return
        now_ms = int(self._clock() * 1000)
        self._add(ConsumerFilter(topic, group, condition, self.bloom, born_ms=now_ms, client_version=version))
        logger.info("filter registered", extra={"event": "filter_registered", "group": group, "topic": topic})
        self._writer.changed()

    def _revive(self, consumer_filter: ConsumerFilter) -> None:
        consumer_filter.dead_ms = 0
        self._writer.changed()

    def _bury(self, consumer_filter: ConsumerFilter) -> None:
        if not consumer_filter.is_dead:
            consumer_filter.dead_ms = int(self._clock() * 1000)
            self._writer.changed()

    # -- entries ------------------------------------------------------------------------------------------------------

    def _add(self, consumer_filter: ConsumerFilter) -> None:
        self.by_topic.setdefault(consumer_filter.topic, {})[consumer_filter.group] = consumer_filter
        self._topics_of_group.setdefault(consumer_filter.group, set()).add(consumer_filter.topic)
        self._chars += len(consumer_filter.condition.text)
        self._count += 1

    def _remove(self, consumer_filter: ConsumerFilter) -> None:
        topic, group = consumer_filter.topic, consumer_filter.group
        del self.by_topic[topic][group]
        if not self.by_topic[topic]:
            del self.by_topic[topic]
        self._topics_of_group[group].discard(topic)
        if not self._topics_of_group[group]:
            del self._topics_of_group[group]
        self._chars -= len(consumer_filter.condition.text)
        self._count -= 1
        self._writer.changed()

    def _make_room(self, chars: int) -> bool:
        """Let the longest dead go when the table is full. Say if there is room now."""
        if self._count < FILTERS_MAX and self._chars + chars <= CHARS_MAX:
            return True
        for consumer_filter in sorted(self._dead(), key=lambda dead: dead.dead_ms):
            self._remove(consumer_filter)
            if self._count < FILTERS_MAX and self._chars + chars <= CHARS_MAX:
                return True
        return False

    def _dead(self) -> list[ConsumerFilter]:
        return [one for filters in self.by_topic.values() for one in filters.values() if one.is_dead]

    def clean(self) -> None:
        """Forget those that have been dead for a day."""
        dead_before = int(self._clock() * 1000) - FORGOTTEN_AFTER_MS
        for consumer_filter in self._dead():
            if consumer_filter.dead_ms <= dead_before:
                self._remove(consumer_filter)

    # -- the file -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write the file some time after changes, and clean, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._writer.run(), name="consumerFilter.json")
            while True:
                await asyncio.sleep(PERSIST_INTERVAL_S)
                self.clean()

    def load(self) -> None:
        """Read consumerFilter.json, a real broker's included. Raises StateFileError."""
        entries = self._file.load_as(_entries, "a table of consumer filters")
        if entries is None:
            return
        if all(self._is_of_this_bloom_filter(entry) for entry in entries):
            for entry in entries:
                self._load(entry)
        else:  # the bits of messages stored so far mean something else
            logger.warning("filters dropped: bloom filter changed", extra={"event": "filters_dropped"})

    def _is_of_this_bloom_filter(self, entry: dict[str, Any]) -> bool:
        bits = entry.get("bloomFilterData") or {}
        return self.bloom.is_valid(bits.get("bitNum", 0), tuple(bits.get("bitPos") or ()))

    def _load(self, entry: dict[str, Any]) -> None:
        topic, group, text = str(entry["topic"]), str(entry["consumerGroup"]), str(entry["expression"])
        born_ms, dead_ms = int(entry["bornTime"]), int(entry.get("deadTime") or 0)
        try:
            condition = compiled(entry["expressionType"], text)
        except SqlError as exc:
            logger.warning(
                "filter dropped", extra={"event": "filter_dropped", "group": group, "topic": topic, "reason": str(exc)}
            )
            return
        if not dead_ms:
            dead_ms = max(born_ms, int(self._clock() * 1000) - DEAD_BEFORE_LOAD_MS)
        version = int(entry["clientVersion"])
        if self._make_room(len(text)):
            self._add(
                ConsumerFilter(
                    topic, group, condition, self.bloom, born_ms=born_ms, client_version=version, dead_ms=dead_ms
                )
            )

    def _render(self) -> Document:
        return Document(
            {
                "filterDataByTopic": [
                    member_text(topic, orjson.dumps(self._topic_dict(topic)).decode()) for topic in self.by_topic
                ]
            }
        )

    def _topic_dict(self, topic: str) -> dict[str, Any]:
        filters = self.by_topic[topic].items()
        return {
            "groupFilterData": {group: one.to_dict(self.bloom.bit_count) for group, one in filters},
            "topic": topic,
        }


def compiled(expression_type: str | None, text: str) -> Condition:
    """Return the condition of a subscription. Raises SqlError: none, or no kind of condition that is known."""
    if expression_type != SQL92:
        raise SqlError(f"there is no filter type {str(expression_type)[:40]!r}, use TAG or SQL92", 1)
    if not text.isprintable() and any("\ud800" <= character <= "\udfff" for character in text):
        raise SqlError("half a character, which no file can hold", 1)
    return compile_condition(text)


def _entries(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the filters of a file. What is missing or of another kind raises what Python raises."""
    entries = [
        entry
        for by_group in (document.get("filterDataByTopic") or {}).values()
        for entry in ((by_group or {}).get("groupFilterData") or {}).values()
        if entry
    ]
    for entry in entries:
        _ = entry["topic"], entry["consumerGroup"], entry["expression"], entry["expressionType"]
        _ = int(entry["bornTime"]), int(entry.get("deadTime") or 0), int(entry["clientVersion"])
        bits = entry.get("bloomFilterData") or {}
        _ = int(bits.get("bitNum", 0)), list(bits.get("bitPos") or ())
    return entries
