"""What each topic takes in the commit log, and which addresses sent its newest messages; what operators ask (29405).

A store keeps one log for all topics, and nothing adds up bytes by topic. Each look goes on where the one before it
ended, over the units of the topic's queues, so a message's size is read once; a look has a limit, and what it has not
come to yet is told as such.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from appliance.broker.topics.topic_config import TopicConfigManager
from gantrymq.errors import RecordError
from gantrymq.message.ids import decode_host
from gantrymq.message.record import split_record
from store.message_store import MessageStore

TOPICS_A_LOOK = 200
UNITS_A_READ = 4096
UNITS_A_LOOK = 50_000  # of all its topics: what a look costs at most
UNITS_OF_A_TOPIC = 20_000  # of one: a backlog must not hold up the others
NEWEST_OF_A_QUEUE = 8  # messages whose sender is looked at
SENDERS_MAX = 64  # of a topic


@dataclass(slots=True)
class _Counted:
    """A queue's messages from `low` to `high` have `size_bytes`. senders_at: behind the last one looked at."""

    low: int = 0
    high: int = 0
    size_bytes: int = 0
    senders_at: int = 0


@dataclass(slots=True)
class _Topic:
    """senders: "ip:port" → when its newest message was stored, ms; the newest last."""

    queues: dict[int, _Counted] = field(default_factory=dict)
    senders: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """messages: that can be read. counted, size_bytes: how many of them were counted, and what these take.

    senders: addresses whose messages were seen among the newest, with when the last one was stored, ms.
    """

    name: str
    messages: int
    counted: int
    size_bytes: int
    senders: Mapping[str, int]


class TopicFigureBook:
    """`look` counts on and tells; `forget` a topic that is deleted."""

    def __init__(self, store: MessageStore, topics: TopicConfigManager) -> None:
        self._store = store
        self._configs = topics.configs
        self._topics: dict[str, _Topic] = {}

    def forget(self, topic: str) -> None:
        self._topics.pop(topic, None)

    def page_after(self, name: str) -> list[str]:
        """The next topics by name."""
        return heapq.nsmallest(TOPICS_A_LOOK, (topic for topic in self._configs if topic > name))

    def look(self, names: Iterable[str]) -> Iterator[TopicFigures]:
        """The topics one after the other; it ends early, with at least one told, when it has read enough."""
        self._forget_gone()
        left = UNITS_A_LOOK
        for name in names:
            topic = self._topics.setdefault(name, _Topic())
            left -= self._count(name, topic, min(left, UNITS_OF_A_TOPIC))
            self._look_at_senders(name, topic)
            yield self._told(name, topic)
            if left <= 0:
                return

    # ---- helpers

    def _forget_gone(self) -> None:
        if len(self._topics) > len(self._configs):
            for name in self._topics.keys() - self._configs.keys():
                del self._topics[name]

    def _count(self, name: str, topic: _Topic, limit: int) -> int:
        """Go on counting, at most so many units; how many these were."""
        used = 0
        for queue_id in self._store.queue_ids(name):
            counted = topic.queues.setdefault(queue_id, _Counted())
            low, high = self._store.min_offset(name, queue_id), self._store.max_offset(name, queue_id)
            used += self._take_out(name, queue_id, counted, low, high)
            while counted.high < high and used < limit:
                wanted = min(high - counted.high, UNITS_A_READ, limit - used)
                units, size_bytes = self._store.size_of_units(name, queue_id, counted.high, wanted)
                if not units:
                    break
                counted.high += units
                counted.size_bytes += size_bytes
                used += units
        return used

    def _take_out(self, name: str, queue_id: int, counted: _Counted, low: int, high: int) -> int:
        """What has expired no longer counts; a queue that starts again, or lost its first units, is counted again."""
        if counted.low == low and counted.high <= high:
            return 0
        used = 0
        while counted.low < low <= counted.high <= high and low - counted.low <= UNITS_A_READ:
            units, size_bytes = self._store.size_of_units(name, queue_id, counted.low, low - counted.low)
            if not units:
                break
            counted.low += units
            counted.size_bytes -= size_bytes
            used += units
        if counted.low != low or counted.high > high:
            counted.low = counted.high = low
            counted.size_bytes = 0
            counted.senders_at = min(counted.senders_at, high)
        return used

    def _look_at_senders(self, name: str, topic: _Topic) -> None:
        for queue_id, counted in topic.queues.items():
            high = self._store.shown_max_offset(name, queue_id)
            first = max(counted.senders_at, high - NEWEST_OF_A_QUEUE, self._store.min_offset(name, queue_id))
            for unit in self._store.consume_queue_units(name, queue_id, first, high - first):
                self._note_sender(topic, unit.physical_offset)
            counted.senders_at = max(counted.senders_at, high)

    def _note_sender(self, topic: _Topic, physical_offset: int) -> None:
        record = self._store.message_bytes(physical_offset)
        if record is None:
            return
        try:
            fields = split_record(record)
            ip, port = decode_host(fields.born_host)
        except (RecordError, ValueError):  # another tool finds damage; here there is a sender less
            return
        address = f"{ip}:{port}"  # as a connection is called
        stored = max(fields.store_timestamp, topic.senders.pop(address, 0))
        topic.senders[address] = stored
        if len(topic.senders) > SENDERS_MAX:
            del topic.senders[min(topic.senders, key=topic.senders.__getitem__)]

    def _told(self, name: str, topic: _Topic) -> TopicFigures:
        messages = sum(
            self._store.max_offset(name, queue_id) - self._store.min_offset(name, queue_id)
            for queue_id in self._store.queue_ids(name)
        )
        counted = sum(queue.high - queue.low for queue in topic.queues.values())
        size_bytes = sum(queue.size_bytes for queue in topic.queues.values())
        return TopicFigures(name, messages, counted, size_bytes, topic.senders)
