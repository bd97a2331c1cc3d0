"""What each put and get needs of a topic, looked up once."""

from __future__ import annotations

import sys

from gantrymq.message import properties as names
from gantrymq.message import topics
from store.queues.consume_queue import ConsumeQueue

HASH_MASK = 0xFFFFFFFF
FIRST_MAX = 64  # queues beyond these are found in the table
WAITING_TOPICS = frozenset({topics.SCHEDULE_TOPIC, topics.TIMER_TOPIC})  # their units say when messages are due


class TopicSlot:
    """A topic's encoded name, its queues, and the hash of `topic#` that all its index keys begin with.

    `first` has queues 0, 1, … as far as all are there. With ten thousand topics each place in memory on the way to a
    queue is a cache miss, and a tuple is two of them less than a table.
    """

    __slots__ = ("encoded", "first", "is_gone", "is_schedule", "prefix_hash", "queues", "topic")

    def __init__(self, topic: str) -> None:
        raw = topic.encode()
        self.topic = sys.intern(topic)  # interned names are compared by identity
        self.encoded = bytes((len(raw),)) + raw  # as in the record: length byte, name
        self.queues: dict[int, ConsumeQueue] = {}
        self.first: tuple[ConsumeQueue, ...] = ()
        self.is_gone = False  # another slot may stand in its place
        self.is_schedule = topic in WAITING_TOPICS
        self.prefix_hash = names.string_hash_code(topic + "#") & HASH_MASK

    def add(self, queue: ConsumeQueue) -> None:
        """Add a queue whose id the topic does not have yet."""
        self.queues[queue.queue_id] = queue
        while len(self.first) < FIRST_MAX and (following := self.queues.get(len(self.first))) is not None:
            self.first += (following,)

    def drop(self, queue: ConsumeQueue) -> None:
        """Forget a queue."""
        del self.queues[queue.queue_id]
        if 0 <= queue.queue_id < len(self.first):
            self.first = self.first[: queue.queue_id]


def is_storable(topic: str) -> bool:
    """Say whether a record can carry the name, whose length is a signed byte, and a folder can have it.

    No client may send to a topic of another name; but the log may come from a master that let one pass, or be damaged.
    """
    if not 0 < len(topic) <= topics.TOPIC_CHARS_MAX or len(topic.encode()) > topics.TOPIC_CHARS_MAX:
        return False
    return topic not in (".", "..") and "/" not in topic and "\0" not in topic
