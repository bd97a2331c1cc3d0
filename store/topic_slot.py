"""What the store needs again and again about a topic, looked up once per message."""

from __future__ import annotations

import sys

from gantrymq.message import properties as names
from gantrymq.message import topics
from store.consume_queue import ConsumeQueue

HASH_MASK = 0xFFFFFFFF
WAITING_TOPICS = frozenset({topics.SCHEDULE_TOPIC, topics.TIMER_TOPIC})  # their units say when messages are due


class TopicSlot:
    """A topic's encoded name, its queues, and the hash of `topic#` that all its index keys begin with."""

    __slots__ = ("encoded", "is_gone", "is_schedule", "prefix_hash", "queues", "topic")

    def __init__(self, topic: str) -> None:
        raw = topic.encode()
        self.topic = sys.intern(topic)  # tables compare such names without looking at them
        self.encoded = bytes((len(raw),)) + raw  # as in the record: length byte, name
        self.queues: dict[int, ConsumeQueue] = {}
        self.is_gone = False  # another slot may stand in its place
        self.is_schedule = topic in WAITING_TOPICS
        self.prefix_hash = names.string_hash_code(topic + "#") & HASH_MASK


def is_storable(topic: str) -> bool:
    """A record has a signed byte for the topic's length."""
    return 0 < len(topic) <= topics.TOPIC_CHARS_MAX and len(topic.encode()) <= topics.TOPIC_CHARS_MAX
