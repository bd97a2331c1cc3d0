"""What may be said of a topic beside its queues: its attributes, as RocketMQ 5 has them.

    GantryMQ's own    retention.ms, retention.messages: see appliance/broker/topics/topic_retention.py
    RocketMQ 5's      message.type, which proxies enforce; others are kept and given back, and nothing more

Tools made for 5.x send some with every topic, and read them back. Their values are
checked as 5.x does. `without_effect` says which ones change nothing, for those who show attributes to a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

RETENTION_MS = "retention.ms"
RETENTION_MESSAGES = "retention.messages"
OWN_DIGITS_MAX = 18
LONG_MAX = (1 << 63) - 1
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")
LITE_EXPIRATION_MINUTES_MAX = 30 * 24 * 60


class AttributeRule(NamedTuple):
    """Which values an attribute takes: one of `words`, or a whole number from `low` to `high`.

    is_changeable: RocketMQ sets the others when the topic is made, and never again.
    """

    words: tuple[str, ...] = ()
    low: int = 0
    high: int = LONG_MAX
    is_changeable: bool = True


OWN = {RETENTION_MS: AttributeRule(high=10**OWN_DIGITS_MAX - 1)}
OWN[RETENTION_MESSAGES] = OWN[RETENTION_MS]

MESSAGE_TYPE = "message.type"  # which messages a proxy takes; FIFO: its consumers get them in order

# RocketMQ: TopicAttributes, TopicMessageType
ROCKETMQ_5 = {
    MESSAGE_TYPE: AttributeRule(("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED")),
    "queue.type": AttributeRule(("SimpleCQ", "BatchCQ"), is_changeable=False),
    "cleanup.policy": AttributeRule(("DELETE", "COMPACTION"), is_changeable=False),
    "reserve.time": AttributeRule(low=-1),
    "lite.topic.expiration": AttributeRule(low=-1, high=LITE_EXPIRATION_MINUTES_MAX),
}
RULES = OWN | ROCKETMQ_5


def without_effect(names: Iterable[str]) -> list[str]:
    """Those of the attributes that GantryMQ keeps and does nothing with, by name."""
    return sorted(name for name in names if name not in OWN and name != MESSAGE_TYPE)


def wrong_value(name: str, value: object) -> str | None:
    """Why this can't be the value of an attribute in RULES; None when it can."""
    rule = RULES[name]
    if rule.words:
        return None if value in rule.words else f"attribute {name}={value}: use {', '.join(rule.words)}"
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) and rule.low <= int(value) <= rule.high:
        return None
    return f"attribute {name}={value}: use a whole number from {rule.low} to {rule.high}"
