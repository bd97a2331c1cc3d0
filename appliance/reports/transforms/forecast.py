"""How much brokers will store: a line through the days that are over, and a range around it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from appliance.reports.transforms.scope import Scope

DAYS_AHEAD = 14
DAYS_MIN = 3  # a line through two days fits whatever they were
NORMAL = 1.2815515655446004  # standard deviations: four of five days of a normal distribution are within
STUDENT = {1: 3.077683537175253, 2: 1.8856180831641267}  # of Student's with one and two degrees of freedom


def forecast(messages: DataFrame, scope: Scope) -> DataFrame:
    """Bytes that each broker stored on each whole day of the zone, and those expected of the days after.

    The line is the one of least squares; `low` and `high` are its prediction interval of 80 %, by Student's
    distribution, since the spread is known of a few days only. A broker of which fewer than DAYS_MIN whole days are
    known has no forecast. A day without messages counts as 0 bytes.
    """
    days = _whole_days(messages, scope)
    n, mean_x = F.col("n"), F.col("mean_x")
    line = (
        days.groupBy("broker")
        .agg(
            F.count("*").alias("n"),
            F.avg("x").alias("mean_x"),
            F.avg("bytes").alias("mean_y"),
            F.regr_slope("bytes", "x").alias("slope"),
            F.regr_sxx("bytes", "x").alias("sxx"),
            F.regr_syy("bytes", "x").alias("syy"),
            F.max("date").alias("last"),
        )
        .where(n >= DAYS_MIN)
    )
    left = F.greatest(F.col("syy") - F.col("slope") * F.col("slope") * F.col("sxx"), F.lit(0.0)) / (n - 2)
    ahead = line.withColumn("step", F.explode(F.sequence(F.lit(1), F.lit(DAYS_AHEAD)))).withColumn(
        "distance", n - 1 + F.col("step") - mean_x
    )
    expected = F.col("mean_y") + F.col("slope") * F.col("distance")
    reach = _quantile(n - 2) * F.sqrt(left * (1 + 1 / n + F.col("distance") * F.col("distance") / F.col("sxx")))
    future = ahead.select(
        "broker",
        F.date_add("last", F.col("step")).alias("date"),
        F.lit("forecast").alias("kind"),
        _bytes(expected).alias("bytes"),
        _bytes(expected - reach).alias("low"),
        _bytes(expected + reach).alias("high"),
    )
    nothing = F.lit(None).cast("bigint")
    past = days.select(
        "broker", "date", F.lit("stored").alias("kind"), "bytes", nothing.alias("low"), nothing.alias("high")
    )
    return (
        past.unionByName(future)
        .orderBy("date", "broker")
        .select("broker", F.date_format("date", "yyyy-MM-dd").alias("day"), "kind", "bytes", "low", "high")
    )


def _whole_days(messages: DataFrame, scope: Scope) -> DataFrame:
    """broker, date, bytes, x (0, 1, ...): from the day after a broker's first message to the last day that is over."""
    wide = Scope(0, scope.end_ms, scope.topics, scope.zone)
    end = scope.date_at(scope.over_ms)
    stored = (
        wide.cut(messages)
        .groupBy(F.col("broker_name").alias("broker"), F.to_date(scope.local()).alias("date"))
        .agg(F.sum("size_bytes").alias("bytes"))
    )
    first, last = F.date_add(F.min("date"), 1), F.date_sub(end, 1)
    calendar = (
        stored.groupBy("broker")
        .agg(first.alias("first"), last.alias("last"))
        .where(F.col("first") <= F.col("last"))
        .select("broker", F.posexplode(F.sequence("first", "last")).alias("x", "date"))
    )
    return calendar.join(stored, ["broker", "date"], how="left").select(
        "broker", "date", F.coalesce("bytes", F.lit(0)).alias("bytes"), "x"
    )


def _quantile(freedom: Column) -> Column:
    """Below which nine tenths of Student's distribution lie: its expansion (Cornish and Fisher) around the normal's.

    With three degrees of freedom it is off by 0.0003, with more by less.
    """
    z = NORMAL
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    found = F.lit(terms[-1])
    for term in reversed(terms[:-1]):
        found = found / freedom + F.lit(term)
    for known, value in STUDENT.items():
        found = F.when(freedom == known, F.lit(value)).otherwise(found)
    return found


def _bytes(value: Column) -> Column:
    return F.greatest(F.round(value), F.lit(0.0)).cast("bigint")
