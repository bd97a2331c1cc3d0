"""What became of messages that were not delivered at once: delays and transactions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from appliance.reports.transforms.scope import Scope, topic_kind
from gantrymq.message.sysflag import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from gantrymq.message.topics import (
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
)

TRANSACTION_BITS = TRANSACTION_ROLLBACK  # both bits are set


def delays(messages: DataFrame, scope: Scope) -> DataFrame:
    """What was put off on each day of the zone, by delay level: by its producer, and by groups that sent it back.

    A queue of SCHEDULE_TOPIC_XXXX is a level, the first one level 1. A message that a group sent back waits there too,
    and its number of tries is above 0 already.
    """
    topic, level = F.col("topic"), F.col("queue_id") + 1
    is_retry = F.col("reconsume_times") > 0
    is_timed = topic == TIMER_TOPIC
    return (
        scope.cut(messages)
        .where((topic == SCHEDULE_TOPIC) | is_timed)
        .withColumn("level", F.when(~is_timed, level))
        .groupBy(_day(scope), "level")
        .agg(
            F.count_if(~is_retry).alias("delayed"),
            F.count_if(is_retry).alias("retried"),
            F.sum("size_bytes").alias("stored_bytes"),
        )
        .orderBy("day", F.asc_nulls_last("level"))
        .select(
            "day",
            F.when(F.col("level").isNull(), "custom time")
            .otherwise(F.format_string("level %02d", "level"))
            .alias("delay"),
            "delayed",
            "retried",
            "stored_bytes",
        )
    )


def transactions(messages: DataFrame, scope: Scope) -> DataFrame:
    """Half messages of each day of the zone and how transactions ended on that day.

    An end is a record of RMQ_SYS_TRANS_OP_HALF_TOPIC, and a commit the message in its own topic, which keeps the flag;
    what ended otherwise was rolled back. A half message that is asked about is stored again each time, which begins no
    transaction.
    """
    topic = F.col("topic")
    is_committed = (topic_kind(topic) == "normal") & (_transaction_bits() == TRANSACTION_COMMIT)
    ended, committed = F.col("ended"), F.col("committed")
    return (
        scope.cut(messages)
        .where(topic.isin(TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC) | is_committed)
        .groupBy(_day(scope))
        .agg(
            F.count_if((topic == TRANS_HALF_TOPIC) & F.col("check_times").isNull()).alias("halves"),
            F.count_if(topic == TRANS_OP_HALF_TOPIC).alias("ended"),
            F.count_if(is_committed).alias("committed"),
            F.count_if(topic == TRANS_CHECK_MAX_TIME_TOPIC).alias("given_up"),
        )
        .orderBy("day")
        .select("day", "halves", "committed", F.greatest(ended - committed, F.lit(0)).alias("rolled_back"), "given_up")
    )


def _transaction_bits() -> Column:
    return F.col("sys_flag").bitwiseAND(TRANSACTION_BITS)


def _day(scope: Scope) -> Column:
    return F.date_format(scope.local(), "yyyy-MM-dd").alias("day")
