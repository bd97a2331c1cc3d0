"""What was stored: traffic, hosts, sizes, latency, retries."""

from __future__ import annotations

import zoneinfo
from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from appliance.reports.catalogue import REPORTS
from appliance.reports.runs import HOUR_MS
from appliance.reports.samples.lines import DAY_MS, MINUTE_MS
from appliance.reports.transforms.scope import Scope, in_order, topic_kind
from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX

TALKERS = 100
NO_CAUSE = "no cause reported"
PERCENTILES = (0.5, 0.9, 0.99)
TOPIC_CHARS_MAX = 32767  # more than a record can hold


def traffic_per_topic_and_hour(
    messages: DataFrame, begin_ms: int, end_ms: int, topics: Sequence[str] = ()
) -> DataFrame:
    """Messages and bytes of each topic in each hour (UTC, by store time) of [begin_ms, end_ms), all brokers together.

    A record is counted where and when it was stored: a delayed message once in the schedule topic and once in its own,
    a retried one in the group's retry topic too. `kind` distinguishes these: normal, system, retry, dead letter.
    """
    wanted = Scope(begin_ms, end_ms, topics).cut(messages)
    return in_order(
        wanted.groupBy(step_begin("store_timestamp", HOUR_MS).alias("hour_ms"), "topic")
        .agg(*_sums(), F.sum("body_bytes").alias("body_bytes"))
        .select(
            F.timestamp_millis("hour_ms").alias("hour"),
            "topic",
            topic_kind(F.col("topic")).alias("kind"),
            "messages",
            "stored_bytes",
            "body_bytes",
        ),
        "hour",
        "topic",
    )


def traffic_per_day(messages: DataFrame, scope: Scope) -> DataFrame:
    """Messages of each day of the zone beside the day before and the week before; 0 where the lake has none.

    The messages must reach back a week and a day before the scope; the first day counts whole. A day without messages
    is a row, too, if it is over or going on, and the lake has something of an earlier one.
    """
    read_from_ms = scope.begin_ms - REPORTS["days"].days_before * DAY_MS  # what is older is in no day that is shown
    step = step_of(read_from_ms, scope.end_ms, scope.zone)
    days = (
        Scope(0, scope.end_ms, scope.topics, scope.zone)
        .ordinary(messages)
        .groupBy(step_begin("store_timestamp", step).alias("step_ms"))
        .agg(*_sums())
        .groupBy(F.to_date(scope.local("step_ms")).alias("date"))
        .agg(*_sums_of_sums())
    )
    day = F.col("date")
    return in_order(
        _calendar(days, scope).select(
            day,
            *(_of_day(day, name).alias(name) for name in ("messages", "stored_bytes")),
            _of_day(F.date_sub(day, 1), "messages").alias("day_before"),
            _of_day(F.date_sub(day, 7), "messages").alias("week_before"),
        ),
        "date",
    ).select(
        F.date_format(day, "yyyy-MM-dd").alias("day"),
        "messages",
        "stored_bytes",
        "day_before",
        _change("day_before").alias("day_change"),
        "week_before",
        _change("week_before").alias("week_change"),
    )


def _calendar(days: DataFrame, scope: Scope) -> DataFrame:
    """date, sums: each day of the scope from the first that is known to the last that has begun.

    sums: those of all days, by date. So the lake is read once, where joins of days would read it for each of them.
    """
    first, last = F.col("first"), F.col("last")
    known = days.agg(
        F.min("date").alias("first"),
        F.max("date").alias("last"),
        F.map_from_entries(F.collect_list(F.struct("date", F.struct("messages", "stored_bytes")))).alias("sums"),
    ).where(first.isNotNull())
    known = known.select(
        F.greatest(first, scope.date_at(scope.begin_ms)).alias("first"),
        F.greatest(last, scope.date_at(scope.over_ms - 1)).alias("last"),
        "sums",
    )
    return known.where(first <= last).select(F.explode(F.sequence(first, last)).alias("date"), "sums")


def _of_day(date: Column, name: str) -> Column:
    return F.coalesce(F.try_element_at("sums", date)[name], F.lit(0))


def _change(before: str) -> Column:
    """Against that number; null where it is 0."""
    return F.col("messages") / F.nullif(F.col(before), F.lit(0)) - 1


def bytes_by_topic_and_month(messages: DataFrame, scope: Scope) -> DataFrame:
    """What each topic stored in each month of the zone, the largest first."""
    step = step_of(scope.begin_ms, scope.end_ms, scope.zone)
    months = (
        scope.cut(messages)
        .groupBy(step_begin("store_timestamp", step).alias("step_ms"), "topic")
        .agg(*_sums(), F.sum("body_bytes").alias("body_bytes"))
        .groupBy(F.date_format(scope.local("step_ms"), "yyyy-MM").alias("month"), "topic")
        .agg(*_sums_of_sums(), F.sum("body_bytes").alias("body_bytes"))
    )
    return in_order(months, "month", F.desc("stored_bytes"), "topic").select(
        "month", "topic", topic_kind(F.col("topic")).alias("kind"), "messages", "stored_bytes", "body_bytes"
    )


def producers_by_host(messages: DataFrame, scope: Scope) -> DataFrame:
    """Each host that sent to an ordinary topic, the busiest first."""
    hosts = (
        scope.ordinary(messages)
        .groupBy(F.col("born_host").alias("host"), "topic")
        .agg(*_sums(), F.min("store_timestamp").alias("first_ms"), F.max("store_timestamp").alias("last_ms"))
        .groupBy("host")
        .agg(
            *_sums_of_sums(),
            F.count("*").alias("topics"),
            F.min("first_ms").alias("first_ms"),
            F.max("last_ms").alias("last_ms"),
        )
    )
    return in_order(hosts, F.desc("messages"), "host").select(
        "host", "messages", "stored_bytes", "topics", "first_ms", "last_ms"
    )


