"""Topics and groups that nothing used. Input: messages, what brokers have on their lists, and the table of groups."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from appliance.reports.samples.lines import DAY_MS
from appliance.reports.transforms.scope import Scope

TOPIC, GROUP = "topic", "group"


def unused(messages: DataFrame, names: DataFrame, samples: DataFrame, scope: Scope) -> DataFrame:
    """Listed topics in which nothing was stored in the range, and groups that had no member and consumed nothing in it.

    names: (kind, name). last_ms: when it was used last, as far as the input reaches back; null: not in that time. days:
    from then to the end of the range. waiting: messages that a group had not consumed at last. Of a group that was
    never sampled in the range nothing is known, so it is not listed. A range of some topics has no groups.
    """
    topics = names.where(F.col("kind") == TOPIC).select("name")
    if scope.topics:
        topics = topics.where(F.col("name").isin(list(scope.topics)))
    stored = (
        messages.where(F.col("store_timestamp") < scope.end_ms)
        .groupBy(F.col("topic").alias("name"))
        .agg(F.max("store_timestamp").alias("last_ms"))
    )
    idle = topics.join(stored, "name", how="left").select(
        F.lit(TOPIC).alias("kind"), "name", "last_ms", F.lit(None).cast("bigint").alias("waiting")
    )
    if not scope.topics:
        idle = idle.unionByName(_groups(names, samples, scope))
    return (
        idle.where(F.col("last_ms").isNull() | (F.col("last_ms") < scope.begin_ms))
        .withColumn("days", F.floor((F.lit(scope.end_ms) - F.col("last_ms")) / DAY_MS))
        .orderBy(F.desc("kind"), F.asc_nulls_first("last_ms"), "name")
        .select("kind", "name", "last_ms", "days", "waiting")
    )


def _groups(names: DataFrame, samples: DataFrame, scope: Scope) -> DataFrame:
    """The groups that were seen in the range, with the last time that each had a member or consumed."""
    at = F.col("at_ms")
    seen = samples.where(at < scope.end_ms)
    used = (
        seen.groupBy(F.col("group").alias("name"))
        .agg(
            F.greatest(F.max(F.when(F.col("members") > 0, at)), F.max(_if_any("last_consumed_ms"))).alias("last_ms"),
            F.max_by(F.col("end_offset") - F.col("consumer_offset"), at).alias("waiting"),
            F.count_if(at >= scope.begin_ms).alias("minutes"),
            F.max(F.when(at >= scope.begin_ms, F.col("consumer_offset"))).alias("most"),
            F.min(F.when(at >= scope.begin_ms, F.col("consumer_offset"))).alias("least"),
        )
        .where((F.col("minutes") > 0) & (F.col("most") == F.col("least")))
    )
    return (
        names.where(F.col("kind") == GROUP)
        .select("name")
        .join(used, "name", how="inner")
        .select(F.lit(GROUP).alias("kind"), "name", "last_ms", "waiting")
    )


def _if_any(name: str) -> Column:
    """0 means never."""
    return F.when(F.col(name) > 0, F.col(name))
