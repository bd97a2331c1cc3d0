"""Reports of a few rows with a real Spark, each number counted by hand."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from appliance.reports.samples.lines import MINUTE_MS
from tests.appliance.reports.stores import HOUR_MS, NOON
from tests.appliance.reports.with_spark.inputs import frame, samples_ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_traffic_counts_by_topic_and_hour_and_marks_what_is_not_an_ordinary_topic(spark: SparkSession) -> None:
    """S50: names with quotes in them are bound as values."""
    from appliance.reports.transforms import traffic_per_topic_and_hour

    messages = frame(
        spark,
        [
            ("orders", NOON, 100, 10),
            ("orders", NOON + HOUR_MS - 1, 200, 20),
            ("orders", NOON + HOUR_MS, 300, 30),
            ("orders", NOON - 1, 1, 1),
            ("orders", NOON + 2 * HOUR_MS, 1, 1),
            ("%RETRY%g", NOON, 1, 0),
            ("%DLQ%g", NOON, 1, 0),
            ("RMQ_SYS_TRACE_TOPIC", NOON, 1, 0),
            ("rmq_sys_x", NOON, 1, 0),
            ('it\'s "odd"', NOON, 1, 0),
        ],
    )
    rows = traffic_per_topic_and_hour(messages, NOON, NOON + 2 * HOUR_MS).collect()
    assert [(row.hour.hour, row.topic, row.kind, row.messages, row.stored_bytes, row.body_bytes) for row in rows] == [
        (12, "%DLQ%g", "dead letter", 1, 1, 0),
        (12, "%RETRY%g", "retry", 1, 1, 0),
        (12, "RMQ_SYS_TRACE_TOPIC", "system", 1, 1, 0),
        (12, 'it\'s "odd"', "normal", 1, 1, 0),
        (12, "orders", "normal", 2, 300, 30),
        (12, "rmq_sys_x", "system", 1, 1, 0),
        (13, "orders", "normal", 1, 300, 30),
    ]
    bound = traffic_per_topic_and_hour(messages, NOON, NOON + HOUR_MS, ['it\'s "odd"', "' OR 1=1 --"]).collect()
    assert [row.topic for row in bound] == ['it\'s "odd"']


def test_the_report_of_slaves_of_ten_rows_is_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.transforms import TRANSFORMS, Scope

    noon, minute = NOON, MINUTE_MS
    samples = spark.createDataFrame(
        [
            (noon - minute, "a", "a:1", 9999, 9999, 99.0, False, 9e9, 60),
            (noon, "a", "a:1", 0, 0, 0.0, True, 100.0, 60),
            (noon + minute, "a", "a:1", 700, 7, 0.4, True, 200.0, 30),
            (noon + 2 * minute, "a", "a:1", 300, None, 2.5, False, 0.0, 10),
            (noon + 59 * minute, "a", "a:1", 0, 0, 0.0, True, 0.0, 50),
            (noon, "b", "b:1", 5, None, 0.1, True, 10.0, 60),
            (noon + minute, "b", "b:1", 4, None, 0.2, True, 20.0, 60),
            (noon + 60 * minute, "a", "a:1", 1, 1, 0.1, True, 1.0, 60),
            (noon + 61 * minute, "a", "a:1", 2, 3, 0.3, False, 3.0, 60),
            (noon + 120 * minute, "a", "a:1", 9999, 9999, 99.0, False, 9e9, 60),
        ],
        samples_ddl("slaves"),
    )
    found = TRANSFORMS["slaves"](samples, Scope(noon, noon + 2 * HOUR_MS)).collect()
    assert [tuple(row) for row in found] == [
        ("2026-11-21 12:00", "a:1", 700, 7, 2.5, 4, 0.75, pytest.approx(12_000 / 150)),
        ("2026-11-21 12:00", "b:1", 5, None, 0.2, 2, 1.0, 15.0),
        ("2026-11-21 13:00", "a:1", 2, 3, 0.3, 2, 0.5, 2.0),
    ]


def test_the_lag_of_ten_rows_is_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.transforms import TRANSFORMS, Scope

    noon, minute = NOON, MINUTE_MS
    rows = [
        (noon - minute, "a", 99, 99.0), (noon, "a", 5, 10.0), (noon + minute, "a", 7, 10.5),
        (noon + 2 * minute, "a", None, None), (noon + 60 * minute, "a", 1, 0.0), (noon, "b", 3, 61.0),
        (noon + minute, "b", 4, 59.0), (noon, "c", 0, 0.0), (noon + minute, "c", 2, 3000.0),
        (noon + 120 * minute, "a", 99, 99.0),
    ]  # fmt: skip
    samples = spark.createDataFrame(
        [(at, group, lag, late, 1, 10, 20, 0, 1, 120, 240, 1) for at, group, lag, late in rows], samples_ddl("groups")
    )
    scope = Scope(noon, noon + 2 * HOUR_MS, promises={"a": 10.0, "": 60.0})
    found = TRANSFORMS["lag"](samples, scope).collect()
    assert [tuple(row) for row in found] == [
        ("2026-11-21 12:00", "a", 10.5, 10.0, 1, 3, 7, 2.0, 4.0),
        ("2026-11-21 12:00", "b", 61.0, 60.0, 1, 2, 4, 2.0, 4.0),
        ("2026-11-21 12:00", "c", 3000.0, 60.0, 1, 2, 2, 2.0, 4.0),
        ("2026-11-21 13:00", "a", 0.0, 10.0, 0, 1, 1, 2.0, 4.0),
    ]
    without = TRANSFORMS["lag"](samples, Scope(noon, noon + HOUR_MS, promises={"b": 1.0})).collect()
    assert [(row.group, row.promise_seconds, row.minutes_over) for row in without] == [
        ("a", None, None), ("b", 1.0, 2), ("c", None, None),
    ]  # fmt: skip


def test_the_rates_of_a_group_are_those_that_its_offsets_tell(spark: SparkSession) -> None:
    """A recount from nothing but offsets: minutes seen in part, minutes left out, and rows of before they counted."""
    from appliance.reports.transforms import TRANSFORMS, Scope

    offsets = {"burst": [0, 20_000, 20_000, 20_000], "steady": [0, 23_990, 47_980, 71_970, 95_960, 119_950]}
    at = {"burst": [0, 1, 2, 3], "steady": [0, 1, 3, 4, 5, 9]}  # the minute of each
    rows: list[tuple[Any, ...]] = [
        (NOON + here * MINUTE_MS, name, 0, 0.0, 1, done, done, 0, 5, None, done - before, here - earlier)
        for name in offsets
        for (earlier, here), (before, done) in zip(
            itertools.pairwise(at[name]), itertools.pairwise(offsets[name]), strict=True
        )
    ]
    rows.append((NOON, "steady", 0, 0.0, 1, 0, 0, 0, 1, None, None, None))
    samples = spark.createDataFrame(rows, samples_ddl("groups"))
    found = TRANSFORMS["lag"](samples, Scope(NOON, NOON + HOUR_MS)).collect()
    assert [(row.group, row.in_rate, row.out_rate) for row in found] == [
        (name, None, pytest.approx((offsets[name][-1] - offsets[name][0]) / (at[name][-1] * 60))) for name in offsets
    ]


def test_what_is_unused_of_ten_rows_is_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.runner.inputs import NAMES_DDL
    from appliance.reports.transforms import TRANSFORMS, Scope

    day = 24 * HOUR_MS
    names = [("topic", "busy"), ("topic", "never"), ("topic", "old"), ("group", "alive"), ("group", "asleep"),
             ("group", "moving"), ("group", "unseen"), ("group", "fresh")]  # fmt: skip
    stored = [("busy", NOON), ("busy", NOON - 5 * day), ("old", NOON - 3 * day), ("old", NOON + day), ("gone", NOON)]
    seen = [  # members, consumer offset, newest consumed
        ("alive", NOON, 1, 10, 0), ("asleep", NOON - 2 * day, 1, 10, NOON - 4 * day), ("asleep", NOON, 0, 10, 0),
        ("moving", NOON, 0, 10, 0), ("moving", NOON + MINUTE_MS, 0, 11, NOON - day), ("unseen", NOON - day, 0, 1, 0),
        ("fresh", NOON, 0, 0, 0), ("deleted", NOON, 0, 0, 0),
    ]  # fmt: skip
    samples = [
        (at, group, 0, 0.0, members, at_offset, 25, last, 1, 0, 0, 1) for group, at, members, at_offset, last in seen
    ]
    found = TRANSFORMS["unused"](
        spark.createDataFrame(stored, "topic STRING, store_timestamp BIGINT"),
        spark.createDataFrame(names, NAMES_DDL),
        spark.createDataFrame(samples, samples_ddl("groups")),
        Scope(NOON - HOUR_MS, NOON + HOUR_MS),
    ).collect()
    assert [tuple(row) for row in found] == [
        ("topic", "never", None, None, None),
        ("topic", "old", NOON - 3 * day, 3, None),
        ("group", "fresh", None, None, 25),
        ("group", "asleep", NOON - 2 * day, 2, 15),
    ]


def test_days_are_those_of_the_zone_when_its_clocks_change(spark: SparkSession) -> None:
    """A message an hour: a day of 23 and one of 25 hours; the day before and the week before are the calendar's."""
    from appliance.reports.transforms import Scope, traffic_per_day

    for day, hours in ((datetime(2026, 3, 29), 23), (datetime(2026, 10, 25), 25)):
        zone = ZoneInfo("Europe/Berlin")
        first = int((day - timedelta(days=8)).replace(tzinfo=zone).timestamp() * 1000)
        begin, end = (int(moment.replace(tzinfo=zone).timestamp() * 1000) for moment in (day, day + timedelta(days=2)))
        messages = frame(spark, [("orders", at, 100, 10) for at in range(first, end, HOUR_MS)])
        rows = traffic_per_day(messages, Scope(begin + HOUR_MS, end, zone="Europe/Berlin")).collect()
        assert [tuple(row) for row in rows] == [
            (f"{day:%Y-%m-%d}", hours, 100 * hours, 24, hours / 24 - 1, 24, hours / 24 - 1),
            (f"{day + timedelta(days=1):%Y-%m-%d}", 24, 2400, hours, 24 / hours - 1, 24, 0.0),
        ]


