"""The handle of a delivery, and what a pop's answer says of offsets: texts as RocketMQ 5 writes them.

A handle (POP_CK, `extraInfo`) is eight words: start offset of the batch, time of the pop, invisible time (both ms),
revive queue (999: in order), kind of topic (0 its own, 1 the retry topic), broker, queue, offset. What we read of it is
the time of the pop, which names the delivery, and the kind of topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from appliance.remoting.header_fields import DIGITS_MAX, FieldError, quoted

ORDER_QUEUE = 999  # in place of the revive queue: messages in order
REVIVE_QUEUE = 0  # of all others; there is no revive log here
OWN_TOPIC, RETRY_TOPIC = "0", "1"
HANDLE_CHARS_MAX = 512


class Handle(NamedTuple):
    """What was handed out: by which pop, and for how long."""

    start_offset: int
    pop_ms: int
    invisible_ms: int
    revive_queue: int
    kind: str
    broker: str
    queue_id: int
    offset: int

    @classmethod
    def parse(cls, text: str, offset: int = -1) -> Handle:
        """Read one. The offset may be missing; RocketMQ's proxy adds the offset in the log. FieldError."""
        words = text.split(" ") if len(text) <= HANDLE_CHARS_MAX else []
        if len(words) not in (7, 8, 9):
            raise FieldError(f"extraInfo={quoted(text)} is no handle of a delivery")
        numbers = [words[at] for at in (0, 1, 2, 3, 6, *range(7, len(words)))]
        if not all(word.isascii() and word.isdigit() and len(word) <= DIGITS_MAX for word in numbers):
            raise FieldError(f"extraInfo={quoted(text)} is no handle of a delivery")
        start, pop_ms, invisible_ms, revive, queue_id, *last = map(int, numbers)
        return cls(start, pop_ms, invisible_ms, revive, words[4], words[5], queue_id, last[0] if last else offset)

    def __str__(self) -> str:
        return " ".join(map(str, self))


def start_info(kind: str, queue_id: int, start_offset: int) -> str:
    """A part of `startOffsetInfo`; parts are joined by semicolons."""
    return f"{kind} {queue_id} {start_offset}"


def offsets_info(kind: str, queue_id: int, offsets: Sequence[int]) -> str:
    """A part of `msgOffsetInfo`."""
    return f"{kind} {queue_id} {','.join(map(str, offsets))}"


def counts_info(kind: str, queue_id: int, counts: Sequence[tuple[int, int]]) -> list[str]:
    """Parts of `orderCountInfo`: how often each message was handed out before, then the least of them for the queue."""
    parts = [f"{kind} qo{queue_id}%{offset} {times}" for offset, times in counts if times]
    return [*parts, f"{kind} {queue_id} {min((times for _offset, times in counts), default=0)}"]
