"""Conditions of a query as ranges."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from gantrymq.contrib.spark.pushdown import Conditions
from gantrymq.contrib.spark.ranges import Bounds, Queue

MOMENT = datetime(2026, 11, 21, 12, tzinfo=UTC)
ORDERS = Queue("orders", "broker-a", 3)


def test_topics_queues_and_offsets_are_taken_whole() -> None:
    conditions = Conditions()
    filters = [
        IsNotNull(("topic",)),
        In(("topic",), ("orders", "mail")),
        EqualTo(("topic",), "orders"),
        EqualTo(("queue_id",), 3),
        GreaterThan(("queue_offset",), 10),
        LessThanOrEqual(("queue_offset",), 20),
    ]
    assert list(conditions.take(filters)) == []
    assert conditions.wants(ORDERS, "broker-a")
    assert not conditions.wants(ORDERS._replace(topic="mail"), "broker-a")
    assert not conditions.wants(ORDERS._replace(queue_id=2), "broker-a")
    assert conditions.within(Bounds(0, 100)) == (11, 21)
    assert conditions.within(Bounds(50, 100)) == (50, 50)


def test_times_narrow_the_ranges_and_spark_looks_again() -> None:
    conditions = Conditions()
    since, before = GreaterThanOrEqual(("store_timestamp",), MOMENT), LessThan(("store_timestamp",), MOMENT)
    assert list(conditions.take([since, before])) == [since, before]
    ms = int(MOMENT.timestamp() * 1000)
    assert (conditions.begin_ms, conditions.end_ms) == (ms, ms)


def test_what_is_not_known_is_left_to_spark() -> None:
    conditions = Conditions()
    filters = [
        EqualTo(("tags",), "a"),
        Not(EqualTo(("topic",), "orders")),
        IsNotNull(("store_timestamp",)),
        GreaterThan(("store_timestamp",), MOMENT.replace(tzinfo=None)),
    ]
    assert list(conditions.take(filters)) == filters
    assert conditions == Conditions()
