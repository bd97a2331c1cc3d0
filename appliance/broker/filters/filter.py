"""The filters of subscriptions: by tag, as sets of Java hash codes, or by an SQL92 condition on properties.

A consume-queue unit carries the hash of the message's tag, so the broker filters by tag without reading messages.
Different tags may share a hash; the client compares the strings again, so too much is safe and too little is not.
A condition needs the message's properties; the bits in the queue's extension (bloom.py) save reading most that don't
match, where that is enabled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar

from appliance.broker.sql_filter import Condition
from appliance.broker.sql_filter.parser import CHARS_MAX
from appliance.errors import BrokerError
from gantrymq.message import properties as names
from gantrymq.message import topics
from gantrymq.message.properties import decode_properties, string_hash_code
from gantrymq.remoting.bodies import SubscriptionData
from gantrymq.remoting.codes import ResponseCode
from store.queues.consume_queue_ext import ExtUnit
from store.queues.filter import TagFilter

SUB_ALL = "*"
SQL92 = "SQL92"

CACHED_CHARS_MAX = 512  # of an expression that is kept parsed: four thousand of them take less than 64 MiB
JAVA_BLANKS = "".join(map(chr, range(0x21)))  # what String.trim takes off
RECORDS_MAX = 256  # looked into by one read, then others have the loop; the client comes again at once
COMPARISONS_MAX = 100_000  # made by one read: some 3 ms

_PARSE_FAILED = "parse the consumer's subscription failed"


def is_by_tag(expression_type: str | None) -> bool:
    return not expression_type or expression_type == SubscriptionData.TAG


def filter_of(subscription: SubscriptionData) -> TagFilter | None:
    """The filter of a TAG subscription; None is everything."""
    if subscription.class_filter_mode or subscription.sub_string in ("", SUB_ALL):
        return None  # a class of the client's own filters, behind the broker
    if subscription.code_set:
        return TagFilter(frozenset(subscription.code_set))
    try:
        return parse_tags(subscription.sub_string)  # clients that send the expression only
    except BrokerError:
        return TagFilter(frozenset())  # a heartbeat has no answer that could tell; as in RocketMQ nothing matches


def parse_tags(expression: str) -> TagFilter | None:
    """`TagA || TagB` to hash codes, as RocketMQ's FilterAPI: None for everything ("" and "*", not " * ").

    Blanks between bars are no tags: with nothing else, nothing is wanted. BrokerError when it is only bars, or too
    long.
    """
    if len(expression) <= CACHED_CHARS_MAX:
        return _parsed(expression)
    if len(expression) > CHARS_MAX:
        raise BrokerError(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            f"{_PARSE_FAILED}: an expression has at most {CHARS_MAX} characters, this one {len(expression)}",
        )
    return _parsed.__wrapped__(expression)


@functools.lru_cache(maxsize=4096)
def _parsed(expression: str) -> TagFilter | None:
    if expression in ("", SUB_ALL):
        return None
    parts = expression.split("||")
    if not any(parts):  # Java's split leaves nothing of it
        raise BrokerError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"{_PARSE_FAILED}: it names no tag")
    tags = filter(None, (part.strip(JAVA_BLANKS) for part in parts))
    return TagFilter(frozenset(map(string_hash_code, tags)))


class SqlFilter:
    """A condition as the store asks it: a Filter that looks into messages.

    bits, bitmap_bytes: the group's bits in a bit map of that size. born_ms: messages stored up to then have bits that
    say nothing about this condition. Without them every message is looked into.
    """

    __slots__ = ("_bitmap_bytes", "_bits", "_born_ms", "condition", "records_max")
    tags_codes: ClassVar[None] = None

    def __init__(self, condition: Condition, *, bits: int = 0, bitmap_bytes: int = 0, born_ms: int = 0) -> None:
        self.condition = condition
        self.records_max = max(8, min(RECORDS_MAX, COMPARISONS_MAX // condition.weight))
        self._bits = bits
        self._bitmap_bytes = bitmap_bytes
        self._born_ms = born_ms

    def may_match(self, extended: ExtUnit) -> bool:
        """See Filter."""
        bitmap = extended.bitmap
        if not bitmap or len(bitmap) != self._bitmap_bytes or extended.store_timestamp <= self._born_ms:
            return True
        return int.from_bytes(bitmap, "little") & self._bits == self._bits

    def matches(self, properties: bytes) -> bool:
        """See Filter."""
        return self.condition.is_met(decode_properties(properties))


class RetryFilter:
    """filterSupportRetry: a message that comes again must still meet the group's condition for its own topic."""

    __slots__ = ("_condition_of", "records_max")
    tags_codes: ClassVar[None] = None

    def __init__(self, condition_of: Callable[[str], Condition | None]) -> None:
        self._condition_of = condition_of  # of the group, by topic
        self.records_max = RECORDS_MAX // 4

    def may_match(self, extended: ExtUnit) -> bool:
        """See Filter."""
        return True

    def matches(self, properties: bytes) -> bool:
        """See Filter."""
        decoded = decode_properties(properties)
        condition = self._condition_of(decoded.get(names.RETRY_TOPIC, ""))
        return condition is None or condition.is_met(decoded)


def retried_group(topic: str) -> str | None:
    """Return the group whose retry topic this is, None when it is none."""
    return topic[len(topics.RETRY_PREFIX) :] if topic.startswith(topics.RETRY_PREFIX) else None
