"""How far slaves were behind their masters. Input is the lake's table of slaves (see runner/sample_table.py)."""

from __future__ import annotations

from pyspark.sql import DataFrame
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
