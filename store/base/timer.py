"""Messages for a time of their own as the store sees them: RocketMQ 5's timer properties, and the way into its topic.

A message with TIMER_DELAY_SEC, TIMER_DELAY_MS or TIMER_DELIVER_MS (the first of these that it has) is stored under the
timer topic until then, its real topic and queue in properties and its time in TIMER_OUT_MS. The consume-queue unit
carries that time instead of the tag's hash. The broker delivers it.

A delay level wins over a timer. A time that has passed is no delay at all. RocketMQ rounds times down to whole seconds,
so that messages come up to two seconds early; here a time is kept to the millisecond.
"""

from __future__ import annotations

import dataclasses
import re

from gantrymq.message import properties as names
from gantrymq.message import topics
from store.base.results import PutMessageStatus, StoreMessage

TIMER_MARK = b"TIMER_DEL"  # what the names of all timer properties begin with
OUT_MS = names.TIMER_OUT_MS.encode()
_TIMER_PROPERTIES = (
    (names.TIMER_DELAY_SEC.encode(), 1000, True),  # name, ms in its unit, counts from now
    (names.TIMER_DELAY_MS.encode(), 1, True),
    (names.TIMER_DELIVER_MS.encode(), 1, False),
)
_RECALL = names.TIMER_DEL_UNIQKEY.encode()
_NO_TIMER: dict[bytes, bytes | None] = {name: None for name, _unit_ms, _is_relative in _TIMER_PROPERTIES}
_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")


class TimerRules:
    """Which messages wait for how long. `delay_ms_max`: the longest delay that is accepted."""

    def __init__(self, *, enabled: bool, delay_ms_max: int) -> None:
        self.enabled = enabled
        self.delay_ms_max = delay_ms_max

    def divert(self, message: StoreMessage, now_ms: int) -> StoreMessage | PutMessageStatus:
        """Return the message as it is stored while it waits, the same one when it need not, or why it is refused."""
        properties = message.properties
        if message.topic == topics.TIMER_TOPIC or names.find_property(properties, OUT_MS) is not None:
            return message  # it has waited already
        timer = _find_timer(properties)
        if timer is None:
            return message
        if not self.enabled:
            return PutMessageStatus.WHEEL_TIMER_NOT_ENABLE
        value, unit_ms, is_relative = timer
        if not _NUMBER.fullmatch(value) or names.find_property(properties, _RECALL) is not None:
            return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL  # recalls are requests of their own here
        due_ms = int(value) * unit_ms + (now_ms if is_relative else 0)
        if due_ms <= now_ms:
            return message
        if due_ms - now_ms > self.delay_ms_max:
            return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
        changes: dict[bytes, bytes | None] = {
            OUT_MS: str(due_ms).encode(),
            names.REAL_TOPIC.encode(): message.topic.encode(),
            names.REAL_QID.encode(): str(message.queue_id).encode(),
        }
        return dataclasses.replace(
            message,
            topic=topics.TIMER_TOPIC,
            queue_id=0,
            properties=names.replace_properties(properties, changes),
        )


def without_timer(message: StoreMessage) -> StoreMessage:
    """Return the message without timer properties: with a delay level RocketMQ ignores them."""
    if TIMER_MARK not in message.properties:
        return message
    return dataclasses.replace(message, properties=names.replace_properties(message.properties, _NO_TIMER))


def due_ms_of(properties: bytes) -> int:
    """Return the time a stored message waits for, 0 when its properties have none."""
    value = names.find_property(properties, OUT_MS)
    return int(value) if value is not None and value.isdigit() and len(value) <= 18 else 0


def _find_timer(properties: bytes) -> tuple[bytes, int, bool] | None:
    for name, unit_ms, is_relative in _TIMER_PROPERTIES:
        value = names.find_property(properties, name)
        if value is not None:
            return value, unit_ms, is_relative
    return None
