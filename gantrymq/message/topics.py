"""Names of topics and groups: which are allowed, which are RocketMQ's own."""

from __future__ import annotations

import re
from collections.abc import Container

from gantrymq.errors import MessageRejected, WrongType

AUTO_CREATE_TOPIC = "TBW102"  # the template that unknown topics inherit from
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"  # RocketMQ 5's: messages that wait for a time of their own
BENCHMARK_TOPIC = "BenchmarkTest"
TRANS_HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
TRANS_OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
TRANS_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_EVENT = "OFFSET_MOVED_EVENT"
REPLY_TOPIC_POSTFIX = "REPLY_TOPIC"  # a cluster's replies: <cluster>_REPLY_TOPIC

SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRACE_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT,
    }
)
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
CLIENTS_MAY_NOT_SEND_TO = frozenset(
    {
        SCHEDULE_TOPIC,
        TIMER_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT,
    }
)

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
LMQ_PREFIX = "%LMQ%"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
TOOLS_GROUP = "TOOLS_CONSUMER"  # every broker knows it: for reading without belonging to a group, which counts nowhere

TOPIC_CHARS_MAX = 127  # the record's topic length is a signed byte
GROUP_CHARS_MAX = 255
NAME_PATTERN = "^[%|a-zA-Z0-9_-]+$"
_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")


def retry_topic(group: str) -> str:
    """Return the topic that holds what the group will consume again."""
    return RETRY_PREFIX + group


def pop_retry_topic(group: str, topic: str) -> str:
    """Return the topic that holds what the group, which pops, will consume again of `topic` (RocketMQ 5's)."""
    return f"{RETRY_PREFIX}{group}_{topic}"


def dlq_topic(group: str) -> str:
    """Return the topic of the group's dead letters."""
    return DLQ_PREFIX + group


def is_retry_topic(topic: str) -> bool:
    """Say if the topic holds what a group will consume again."""
    return topic.startswith(RETRY_PREFIX)


def is_dlq_topic(topic: str) -> bool:
    """Say if the topic holds a group's dead letters."""
    return topic.startswith(DLQ_PREFIX)


def is_system_topic(topic: str) -> bool:
    """Say if the topic is RocketMQ's own. A broker adds its cluster's and its own name, which only it knows."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def topic_kind(topic: str, own_names: Container[str] = ()) -> str:
    """Return "normal", "retry", "dead letter" or "system"; `own_names`: clusters and brokers, which are topics too."""
    if is_retry_topic(topic):
        return "retry"
    if is_dlq_topic(topic):
        return "dead letter"
    return "system" if is_system_topic(topic) or topic in own_names else "normal"


def may_clients_send_to(topic: str) -> bool:
    """Say if brokers take messages of clients for the topic: not for those they write themselves."""
    return topic not in CLIENTS_MAY_NOT_SEND_TO


def check_topic(topic: str) -> None:
    """Raise MessageRejected, with RocketMQ's own words, unless the name can be a topic's."""
    if not isinstance(topic, str):
        raise WrongType(f"topic: a text is wanted, not {topic!r:.60}")
    if not topic.strip():
        raise MessageRejected("The specified topic is blank.")
    if not _NAME.fullmatch(topic):
        raise MessageRejected(f"The specified topic contains illegal characters, allowing only {NAME_PATTERN}")
    if len(topic) > TOPIC_CHARS_MAX:
        raise MessageRejected("The specified topic is longer than topic max length.")


def check_group(group: str) -> None:
    """Raise MessageRejected unless the name can be a producer or consumer group's."""
    if not isinstance(group, str):
        raise WrongType(f"group: a text is wanted, not {group!r:.60}")
    if not group.strip():
        raise MessageRejected("the specified group is blank")
    if len(group) > GROUP_CHARS_MAX:
        raise MessageRejected("the specified group is longer than group max length 255.")
    if not _NAME.fullmatch(group):
        raise MessageRejected(f"the specified group[{group}] contains illegal characters, allowing only {NAME_PATTERN}")
