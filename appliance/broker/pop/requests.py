"""What POP's requests say, typed and within bounds (RocketMQ 5: PopMessageRequestHeader and its kin)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from appliance.remoting.header_fields import int_field, long_field, text_field

COUNT_MAX = 32  # messages of one pop, RocketMQ's own limit
INVISIBLE_MS_MAX = 12 * 3600 * 1000  # the longest that RocketMQ's clients may ask for
POLL_MS_MAX = 60_000  # clients ask for 5 to 20 s
ATTEMPT_CHARS_MAX = 256
CLIENT_CHARS_MAX = 255
ANY_QUEUE = -1
FROM_MIN = 0  # initMode

Fields = Mapping[str, str]


class PopFields(NamedTuple):
    """200050; 200054 has less of it. queue_id ANY_QUEUE: all of the topic. Times: ms.

    client: whom a proxy asks for, for people; RocketMQ's clients and proxies don't say it.
    """

    group: str
    topic: str
    queue_id: int
    count_max: int
    invisible_ms: int
    poll_ms: int
    init_mode: int
    expression_type: str
    expression: str
    is_ordered: bool
    attempt: str
    client: str = ""

    @classmethod
    def of(cls, fields: Fields) -> PopFields:
        """Of a pop. FieldError."""
        return cls(
            text_field(fields, "consumerGroup"),
            text_field(fields, "topic"),
            max(int_field(fields, "queueId"), ANY_QUEUE),
            int_field(fields, "maxMsgNums", low=1, high=COUNT_MAX),
            int_field(fields, "invisibleTime", low=1, high=INVISIBLE_MS_MAX),
            min(max(long_field(fields, "pollTime"), 0), POLL_MS_MAX),
            int_field(fields, "initMode", 1),
            fields.get("expType", ""),
            fields.get("exp", ""),
            *_order_of(fields),
            client=fields.get("clientId", "")[:CLIENT_CHARS_MAX],
        )

    @classmethod
    def of_notification(cls, fields: Fields) -> PopFields:
        """Of 200054: whether there would be something to pop. FieldError."""
        return cls(
            text_field(fields, "consumerGroup"),
            text_field(fields, "topic"),
            max(int_field(fields, "queueId"), ANY_QUEUE),
            1,
            1,
            min(max(long_field(fields, "pollTime"), 0), POLL_MS_MAX),
            FROM_MIN,
            fields.get("expType", ""),
            fields.get("exp", ""),
            *_order_of(fields),
        )


class LeaseFields(NamedTuple):
    """200051 and 200053: one delivery, whose topic may be a retry topic. extra_info: see Handle."""

    group: str
    topic: str
    queue_id: int
    offset: int
    extra_info: str

    @classmethod
    def of(cls, fields: Fields) -> LeaseFields:
        """FieldError."""
        return cls(
            text_field(fields, "consumerGroup"),
            text_field(fields, "topic"),
            int_field(fields, "queueId", low=0),
            long_field(fields, "offset", low=0),
            text_field(fields, "extraInfo"),
        )


def invisible_ms(fields: Fields) -> int:
    """The new time of 200053, from now on; 0 gives the message back at once. FieldError."""
    return int_field(fields, "invisibleTime", low=0, high=INVISIBLE_MS_MAX)


def _order_of(fields: Fields) -> tuple[bool, str]:
    return fields.get("order", "").lower() == "true", fields.get("attemptId", "")[:ATTEMPT_CHARS_MAX]
