"""Whose message stands at an offset: what access control asks before a client sees or moves it."""

from __future__ import annotations

from gantrymq.errors import RecordError
from gantrymq.message import properties as keys
from gantrymq.message.record import split_record
from gantrymq.message.topics import TRACE_TOPIC, is_system_topic
from store.message_store import MessageStore


class StoredTopics:
    """Reads topics of stored messages."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def topic_at(self, physical_offset: int) -> str | None:
        """The topic of the message stored there, None when no message starts there.

        A message that waits in one of the broker's own topics (delayed, or half) counts as one of the topic that it
        will appear in; the broker itself wrote that down.
        """
        data = self._store.message_bytes(physical_offset)
        if data is None:
            return None
        try:
            fields = split_record(data)
            topic = fields.topic.decode()
            if is_system_topic(topic) and topic != TRACE_TOPIC:
                real = keys.find_property(fields.properties, keys.REAL_TOPIC.encode())
                return real.decode() if real else topic
        except (RecordError, UnicodeDecodeError):
            return None
        return topic
