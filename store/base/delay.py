"""Delayed messages as the store sees them: the levels, and the way into SCHEDULE_TOPIC_XXXX.

A delayed message is stored under the schedule topic, queue = level - 1, with its real topic and queue in properties.
Its consume-queue unit carries the due time instead of the tag's hash. Delivering it is not the store's business.
"""

from __future__ import annotations

import dataclasses

from gantrymq.errors import ConfigError
from gantrymq.message import properties as names
from gantrymq.message import topics
from store.base.results import StoreMessage

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
UNKNOWN_LEVEL_MS = 1000
_DELAY = names.DELAY.encode()
DELAY_MARK = _DELAY + b"\x01"
DELAY_HINT = b"DEL"  # in the name of every property that delays: one look for all of them


class DelayLevels:
    """Level 1 is the first of the configured delays."""

    def __init__(self, text: str) -> None:
        self.delays_ms = [_delay_ms(word) for word in text.split()]

    @property
    def max_level(self) -> int:
        return len(self.delays_ms)

    def delay_ms(self, level: int) -> int:
        return self.delays_ms[level - 1] if 1 <= level <= len(self.delays_ms) else UNKNOWN_LEVEL_MS

    def level_of(self, properties: bytes) -> int:
        """Return the level the properties ask for, cut to the highest; 0 for none or nonsense."""
        value = names.find_property(properties, _DELAY)
        level = int(value) if value is not None and value.isdigit() and len(value) < 10 else 0
        return min(level, self.max_level)

    def schedule(self, message: StoreMessage) -> StoreMessage:
        """Return the message as it is stored while it waits; the same one when it does not ask for a delay."""
        level = self.level_of(message.properties)
        if level <= 0:
            return message
        changes = {
            names.REAL_TOPIC.encode(): message.topic.encode(),
            names.REAL_QID.encode(): str(message.queue_id).encode(),
            _DELAY: str(level).encode(),
        }
        return dataclasses.replace(
            message,
            topic=topics.SCHEDULE_TOPIC,
            queue_id=level - 1,
            properties=names.replace_properties(message.properties, changes),
        )


def _delay_ms(word: str) -> int:
    if word[-1:] not in _UNIT_MS or not word[:-1].isdecimal():
        raise ConfigError(f"messageDelayLevel: {word!r} is not a delay; use a number and one of s m h d, such as 30s")
    return int(word[:-1]) * _UNIT_MS[word[-1]]