def test_a_day_without_messages_is_a_row_but_one_that_has_not_come_is_none(spark: SparkSession) -> None:
    from appliance.reports.transforms import Scope, traffic_per_day

    day = 24 * HOUR_MS
    messages = frame(spark, [("orders", NOON + at * day, 100, 10) for at in (0, 0, 2)])
    begin, end, now = NOON - 3 * day, NOON + 9 * day, NOON + 3 * day + HOUR_MS
    rows = traffic_per_day(messages, Scope(begin, end, now_ms=now)).collect()
    assert [(row.day, row.messages, row.stored_bytes, row.day_change) for row in rows] == [
        ("2026-11-21", 2, 200, None),
        ("2026-11-22", 0, 0, -1.0),
        ("2026-11-23", 1, 100, None),
        ("2026-11-24", 0, 0, -1.0),
    ]
    assert traffic_per_day(messages, Scope(begin, begin + day, now_ms=now)).count() == 0


def test_a_forecast_of_a_range_that_ends_tomorrow_begins_today(spark: SparkSession) -> None:
    from pyspark.sql import functions

    from appliance.reports.transforms import TRANSFORMS, Scope

    day = 24 * HOUR_MS
    stored = [("orders", NOON + at * day, 100, 10) for at in range(5)]
    messages = frame(spark, stored).withColumn("broker_name", functions.lit("broker-a"))
    scope = Scope(NOON, NOON + 30 * day, now_ms=NOON + 4 * day)
    kinds = Counter(row.kind for row in TRANSFORMS["forecast"](messages, scope).collect())
    assert kinds == {"stored": 3, "forecast": 14}


