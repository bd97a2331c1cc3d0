"""What brokers took and gave, and how full their disks were. Input: the lake's table of brokers (samples/kinds.py)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from appliance.reports.transforms.scope import Scope


def broker_history(samples: DataFrame, scope: Scope) -> DataFrame:
    """The rates of each broker in each hour of the zone (mean of its minutes, and the busiest minute), and its disk."""
    return (
        scope.within(samples, "at_ms")
        .groupBy(scope.hour("at_ms").alias("hour"), "broker")
        .agg(
            F.min(scope.hour_begin("at_ms")).alias("begin_ms"),
            F.avg("in_rate").alias("in_rate"),
            F.max("in_rate").alias("in_most"),
            F.avg("out_rate").alias("out_rate"),
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
