"""Which messages a report is about, and of which kind a topic is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from appliance.reports.runs import HOUR_MS
from appliance.reports.samples.lines import MINUTE_MS
from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX, SYSTEM_TOPIC_PREFIX, SYSTEM_TOPICS


@dataclass(frozen=True, slots=True)
class Scope:
    """Which messages a report is about: stored in [begin_ms, end_ms); no topics: all; days are those of `zone`.

    promises: seconds that a group may be behind, by its name; "" is for all others. now_ms: a range may end after it,
    but days that have not come are no days without messages; None: all of the range is over.
    """

    begin_ms: int
    end_ms: int
    topics: Sequence[str] = ()
    zone: str = "UTC"
    promises: Mapping[str, float] = field(default_factory=dict)
    now_ms: int | None = None

    @property
    def over_ms(self) -> int:
        """The end of the range as far as it is over."""
        return self.end_ms if self.now_ms is None else min(self.end_ms, self.now_ms)

    def date_at(self, at_ms: int) -> Column:
        """The day of the zone at a moment."""
        return F.to_date(self._clock(F.lit(at_ms)))

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
        return self._clock(F.col(at_ms))

    def hour(self, at_ms: str) -> Column:
        """The hour on the clocks of the zone: 2026-10-25 01:00. One that comes twice has its distance from UTC, too."""
        at = F.col(at_ms)
        clock, name = self._clock(at), self._hour_name(at)
        comes_twice = (name == self._hour_name(at + HOUR_MS)) | (name == self._hour_name(at - HOUR_MS))
        east = (F.unix_millis(clock) - at) / MINUTE_MS
        sign = F.when(east < 0, "-").otherwise("+")
        minutes = F.abs(east).cast("int")
        distance = F.format_string(" %s%02d:%02d", sign, (minutes / 60).cast("int"), minutes % 60)
        return F.when(comes_twice, F.concat(name, distance)).otherwise(name)

    def hour_begin(self, at_ms: str) -> Column:
        """When that hour began: names of hours that come twice are in no order."""
        at = F.col(at_ms)
        return at - F.pmod(F.unix_millis(self._clock(at)), F.lit(HOUR_MS))

    def _hour_name(self, at_ms: Column) -> Column:
        return F.date_format(self._clock(at_ms), "yyyy-MM-dd HH:00")

    def _clock(self, at_ms: Column) -> Column:
        return F.from_utc_timestamp(F.timestamp_millis(at_ms), self.zone)


def topic_kind(topic: Column) -> Column:
    """normal, system (RocketMQ's own), retry, or dead letter."""
    return (
        F.when(topic.startswith(RETRY_PREFIX), "retry")
        .when(topic.startswith(DLQ_PREFIX), "dead letter")
        .when(topic.isin(sorted(SYSTEM_TOPICS)) | topic.startswith(SYSTEM_TOPIC_PREFIX), "system")
        .otherwise("normal")
    )


def in_order(rows: DataFrame, *columns: str | Column) -> DataFrame:
    """The rows of a report, sorted by one task: they come to one process anyway, and sharing them out is a job more."""
    return rows.coalesce(1).orderBy(*columns)
