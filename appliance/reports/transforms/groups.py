"""Consumer groups over time. Input is the lake's table of groups (see samples/kinds.py)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from appliance.reports.transforms.scope import Scope

SECONDS_A_MINUTE = 60


def lag_history(samples: DataFrame, scope: Scope) -> DataFrame:
    """How far each group was behind at most in each hour of the zone, and for how many of its minutes over its promise.

    A minute with an unknown time behind is over no promise. promise_seconds, minutes_over: null without a promise.
    Rates are what the offsets moved by in the minutes that were counted, over their length.
    """
    promise = _promise_of(F.col("group"), scope)
    over = F.count_if(F.col("behind_seconds") > F.col("promise_seconds"))
    return (
        scope.within(samples, "at_ms")
        .withColumn("promise_seconds", promise)
        .groupBy(scope.hour("at_ms").alias("hour"), "group")
        .agg(
            F.min(scope.hour_begin("at_ms")).alias("begin_ms"),
            F.max("lag").alias("lag"),
            F.max("behind_seconds").alias("behind_seconds"),
            _rate("stored").alias("in_rate"),
            _rate("consumed").alias("out_rate"),
            F.count("*").alias("minutes"),
            F.max("promise_seconds").alias("promise_seconds"),
            over.alias("over"),
        )
        .withColumn("minutes_over", F.when(F.col("promise_seconds").isNotNull(), F.col("over")))
        .orderBy("begin_ms", "group")
        .select(
            "hour",
            "group",
            "behind_seconds",
            "promise_seconds",
            "minutes_over",
            "minutes",
            "lag",
            "in_rate",
            "out_rate",
        )
    )


def _rate(counted: str) -> Column:
    """Messages a second of the hour; null when none of its minutes was counted."""
    seconds = F.when(F.col(counted).isNotNull(), F.col("counted_minutes") * SECONDS_A_MINUTE)
    return F.sum(counted) / F.sum(seconds)


def _promise_of(group: Column, scope: Scope) -> Column:
    """A group's own promise in seconds, else that of all others, which has no name; null: none."""
    others = F.lit(scope.promises.get("")).cast("double")
    own = {name: seconds for name, seconds in scope.promises.items() if name}
    if not own:
        return others
    pairs = [F.lit(part) for name, seconds in sorted(own.items()) for part in (name, float(seconds))]
    return F.coalesce(F.try_element_at(F.create_map(*pairs), group), others)
