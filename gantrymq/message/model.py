"""What an application sends (Message), what it receives (MessageExt), and where it lies (MessageQueue)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar, overload

from gantrymq.errors import MessageRejected
from gantrymq.message import ids
from gantrymq.message import properties as names
from gantrymq.message.checks import are_plain_keys, are_plain_properties, check_message, is_plain_tag
from gantrymq.message.headers import H, HeaderValue, header_texts, header_value

D = TypeVar("D")
_NONE = object()


@dataclass(slots=True, init=False)
class Message:
    """A message to send. `keys` are searchable; `tags` is what subscriptions select by; `delay_level` 0 is at once.

    `delay_seconds` (to the ms) or `deliver_at` (seconds since the epoch, or a datetime with a time zone) let it wait
    for any time that the broker's timerMaxDelaySec allows, on GantryMQ and RocketMQ 5. RocketMQ 4 has delay levels
    only: a producer rejects such a message there, or rounds its delay up to a level. A delay level wins over both,
    `delay_seconds` over `deliver_at`.

    `headers` are properties with types, written as texts that every client reads (gantrymq.message.headers has the
    table); `MessageExt.header` reads them. They join `properties`.

    WrongType (a TypeError) and MessageRejected (a ValueError) when it is made of what no broker could keep.
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

    def __init__(
        self,
        topic: str,
        body: bytes,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        properties: dict[str, str] | None = None,
        flag: int = 0,
        delay_level: int = 0,
        delay_seconds: float | None = None,
        deliver_at: float | datetime | None = None,
        headers: Mapping[str, HeaderValue] | None = None,
    ) -> None:
        if headers is not None:
            properties = {**(properties or {}), **header_texts(headers)}
        self.topic = topic
        self.body = body
        self.tags = tags
        self.keys = keys
        self.properties = {} if properties is None else properties
        self.flag = flag
        self.delay_level = delay_level
        self.delay_seconds = delay_seconds
        self.deliver_at = deliver_at
        # Messages are made by the million: a glance at the plain ones, and a close look at what it can't vouch for.
        if (
            type(body) is not bytes
            or type(topic) is not str
            or flag != 0
            or delay_level != 0
            or delay_seconds is not None
            or deliver_at is not None
            or (tags is not None and (type(tags) is not str or not (tags.isalnum() or is_plain_tag(tags))))
            or (keys and not (keys.isprintable() if type(keys) is str else are_plain_keys(keys)))
            or (properties is not None and not are_plain_properties(properties))
        ):
            check_message(self)

    @property
    def is_bare(self) -> bool:
        """Say if the message has no properties, whether free, keys, tag or a delay."""
        return not (
            self.properties
            or self.keys
            or self.tags
            or self.delay_level
            or self.delay_seconds is not None
            or self.deliver_at is not None
        )

    @property
    def is_delayed(self) -> bool:
        """Say if the message asks to be delivered later, by a level or at a time."""
        return (
            self.delay_level > 0
            or self.delay_seconds is not None
            or self.deliver_at is not None
            or not names.DELAYING.isdisjoint(self.properties)
        )

    @property
    def is_timed(self) -> bool:
        """Say if the message asks to be delivered at a time, and by no delay level."""
        properties = self.properties
        if self.delay_level > 0 or (properties and names.DELAY in properties):
            return False
        if self.delay_seconds is not None or self.deliver_at is not None:
            return True
        return bool(properties) and not names.TIMERS.isdisjoint(properties)

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
        text = names.encode_properties(properties)
        count = len(properties)
        if count and text.count("\x02") != count - 1:
            check_message(self)  # changed since it was made
            raise MessageRejected("properties: a name or value holds a separator (\\x02)")
        return text


@dataclass(slots=True)
class MessageExt:
    """A stored message. `body` is as stored: see compression.decompress_body. Timestamps are ms since the epoch."""

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
    def queue(self) -> MessageQueue:
        """Where it was read. When it comes again after a failure, the number is that of the group's retry topic."""
        return MessageQueue(self.topic, self.broker_name, self.queue_id)

    @property
    def tries(self) -> int:
        """How often it has been given to a consumer of the group, this time included."""
        return self.reconsume_times + 1

    @property
    def born_at(self) -> datetime:
        """When the producer made it, in UTC, by the clock of its machine."""
        return datetime.fromtimestamp(self.born_timestamp / 1000, UTC)

    @property
    def stored_at(self) -> datetime:
        """When the broker stored it, in UTC."""
        return datetime.fromtimestamp(self.store_timestamp / 1000, UTC)

    @overload
    def header(self, name: str, kind: type[H]) -> H: ...

    @overload
    def header(self, name: str, kind: type[H], default: D) -> H | D: ...

    def header(self, name: str, kind: type[H], default: object = _NONE) -> object:
        """A property as `kind`: bool, int, float, Decimal, datetime, date, UUID, bytes or str.

        KeyError when the message lacks it and no default is given, ValueError when its text is no such value. Empty
        texts and bytes do not travel: their property is missing.
        """
        text = self.properties.get(name)
        if text is not None:
            return header_value(name, text, kind)
        if default is _NONE:
            raise KeyError(name)
        return default

    @property
    def tags(self) -> str | None:
        """What subscriptions select by, None when it has none."""
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> list[str]:
        """What it can be found by."""
        return self.properties.get(names.KEYS, "").split()

    @property
    def delay_level(self) -> int:
        """Which of the broker's 18 delays it was sent with, 0 when none."""
        level = self.properties.get(names.DELAY, "0")
        return int(level) if level.isdecimal() else 0

    @property
    def msg_id(self) -> str:
        """The producer's unique id; for messages without one, the offset message id."""
        return self.properties.get(names.UNIQ_KEY) or self.offset_msg_id

    @property
    def offset_msg_id(self) -> str:
        """The broker's id: its address and where the message lies in its log."""
        return ids.offset_message_id(ids.encode_host(*self.store_host), self.physical_offset)


def _epoch_ms(moment: float | datetime) -> int:
    """A time in ms since the epoch."""
    return round((moment.timestamp() if isinstance(moment, datetime) else moment) * 1000)


class MessageQueue(NamedTuple):
    """One queue of a topic at one broker. Sorts by topic, broker and queue id, as Java's compareTo does."""

    topic: str
    broker_name: str
    queue_id: int
