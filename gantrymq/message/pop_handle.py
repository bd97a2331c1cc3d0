"""The handle of a delivery by POP: which message, leased by which pop, and where its broker keeps the lease.

It is RocketMQ 5's, and opaque to clients of a proxy: start offset of the batch, time of the pop, invisible time (both
ms), revive queue, kind of topic, broker, queue, offset, place in the log. Brokers get all but the last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from gantrymq.errors import ProtocolError
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import POP_CK
from gantrymq.message.topics import is_retry_topic, pop_retry_topic

OWN_TOPIC, RETRY_TOPIC = "0", "1"
_HANDLE = re.compile(
    r"(\d{1,19}) (\d{1,19}) (\d{1,19}) (\d{1,10}) ([0-2]) (\S{1,255}) (\d{1,10}) (\d{1,19}) (\d{1,19})", re.A
)


class PopHandle(NamedTuple):
    """One delivery. Texts of numbers, as they stand in it."""

    start_offset: str
    pop_ms: str
    invisible_ms: str
    revive_queue: str
    kind: str
    broker: str
    queue_id: str
    offset: str
    physical_offset: str

    @classmethod
    def parse(cls, text: str) -> PopHandle:
        """ValueError when it is no handle."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise ValueError("not the handle of a delivery")
        return cls(*match.groups())

    def __str__(self) -> str:
        return " ".join(self)

    @property
    def for_broker(self) -> str:
        return " ".join(self[:-1])

    @property
    def place(self) -> tuple[str, ...]:
        """Which message it is, whatever pop it came by: broker, kind of topic, queue, offset."""
        return self.broker, self.kind, self.queue_id, self.offset

    def leased_topic(self, group: str, topic: str) -> str:
        """The topic whose queue the message is in; `topic`: the one that the client knows."""
        return topic if self.kind == OWN_TOPIC else pop_retry_topic(group, topic)

    def fields(self, group: str, topic: str) -> dict[str, str]:
        """What a request about the delivery says."""
        return {
            "consumerGroup": group,
            "topic": self.leased_topic(group, topic),
            "queueId": self.queue_id,
            "offset": self.offset,
            "extraInfo": self.for_broker,
        }

    def moved(self, answer: Mapping[str, str]) -> PopHandle:
        """The handle after the invisible time was changed: a broker may have made another delivery of it."""
        return self._replace(
            pop_ms=answer.get("popTime", self.pop_ms),
            invisible_ms=answer.get("invisibleTime", self.invisible_ms),
            revive_queue=answer.get("reviveQid", self.revive_queue),
        )


def handles_of(messages: list[MessageExt], head: Mapping[str, str], broker: str) -> list[PopHandle]:
    """A handle for each message of a pop's answer; head: its fields. ProtocolError."""
    try:
        starts = {}
        for part in head["startOffsetInfo"].split(";"):
            kind, queue_id, start = part.split(" ")
            starts[kind, queue_id] = start
        return [_handle_of(message, starts, head, broker) for message in messages]
    except (KeyError, ValueError) as exc:
        raise ProtocolError(f"{broker} answered a pop without usable offsets: {exc}") from exc


def _handle_of(
    message: MessageExt, starts: Mapping[tuple[str, str], str], head: Mapping[str, str], broker: str
) -> PopHandle:
    physical_offset, given = str(message.physical_offset), message.properties.get(POP_CK)
    if given is not None:
        words = given.split(" ")
        return PopHandle.parse(
            " ".join([*words, *([str(message.queue_offset)] if len(words) == 7 else []), physical_offset])
        )
    kind, queue_id = RETRY_TOPIC if is_retry_topic(message.topic) else OWN_TOPIC, str(message.queue_id)
    return PopHandle(
        starts[kind, queue_id],
        head["popTime"],
        head["invisibleTime"],
        head["reviveQid"],
        kind,
        broker,
        queue_id,
        str(message.queue_offset),
        physical_offset,
    )


def attempts_before(head: Mapping[str, str]) -> dict[tuple[str, str], int]:
    """In order: how often messages were delivered before, by queue and offset."""
    found = {}
    for part in head.get("orderCountInfo", "").split(";"):
        _, _, rest = part.partition(" qo")
        queue_id, has_offset, told = rest.partition("%")
        offset, _, times = told.partition(" ")
        if has_offset and times.isdecimal():
            found[queue_id, offset] = int(times)
    return found