def test_days_and_months_of_a_zone_whose_clocks_change_a_minute_after_midnight(spark: SparkSession) -> None:
    """Newfoundland's until 2011: one UTC hour holds two days of it, and here two months."""
    from appliance.reports.transforms import Scope, bytes_by_topic_and_month, traffic_per_day

    zone = ZoneInfo("America/St_Johns")
    begin, end = (
        int(day.replace(tzinfo=zone).timestamp() * 1000) for day in (datetime(2009, 10, 30), datetime(2009, 11, 3))
    )
    times = range(begin, end, 20_000)
    days = Counter(f"{datetime.fromtimestamp(at / 1000, zone):%Y-%m-%d}" for at in times)
    assert days["2009-11-01"] != days["2009-10-30"], "no clock changes here"
    messages = frame(spark, [("orders", at, 100, 10) for at in times])
    scope = Scope(begin, end, zone=zone.key)
    assert {row.day: row.messages for row in traffic_per_day(messages, scope).collect()} == days
    months = Counter(day[:7] for day in days.elements())
    assert {row.month: row.messages for row in bytes_by_topic_and_month(messages, scope).collect()} == months


def test_each_report_of_ten_rows_is_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.transforms import TRANSFORMS, Scope

    noon, hour = NOON, HOUR_MS
    columns = (
        "topic STRING, born_host STRING, store_timestamp BIGINT, born_timestamp BIGINT, size_bytes INT, "
        "body_bytes INT, reconsume_times INT, cause STRING"
    )
    messages = spark.createDataFrame(
        [
            ("orders", "a", noon, noon - 10, 100, 1, 0, None),
            ("orders", "a", noon + hour, noon + hour - 30, 100, 3, 0, None),
            ("orders", "b", noon + hour, noon + hour + 5, 100, 5, 0, None),
            ("mail", "b", noon + 2 * hour, noon + 2 * hour, 700, 9, 0, None),
            ("%RETRY%g", "a", noon, noon - 1, 10, 1, 2, None),
            ("%RETRY%g", "a", noon + hour, noon - 1, 10, 1, 3, "shop.OutOfStock at a.py:1"),
            ("%DLQ%g", "a", noon + hour, noon - 1, 10, 1, 16, "shop.OutOfStock at a.py:1"),
            ("SCHEDULE_TOPIC_XXXX", "a", noon, noon - 1, 10, 1, 0, None),
            ("orders", "a", noon - 1, noon - 1, 5, 1, 0, None),
            ("orders", "a", noon + 3 * hour, noon, 5, 1, 0, None),
        ],
        columns,
    )
    expected = {
        "months": [
            ("2026-11", "mail", "normal", 1, 700, 9),
            ("2026-11", "orders", "normal", 3, 300, 9),
            ("2026-11", "%RETRY%g", "retry", 2, 20, 2),
            ("2026-11", "%DLQ%g", "dead letter", 1, 10, 1),
            ("2026-11", "SCHEDULE_TOPIC_XXXX", "system", 1, 10, 1),
        ],
        "producers": [("a", 2, 200, 1, noon, noon + hour), ("b", 2, 800, 2, noon + hour, noon + 2 * hour)],
        "talkers": [("b", "mail", 1, 700, 0.7), ("a", "orders", 2, 200, 0.2), ("b", "orders", 1, 100, 0.1)],
        "sizes": [("mail", 1, 9, 9.0, 9.0, 9.0, 9), ("orders", 3, 1, 3.0, 4.6, 4.96, 5)],
        "latency": [("mail", 1, 0.0, 0.0, 0.0, 0, 0), ("orders", 3, 10.0, 26.0, 29.6, 30, 1)],
        "retries": [
            ("2026-11-21", "g", "no cause reported", 1, 0, 2),
            ("2026-11-21", "g", "shop.OutOfStock at a.py:1", 1, 1, 16),
        ],
    }
    for name, rows in expected.items():
        found = TRANSFORMS[name](messages, Scope(noon, noon + 3 * hour)).collect()
        assert [tuple(row) for row in found] == [pytest.approx(row) for row in rows], name
    only = TRANSFORMS["sizes"](messages, Scope(noon, noon + 3 * hour, topics=["mail"])).collect()
    assert [row.topic for row in only] == ["mail"]


