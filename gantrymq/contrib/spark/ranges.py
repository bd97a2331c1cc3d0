"""Ranges of queues: what a partition reads, how many messages a micro-batch takes of each, and what was lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from gantrymq.contrib.spark.errors import MessagesLost

NOWHERE = -1  # a place in the log that is not known


class Queue(NamedTuple):
    """One queue. `broker_name` is empty in a store folder, which is one broker's."""

    topic: str
    broker_name: str
    queue_id: int

    @property
    def label(self) -> str:
        """Its name inside of the topic, in offsets: "3", or "broker-a:3"."""
        return f"{self.broker_name}:{self.queue_id}" if self.broker_name else str(self.queue_id)

    def __str__(self) -> str:
        at = f" of {self.broker_name}" if self.broker_name else ""
        return f"topic {self.topic}, queue {self.queue_id}{at}"


class Bounds(NamedTuple):
    """The first offset that can be read, and the one that the next message will get."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class QueueRange:
    """Messages of one queue: from `begin` up to `end`, queue offsets."""

    queue: Queue
    begin: int
    end: int

    def __len__(self) -> int:
        return max(0, self.end - self.begin)

    def __str__(self) -> str:
        return f"{self.queue}: offsets {self.begin} to {self.end - 1} ({len(self)} messages)"


@dataclass(frozen=True, slots=True)
class Lost:
    """Messages that can't be read: deleted, or damaged on the broker's disk.

    place: None: deleted; else where in the broker's log the first of them is, in bytes, NOWHERE when that is not known.
    """

    range: QueueRange
    place: int | None = None

    @property
    def is_damaged(self) -> bool:
        return self.place is not None

    def __str__(self) -> str:
        return f"{self.range}, place {self.place} of the log" if self.place not in (None, NOWHERE) else str(self.range)


class Partition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: Sequence[QueueRange]) -> None:
        super().__init__(None)
        self.ranges: tuple[QueueRange, ...] = tuple(ranges)


Starts = Mapping[Queue, int]  # an offset for each queue


def ranges_between(starts: Starts, ends: Starts) -> list[QueueRange]:
    """The ranges with something in them. A queue that has no start is not read."""
    found = (QueueRange(queue, starts[queue], end) for queue, end in sorted(ends.items()) if queue in starts)
    return [item for item in found if len(item)]


def limited(starts: Starts, ends: Starts, messages_max: int) -> dict[Queue, int]:
    """The ends of a batch of so many messages at most: of each queue its share of what waits, as Kafka's source does.

    At least one message is taken where some wait, so that every query goes on.
    """
    waiting = {queue: max(0, end - starts.get(queue, end)) for queue, end in ends.items()}
    total = sum(waiting.values())
    if total <= messages_max:
        return dict(ends)
    taken = {queue: count * messages_max // total for queue, count in waiting.items()}
    left = messages_max - sum(taken.values())
    for queue, count in sorted(waiting.items()):  # what rounding left over
        if left and taken[queue] < count:
            taken[queue] += 1
            left -= 1
    return {
        queue: starts[queue] + count if count else min(starts.get(queue, ends[queue]), ends[queue])
        for queue, count in taken.items()
    }


def cut(ranges: Iterable[QueueRange], partitions_min: int) -> list[QueueRange]:
    """The ranges in pieces of about one size, at least so many if there are as many messages."""
    whole = list(ranges)
    total = sum(map(len, whole))
    if not total or partitions_min <= len(whole):
        return whole
    pieces: list[QueueRange] = []
    for item in whole:
        count = min(len(item), max(1, -(-len(item) * partitions_min // total)))
        marks = [item.begin + len(item) * number // count for number in range(count + 1)]
        pieces += [QueueRange(item.queue, begin, end) for begin, end in pairwise(marks)]
    return pieces


def lost_text(lost: Sequence[Lost]) -> str:
    """What was lost, in a sentence."""
    kinds = (
        ("deleted before they were read", [item for item in lost if not item.is_damaged]),
        ("damaged on the broker's disk", [item for item in lost if item.is_damaged]),
    )
    return ". ".join(f"{what}: {_listed(items)}" for what, items in kinds if items)


def _listed(lost: Sequence[Lost]) -> str:
    more = f"; and {len(lost) - 10} more ranges" if len(lost) > 10 else ""
    return "; ".join(map(str, lost[:10])) + more


def messages_lost(lost: Sequence[Lost]) -> MessagesLost:
    """The error for a query that must not go on without them."""
    reasons = [
        "The broker's retention was faster than this query, or a topic was deleted."
        if not item.is_damaged
        else "`gantry store verify` says what else in its log is damaged."
        for item in sorted(lost, key=lambda item: item.is_damaged)
    ]
    return MessagesLost(
        f"{lost_text(lost)}. {' '.join(dict.fromkeys(reasons))} "
        "With option failOnDataLoss=false a query goes on with what is left, and reports the gap"
    )
