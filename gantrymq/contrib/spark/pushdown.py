"""Conditions of a batch query that make its ranges smaller, so that less is read.

    topic, broker_name, queue_id    =, IN          which queues: exact
    queue_offset                    =, <, <=, >, >=     exact
    store_timestamp                 =, <, <=, >, >=     by the queues' order of time, with SLACK_MS on both sides;
                                                        Spark looks at the rows again

Clocks of brokers may have been put back, so that a queue is not quite in the order of time: hence the slack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from gantrymq.contrib.spark.ranges import Bounds, Queue

SLACK_MS = 600_000

_CHOICES = ("topic", "broker_name", "queue_id")
_NEVER_NULL = ("topic", "queue_id", "queue_offset")


@dataclass(slots=True)
class Conditions:
    """What a query wants. Times are ms since the epoch, `end` is exclusive."""

    choices: dict[str, set[Any]] = field(default_factory=dict)
    begin: int | None = None
    end: int | None = None
    begin_ms: int | None = None
    end_ms: int | None = None

    def take(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Note what is of use; yield what Spark still has to look at."""
        for item in filters:
            if not self._is_exact(item):
                yield item

    def wants(self, queue: Queue, broker_name: str | None) -> bool:
        """Whether messages of the queue can meet the conditions. broker_name: what its rows say."""
        values = {"topic": queue.topic, "queue_id": queue.queue_id, "broker_name": broker_name}
        return all(values[name] in wanted for name, wanted in self.choices.items())

    def within(self, bounds: Bounds) -> Bounds:
        """The part of these offsets that can meet the conditions."""
        begin = bounds.begin if self.begin is None else max(bounds.begin, self.begin)
        end = bounds.end if self.end is None else min(bounds.end, self.end)
        return Bounds(begin, max(begin, end))

    def _is_exact(self, item: Filter) -> bool:
        if isinstance(item, IsNotNull):
            return item.attribute[0] in _NEVER_NULL
        if isinstance(item, EqualTo | In) and item.attribute[0] in _CHOICES:
            values = set(item.value if isinstance(item, In) else [item.value])
            known = self.choices.get(item.attribute[0])
            self.choices[item.attribute[0]] = values if known is None else values & known
            return True
        if isinstance(item, EqualTo | LessThan | LessThanOrEqual | GreaterThan | GreaterThanOrEqual):
            if item.attribute == ("queue_offset",):
                self._narrow("begin", "end", item, int(item.value))
                return True
            if item.attribute == ("store_timestamp",) and _moment(item.value) is not None:
                self._narrow("begin_ms", "end_ms", item, _moment(item.value) or 0)
        return False

    def _narrow(self, begin_name: str, end_name: str, item: Filter, value: int) -> None:
        begin, end = getattr(self, begin_name), getattr(self, end_name)
        if isinstance(item, GreaterThan | GreaterThanOrEqual | EqualTo):
            least = value + isinstance(item, GreaterThan)
            setattr(self, begin_name, least if begin is None else max(begin, least))
        if isinstance(item, LessThan | LessThanOrEqual | EqualTo):
            most = value + (not isinstance(item, LessThan))
            setattr(self, end_name, most if end is None else min(end, most))


def _moment(value: object) -> int | None:
    """A time of a condition in ms; None when its zone is not known."""
    return int(value.timestamp() * 1000) if isinstance(value, datetime) and value.tzinfo is not None else None
