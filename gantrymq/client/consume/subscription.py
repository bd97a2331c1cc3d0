"""A consumer group's subscription: topics with tags, how messages are shared, where to begin. Pure functions."""

from __future__ import annotations

from enum import Enum

from gantrymq.errors import ConfigError, WrongType
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import string_hash_code
from gantrymq.remoting.bodies import SubscriptionData

SQL92 = "SQL92"


class MessageModel(Enum):
    """CLUSTERING: the group's members share the messages; BROADCASTING: every member gets all of them."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeFrom(Enum):
    """Where a group begins in a queue it never consumed. Later it goes on where it was."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


def parse_subscription(topic: str, expression: str, version_ms: int, *, sql: str | None = None) -> SubscriptionData:
    """ "TagA || TagB", "*" for everything; or `sql`: an SQL92 condition on the properties. ConfigError for both."""
    for name, text in (("topic", topic), ("expression", expression), ("sql", sql or "")):
        if not isinstance(text, str):
            raise WrongType(f'{name}={text!r:.60}: a text is wanted; several tags are "TagA || TagB"')
    if sql is not None:
        if expression not in ("", SubscriptionData.SUB_ALL):
            raise ConfigError(f"{topic}: subscribe by tags or by sql, not both; a condition can look at TAGS")
        if not sql.strip():
            raise ConfigError(f"{topic}: the sql condition is empty")
        return SubscriptionData(topic, sql, sub_version=version_ms, expression_type=SQL92)
    if "&&" in expression:
        raise ConfigError(f"{topic}: {expression!r}: a message has one tag, so only || combines tags")
    tags = sorted({tag.strip() for tag in expression.split("||") if tag.strip()})
    if not tags or tags == [SubscriptionData.SUB_ALL]:
        return SubscriptionData(topic, sub_version=version_ms)
    codes = [string_hash_code(tag) for tag in tags]
    return SubscriptionData(topic, expression, tags, codes, version_ms)


def is_wanted(subscription: SubscriptionData, message: MessageExt) -> bool:
    """Whether the message has one of the tags: brokers compare only their hash codes, which may collide."""
    return not subscription.tags_set or message.tags in subscription.tags_set
