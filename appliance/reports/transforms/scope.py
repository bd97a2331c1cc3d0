"""Which messages a report is about, and of which kind a topic is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX, SYSTEM_TOPIC_PREFIX, SYSTEM_TOPICS

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Which messages a report is about: stored in [begin_ms, end_ms); no topics: all; days are those of `zone`.

    promises: seconds that a group may be behind, by its name; "" is for all others.
    """

    begin_ms: int
    end_ms: int
    topics: Sequence[str] = ()
    zone: str = "UTC"
    promises: Mapping[str, float] = field(default_factory=dict)

    def within(self, rows: DataFrame, at_ms: str = "store_timestamp") -> DataFrame:
        """The rows of the range, by their time."""
        return rows.where((F.col(at_ms) >= self.begin_ms) & (F.col(at_ms) < self.end_ms))

    def cut(self, messages: DataFrame) -> DataFrame:
        found = self.within(messages)
        return found.where(F.col("topic").isin(list(self.topics))) if self.topics else found

    def ordinary(self, messages: DataFrame) -> DataFrame:
        """Without topics that hold a message again or for the broker: retries, dead letters, schedules."""
        return self.cut(messages).where(topic_kind(F.col("topic")) == "normal")

    def local(self, at_ms: str = "store_timestamp") -> Column:
        """The time of storing on the clocks of the zone."""
        return F.from_utc_timestamp(F.timestamp_millis(at_ms), self.zone)


def topic_kind(topic: Column) -> Column:
    """normal, system (RocketMQ's own), retry, or dead letter."""
    return (
        F.when(topic.startswith(RETRY_PREFIX), "retry")
        .when(topic.startswith(DLQ_PREFIX), "dead letter")
        .when(topic.isin(sorted(SYSTEM_TOPICS)) | topic.startswith(SYSTEM_TOPIC_PREFIX), "system")
        .otherwise("normal")
    )
