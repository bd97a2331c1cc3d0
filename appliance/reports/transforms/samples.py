"""How far slaves were behind their masters; what brokers took and gave, and how full their disks were.

Input: the lake's tables of slaves and of brokers (samples/kinds.py).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from appliance.reports.transforms.scope import Scope


def slaves_behind(samples: DataFrame, scope: Scope) -> DataFrame:
    """How far each slave was behind at most in each hour of the zone. Samples are one for each slave and minute.

    in_sync: the share of its minutes; bytes_per_second: the mean by seconds. Messages are null when never known.
    """
    seconds = F.col("seconds")
    return (
        scope.within(samples, "at_ms")
        .groupBy(scope.hour("at_ms").alias("hour"), "slave")
        .agg(
            F.min(scope.hour_begin("at_ms")).alias("begin_ms"),
            *(F.max(name).alias(name) for name in ("behind_bytes", "behind_messages", "behind_seconds")),
            F.count("*").alias("minutes"),
            F.avg(F.col("in_sync").cast("int")).alias("in_sync"),
            (F.sum(F.col("bytes_per_second") * seconds) / F.sum(seconds)).alias("bytes_per_second"),
        )
        .orderBy("begin_ms", "slave")
        .select(
            "hour",
            "slave",
            "behind_bytes",
            "behind_messages",
            "behind_seconds",
            "minutes",
            "in_sync",
            "bytes_per_second",
        )
    )


def broker_history(samples: DataFrame, scope: Scope) -> DataFrame:
    """The rates of each broker in each hour of the zone (mean by seconds, and the busiest minute), and its disk."""
    return (
        scope.within(samples, "at_ms")
        .groupBy(scope.hour("at_ms").alias("hour"), "broker")
        .agg(
            F.min(scope.hour_begin("at_ms")).alias("begin_ms"),
            _mean("in_rate").alias("in_rate"),
            F.max("in_rate").alias("in_most"),
            _mean("out_rate").alias("out_rate"),
            F.max("out_rate").alias("out_most"),
            F.max("disk_ratio").alias("disk_ratio"),
            F.max("commit_log_bytes").alias("commit_log_bytes"),
            F.count("*").alias("minutes"),
        )
        .orderBy("begin_ms", "broker")
        .select(
            "hour",
            "broker",
            "in_rate",
            "in_most",
            "out_rate",
            "out_most",
            "disk_ratio",
            "commit_log_bytes",
            "minutes",
        )
    )


def _mean(rate: str) -> Column:
    """Of the seconds in which it was known: a minute of which half was seen counts half."""
    seconds = F.when(F.col(rate).isNotNull(), F.col("seconds"))
    return F.sum(F.col(rate) * seconds) / F.sum(seconds)