def test_delays_and_transactions_of_ten_rows_are_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.transforms import Scope, delays, transactions

    half, op, day = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", 24 * HOUR_MS
    rows = [
        ("SCHEDULE_TOPIC_XXXX", 2, 0, 0, NOON),
        ("SCHEDULE_TOPIC_XXXX", 2, 0, 1, NOON),  # a group sent it back
        ("SCHEDULE_TOPIC_XXXX", 17, 0, 0, NOON),
        ("rmq_sys_wheel_timer", 0, 0, 0, NOON),
        (half, 0, 0, 0, NOON),
        (half, 0, 0, 0, NOON, 1),  # stored again, because its producer was asked
        (half, 0, 0, 0, NOON + day, 0),  # or before that, in the time in which nobody asks
        (half, 0, 0, 0, NOON + day),
        (op, 0, 0, 0, NOON + day),
        (op, 0, 0, 0, NOON + day),
        ("orders", 0, 8, 0, NOON + day),  # committed
        ("%RETRY%g", 0, 8, 1, NOON + day),  # and sent back
        ("TRANS_CHECK_MAX_TIME_TOPIC", 0, 0, 0, NOON + day),
    ]
    messages = spark.createDataFrame(
        [(*row[:5], row[5] if len(row) > 5 else None, 100) for row in rows],
        "topic STRING, queue_id INT, sys_flag INT, reconsume_times INT, store_timestamp BIGINT, check_times INT, "
        "size_bytes INT",
    )
    scope = Scope(NOON, NOON + 2 * day)
    assert [tuple(row) for row in delays(messages, scope).collect()] == [
        ("2026-11-21", "level 03", 1, 1, 200),
        ("2026-11-21", "level 18", 1, 0, 100),
        ("2026-11-21", "custom time", 1, 0, 100),
    ]
    assert [tuple(row) for row in transactions(messages, scope).collect()] == [
        ("2026-11-21", 1, 0, 0, 0),
        ("2026-11-22", 1, 1, 1, 1),
    ]


