"""What an application sends (Message), what it receives (MessageExt), and where it lies (MessageQueue)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from gantrymq.message import ids
from gantrymq.message import properties as names


@dataclass(slots=True)
class Message:
    """A message to send. `keys` are searchable; `tags` is what subscriptions select by; `delay_level` 0 is at once.

    `delay_seconds` (to the ms) or `deliver_at` (seconds since the epoch, or a datetime with a time zone) let it wait
    for any time that the broker's timerMaxDelaySec allows: GantryMQ and RocketMQ 5 do so, RocketMQ 4.9 delivers at
    once. A delay level wins over both, `delay_seconds` over `deliver_at`.
    """

    topic: str
    body: bytes
    tags: str | None = None
    keys: str | Sequence[str] = ()
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    delay_level: int = 0
    delay_seconds: float | None = None
    deliver_at: float | datetime | None = None

    @property
    def is_delayed(self) -> bool:
        """Say if the message asks to be delivered later, by a level or at a time."""
        return (
            self.delay_level > 0
            or self.delay_seconds is not None
            or self.deliver_at is not None
            or any(name in self.properties for name in names.DELAYING)
        )

    def encoded_properties(self) -> str:
        """Return the property text: the free properties, then KEYS, TAGS, DELAY and the timer's where they are set."""
        properties = dict(self.properties)
        keys = self.keys if isinstance(self.keys, str) else " ".join(self.keys)
        if keys:
            properties[names.KEYS] = keys
        if self.tags:
            properties[names.TAGS] = self.tags
        if self.delay_level > 0:
            properties[names.DELAY] = str(self.delay_level)
        if self.delay_seconds is not None:
            properties[names.TIMER_DELAY_MS] = str(round(self.delay_seconds * 1000))
        elif self.deliver_at is not None:
            properties[names.TIMER_DELIVER_MS] = str(_epoch_ms(self.deliver_at))
        return names.encode_properties(properties)


@dataclass(slots=True)
class MessageExt:
    """A stored message. `body` is as stored: see record.decompress_body. Timestamps are ms since the epoch."""

    topic: str
    body: bytes
    flag: int
    properties: dict[str, str]
    queue_id: int
    queue_offset: int
    physical_offset: int
    store_size: int
    sys_flag: int
    born_timestamp: int
    born_host: tuple[str, int]
    store_timestamp: int
    store_host: tuple[str, int]
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    broker_name: str = ""

    @property
    def tags(self) -> str | None:
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> list[str]:
        return self.properties.get(names.KEYS, "").split()

    @property
    def delay_level(self) -> int:
        level = self.properties.get(names.DELAY, "0")
        return int(level) if level.isdecimal() else 0

    @property
    def msg_id(self) -> str:
        """The producer's unique id; for messages without one, the offset message id."""
        return self.properties.get(names.UNIQ_KEY) or self.offset_msg_id

    @property
    def offset_msg_id(self) -> str:
        return ids.offset_message_id(ids.encode_host(*self.store_host), self.physical_offset)


def _epoch_ms(moment: float | datetime) -> int:
    """A time in ms since the epoch. ValueError for a datetime that doesn't say its time zone."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError("deliver_at: a datetime without a time zone may mean any hour; give it one")
        moment = moment.timestamp()
    return round(moment * 1000)


class MessageQueue(NamedTuple):
    """One queue of a topic at one broker. Sorts by topic, broker and queue id, as Java's compareTo does."""

    topic: str
    broker_name: str
    queue_id: int
