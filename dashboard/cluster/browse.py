"""Looking at messages newest first over many queues, without I/O: which spans to read, how to merge, where to go on.

A queue can only be read upwards, so the newest `limit` of each are read and merged by store time. The cursor of the
next older page names, for each queue, the offset below which nothing was shown: "broker-a.0:120,broker-a.1:118".
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboard.cluster.errors import explain
from dashboard.cluster.values import PartialFailure, QueueExtent
from dashboard.language.sentences import gettext
from gantrymq.message.model import MessageExt

ROUNDS_MAX = 8  # pulls for one span of one queue
CURSOR_CHARS_MAX = 8_000


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets start … end - 1 of one queue."""

    broker_name: str
    queue_id: int
    start: int
    end: int
    min_offset: int

    @property
    def key(self) -> str:
        return f"{self.broker_name}.{self.queue_id}"


@dataclass(frozen=True, slots=True)
class Read:
    """What a span held, in any order."""

    span: Span
    messages: list[MessageExt]


def spans(queues: Iterable[QueueExtent], limit: int, before: Mapping[str, int], only: str | None) -> list[Span]:
    """The span of each queue that can hold one of the `limit` newest messages below the cursor."""
    found = []
    for queue in queues:
        if only and queue.key != only:
            continue
        end = min(before.get(queue.key, queue.max_offset), queue.max_offset)
        start = max(queue.min_offset, end - limit)
        if end > start:
            found.append(Span(queue.broker_name, queue.queue_id, start, end, queue.min_offset))
    return found


def queue_failure(queue: Span | QueueExtent, exc: Exception) -> PartialFailure:
    """That a queue was not read."""
    names = {"broker_name": queue.broker_name, "queue_id": queue.queue_id}
    return PartialFailure(gettext("%(broker_name)s queue %(queue_id)s") % names, explain(exc))


def newest_first(message: MessageExt) -> tuple[int, int, str]:
    """Sort key: store time down; within a millisecond the order of the commit log, which spans a broker's queues."""
    return -message.store_timestamp, -message.physical_offset, message.broker_name


def merge(reads: Sequence[Read], limit: int) -> tuple[list[MessageExt], dict[str, int]]:
    """The `limit` newest of what was read, and for each queue read the offset below which nothing was shown."""
    shown = heapq.nsmallest(limit, (message for read in reads for message in read.messages), key=newest_first)
    lowest: dict[str, int] = {}
    for message in shown:
        key = f"{message.broker_name}.{message.queue_id}"
        lowest[key] = min(lowest.get(key, message.queue_offset), message.queue_offset)
    return shown, {read.span.key: lowest.get(read.span.key, read.span.end) for read in reads}


def next_cursor(
    queues: Iterable[QueueExtent], before: Mapping[str, int], reached: Mapping[str, int]
) -> dict[str, int] | None:
    """Where the next older page begins in every queue, None when there is none. Queues that are done stay done."""
    cursor, has_older = {}, False
    for queue in queues:
        cursor[queue.key] = reached.get(queue.key, min(before.get(queue.key, queue.max_offset), queue.max_offset))
        has_older = has_older or (queue.key in reached and cursor[queue.key] > queue.min_offset)
    return cursor if has_older else None


def write_cursor(cursor: Mapping[str, int]) -> str:
    return ",".join(f"{key}:{offset}" for key, offset in sorted(cursor.items()))


def read_cursor(text: str) -> dict[str, int]:
    """The cursor of an address; what is malformed is left out, so an edited address shows the newest."""
    cursor = {}
    for part in text[:CURSOR_CHARS_MAX].split(","):
        key, _, offset = part.rpartition(":")
        if key and offset.isdecimal() and len(offset) < 20:
            cursor[key] = int(offset)
    return cursor