def test_a_forecast_follows_the_line_of_whole_days(spark: SparkSession) -> None:
    """The day a broker began and the one that is not over don't count; a day without messages does; two say nothing."""
    from appliance.reports.transforms import Scope, forecast

    day = 24 * HOUR_MS
    first = NOON - NOON % day
    grows = [("a", first + number * day + HOUR_MS, 1000 * number) for number in (0, 1, 2, 3, 4)]
    rests = [("b", first + day, 500), ("b", first + 2 * day, 300), ("b", first + 4 * day, 300)]
    young = [("c", first + 2 * day, 7)]
    messages = spark.createDataFrame(
        [(broker, "orders", at, size) for broker, at, size in (*grows, ("a", first + 5 * day, 9), *rests, *young)],
        "broker_name STRING, topic STRING, store_timestamp BIGINT, size_bytes INT",
    )
    reach = (60_000 * (1 + 1 / 3 + 2**2 / 2)) ** 0.5  # residuals of 100, -200, 100; the day is two from the mean
    rows = forecast(messages, Scope(first, first + 5 * day + HOUR_MS)).collect()
    found = {name: [tuple(row)[1:] for row in rows if row.broker == name] for name in "abc"}
    stored = [(f"2026-11-2{1 + number}", "stored", 1000 * number, None, None) for number in (1, 2, 3, 4)]
    ahead = [(f"2026-11-{25 + step}", "forecast", 4000 + 1000 * step) for step in range(1, 6)]
    assert found["a"][:4] == stored
    assert found["a"][4:9] == [(*row, row[2], row[2]) for row in ahead]  # a straight line has no spread
    assert len(found["a"]) == 18
    assert [row[2] for row in found["b"][:3]] == [300, 0, 300]
    day_after = found["b"][3]  # a flat line through 300, 0, 300: Student's t of one degree of freedom is 3.0777
    assert day_after[2] == 200 and day_after[3] == 0 and day_after[4] == pytest.approx(200 + 3.0777 * reach, abs=1)
    assert [row[1] for row in found["c"]] == ["stored", "stored"]
