"""Reports as pure functions, DataFrame to DataFrame, with a `select` as schema at each end.

Built-in functions only: executors need no Python for a report, and topic names are bound values, never SQL text.
Input is the lake (see record_columns.SCHEMA) with the column `broker_name`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX, SYSTEM_TOPIC_PREFIX, SYSTEM_TOPICS


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


def topic_kind(topic: Column) -> Column:
    """normal, system (RocketMQ's own), retry, or dead letter."""
    return (
        F.when(topic.startswith(RETRY_PREFIX), "retry")
        .when(topic.startswith(DLQ_PREFIX), "dead letter")
        .when(topic.isin(sorted(SYSTEM_TOPICS)) | topic.startswith(SYSTEM_TOPIC_PREFIX), "system")
        .otherwise("normal")
    )
