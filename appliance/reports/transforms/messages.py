"""What was stored: traffic, hosts, sizes, latency, retries."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from appliance.reports.transforms.scope import Scope, topic_kind
from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX

TALKERS = 100
NO_CAUSE = "no client told"
PERCENTILES = (0.5, 0.9, 0.99)
TOPIC_CHARS_MAX = 32767  # more than a record can hold


def traffic_per_topic_and_hour(
    messages: DataFrame, begin_ms: int, end_ms: int, topics: Sequence[str] = ()
) -> DataFrame:
    """Messages and bytes of each topic in each hour (UTC, by store time) of [begin_ms, end_ms), all brokers together.

    A record is counted where and when it was stored: a delayed message once in the schedule topic and once in its own,
    a retried one in the group's retry topic too. `kind` distinguishes these: normal, system, retry, dead letter.
    """
    wanted = messages.select("topic", "store_timestamp", "size_bytes", "body_bytes").where(
        (F.col("store_timestamp") >= begin_ms) & (F.col("store_timestamp") < end_ms)
    )
    if topics:
        wanted = wanted.where(F.col("topic").isin(list(topics)))
    return (
        wanted.withColumn("hour", F.date_trunc("hour", F.timestamp_millis("store_timestamp")))
        .groupBy("hour", "topic")
        .agg(
            F.count("*").alias("messages"),
            F.sum("size_bytes").alias("stored_bytes"),
            F.sum("body_bytes").alias("body_bytes"),
        )
        .select("hour", "topic", topic_kind(F.col("topic")).alias("kind"), "messages", "stored_bytes", "body_bytes")
        .orderBy("hour", "topic")
    )


def traffic_per_day(messages: DataFrame, scope: Scope) -> DataFrame:
    """Messages of each day of the zone beside the day before and the week before; 0 where the lake has none.

    The messages must reach back a week and a day before the scope; the first day counts whole. A day without messages
    is a row, too, if it is over or going on, and the lake has something of an earlier one.
    """
    wide = Scope(0, scope.end_ms, scope.topics, scope.zone)
    days = (
        wide.ordinary(messages)
        .groupBy(F.to_date(scope.local()).alias("date"))
        .agg(F.count("*").alias("messages"), F.sum("size_bytes").alias("stored_bytes"))
    )

    def earlier(by_days: int, name: str) -> DataFrame:
        return days.select(F.date_add("date", by_days).alias("date"), F.col("messages").alias(name))

    joined = _calendar(days, scope).join(days, "date", how="left").fillna(0, ["messages", "stored_bytes"])
    joined = joined.join(earlier(1, "day_before"), "date", how="left")
    joined = joined.join(earlier(7, "week_before"), "date", how="left")
    return joined.orderBy("date").select(
        F.date_format("date", "yyyy-MM-dd").alias("day"),
        "messages",
        "stored_bytes",
        F.coalesce("day_before", F.lit(0)).alias("day_before"),
        (F.col("messages") / F.col("day_before") - 1).alias("day_change"),
        F.coalesce("week_before", F.lit(0)).alias("week_before"),
        (F.col("messages") / F.col("week_before") - 1).alias("week_change"),
    )


def _calendar(days: DataFrame, scope: Scope) -> DataFrame:
    """date: each day of the scope from the first that is known to the last that has begun."""
    first, last = F.col("first"), F.col("last")
    known = days.agg(F.min("date").alias("first"), F.max("date").alias("last")).where(first.isNotNull())
    known = known.select(
        F.greatest(first, scope.date_at(scope.begin_ms)).alias("first"),
        F.greatest(last, scope.date_at(scope.over_ms - 1)).alias("last"),
    )
    return known.where(first <= last).select(F.explode(F.sequence(first, last)).alias("date"))


def bytes_by_topic_and_month(messages: DataFrame, scope: Scope) -> DataFrame:
    """What each topic stored in each month of the zone, the largest first."""
    return (
        scope.cut(messages)
        .groupBy(F.date_format(scope.local(), "yyyy-MM").alias("month"), "topic")
        .agg(
            F.count("*").alias("messages"),
            F.sum("size_bytes").alias("stored_bytes"),
            F.sum("body_bytes").alias("body_bytes"),
        )
        .orderBy("month", F.desc("stored_bytes"), "topic")
        .select("month", "topic", topic_kind(F.col("topic")).alias("kind"), "messages", "stored_bytes", "body_bytes")
    )


def producers_by_host(messages: DataFrame, scope: Scope) -> DataFrame:
    """Each host that sent to an ordinary topic, the busiest first."""
    return (
        scope.ordinary(messages)
        .groupBy(F.col("born_host").alias("host"))
        .agg(
            F.count("*").alias("messages"),
            F.sum("size_bytes").alias("stored_bytes"),
            F.count_distinct("topic").alias("topics"),
            F.min("store_timestamp").alias("first_ms"),
            F.max("store_timestamp").alias("last_ms"),
        )
        .orderBy(F.desc("messages"), "host")
        .select("host", "messages", "stored_bytes", "topics", "first_ms", "last_ms")
    )


def top_talkers(messages: DataFrame, scope: Scope) -> DataFrame:
    """The pairs of host and topic that stored the most; `share` is of what all of them stored."""
    return (
        scope.ordinary(messages)
        .groupBy(F.col("born_host").alias("host"), "topic")
        .agg(F.count("*").alias("messages"), F.sum("size_bytes").alias("stored_bytes"))
        .withColumn("share", F.col("stored_bytes") / F.sum("stored_bytes").over(Window.partitionBy()))
        .orderBy(F.desc("stored_bytes"), "host", "topic")
        .limit(TALKERS)
        .select("host", "topic", "messages", "stored_bytes", "share")
    )


def sizes_of_bodies(messages: DataFrame, scope: Scope) -> DataFrame:
    """Exact percentiles of the bodies' bytes of each ordinary topic."""
    size = F.col("body_bytes")
    return (
        scope.ordinary(messages)
        .groupBy("topic")
        .agg(
            F.count("*").alias("messages"),
            F.min(size).alias("smallest"),
            *_percentiles(size),
            F.max(size).alias("largest"),
        )
        .orderBy("topic")
        .select("topic", "messages", "smallest", "p50", "p90", "p99", "largest")
    )


def produce_latency(messages: DataFrame, scope: Scope) -> DataFrame:
    """Exact percentiles of the time from the producer's clock to the broker's, of each ordinary topic."""
    latency = F.col("store_timestamp") - F.col("born_timestamp")
    return (
        scope.ordinary(messages)
        .groupBy("topic")
        .agg(
            F.count("*").alias("messages"),
            *_percentiles(latency),
            F.max(latency).alias("longest"),
            F.count_if(latency < 0).alias("clock_ahead"),
        )
        .orderBy("topic")
        .select("topic", "messages", "p50", "p90", "p99", "longest", "clock_ahead")
    )


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


def _percentiles(value: Column) -> list[Column]:
    """p50, p90, p99; between two values the mean by distance, as SQL's percentile_cont."""
    return [F.percentile(value, share).alias(f"p{round(share * 100)}") for share in PERCENTILES]