def top_talkers(messages: DataFrame, scope: Scope) -> DataFrame:
    """The pairs of host and topic that stored the most; `share` is of what all of them stored."""
    return (
        scope.ordinary(messages)
        .groupBy(F.col("born_host").alias("host"), "topic")
        .agg(*_sums())
        .withColumn("share", F.col("stored_bytes") / F.sum("stored_bytes").over(Window.partitionBy()))
        .orderBy(F.desc("stored_bytes"), "host", "topic")
        .limit(TALKERS)
        .select("host", "topic", "messages", "stored_bytes", "share")
    )


def sizes_of_bodies(messages: DataFrame, scope: Scope) -> DataFrame:
    """Exact percentiles of the bodies' bytes of each ordinary topic."""
    sizes = (
        _counted(scope.ordinary(messages), F.col("body_bytes"))
        .groupBy("topic")
        .agg(
            F.sum("rows").alias("messages"),
            F.min("value").alias("smallest"),
            _percentiles(),
            F.max("value").alias("largest"),
        )
    )
    return in_order(sizes, "topic").select("topic", "messages", "smallest", *_each_percentile(), "largest")


def produce_latency(messages: DataFrame, scope: Scope) -> DataFrame:
    """Exact percentiles of the time from the producer's clock to the broker's, of each ordinary topic."""
    latencies = (
        _counted(scope.ordinary(messages), F.col("store_timestamp") - F.col("born_timestamp"))
        .groupBy("topic")
        .agg(
            F.sum("rows").alias("messages"),
            _percentiles(),
            F.max("value").alias("longest"),
            F.sum(F.when(F.col("value") < 0, F.col("rows")).otherwise(0)).alias("clock_ahead"),
        )
    )
    return in_order(latencies, "topic").select("topic", "messages", *_each_percentile(), "longest", "clock_ahead")


def retries_and_dead_letters(messages: DataFrame, scope: Scope) -> DataFrame:
    """What each group sent back and gave up on each day of the zone, by the cause that its consumer told."""
    topic = F.col("topic")
    is_retry, is_dead = topic.startswith(RETRY_PREFIX), topic.startswith(DLQ_PREFIX)
    group = F.when(is_retry, F.substring(topic, len(RETRY_PREFIX) + 1, TOPIC_CHARS_MAX)).otherwise(
        F.substring(topic, len(DLQ_PREFIX) + 1, TOPIC_CHARS_MAX)
    )
    return (
        scope.cut(messages)
        .where(is_retry | is_dead)
        .groupBy(
            F.date_format(scope.local(), "yyyy-MM-dd").alias("day"),
            group.alias("group"),
            F.coalesce("cause", F.lit(NO_CAUSE)).alias("cause"),
        )
        .agg(
            F.count_if(is_retry).alias("retried"),
            F.count_if(is_dead).alias("dead_letters"),
            F.max("reconsume_times").alias("attempts_max"),
        )
        .orderBy("day", "group", "cause")
        .select("day", "group", "cause", "retried", "dead_letters", "attempts_max")
    )


def _counted(messages: DataFrame, value: Column) -> DataFrame:
    """topic, value, and how many `rows` have both: values repeat, and this costs far less than a percentile does."""
    return messages.groupBy("topic", value.alias("value")).agg(F.count("*").alias("rows"))


def _percentiles() -> Column:
    """p50, p90, p99 of what _counted gives; between two values the mean by distance, as SQL's percentile_cont."""
    return F.percentile("value", list(PERCENTILES), F.col("rows")).alias("percentiles")


def _each_percentile() -> list[Column]:
    return [F.col("percentiles")[at].alias(f"p{round(share * 100)}") for at, share in enumerate(PERCENTILES)]


def _sums() -> tuple[Column, Column]:
    return F.count("*").alias("messages"), F.sum("size_bytes").alias("stored_bytes")


def _sums_of_sums() -> tuple[Column, Column]:
    return F.sum("messages").alias("messages"), F.sum("stored_bytes").alias("stored_bytes")


# Sums of messages over steps of time, so that what a row costs most, calendar and names, is worked out once a step.
QUARTER_MS = 900_000


def step_of(begin_ms: int, end_ms: int, zone: str) -> int:
    """The longest step, in ms, in none of which the zone's clocks change their day: all have one offset, a whole one.

    A minute suits every zone since 1972: offsets are whole minutes, and clocks change at them.
    """
    for step in (HOUR_MS, QUARTER_MS):
        if _is_steady(begin_ms, end_ms, zoneinfo.ZoneInfo(zone), step):
            return step
    return MINUTE_MS


def step_begin(at_ms: str, step: int) -> Column:
    """When the step of a time began, in ms."""
    return F.col(at_ms) - F.pmod(F.col(at_ms), F.lit(step))


def _is_steady(begin_ms: int, end_ms: int, zone: zoneinfo.ZoneInfo, step: int) -> bool:
    if zone.key == "UTC":
        return True
    for at in range(begin_ms - begin_ms % step, end_ms, step):
        offset = _offset_ms(at, zone)
        if offset % step or _offset_ms(at + step - 1, zone) != offset:
            return False
    return True


def _offset_ms(at_ms: int, zone: zoneinfo.ZoneInfo) -> int:
    offset = datetime.fromtimestamp(at_ms // 1000, UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return round(offset.total_seconds() * 1000)
