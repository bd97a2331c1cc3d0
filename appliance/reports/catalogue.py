"""The reports there are: names, what each says, its columns, its chart. Plain data, which pages and Spark's side share.

How each is computed stands in transforms/, under the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a page shows a column's values. Files hold the plain numbers."""

    TEXT = "text"
    COUNT = "count"
    BYTES = "bytes"
    MS = "ms"
    SECONDS = "seconds"
    TIME = "time"  # ms since 1970
    CHANGE = "change"  # a ratio: 0.5 is half as many again
    SHARE = "share"  # of 1


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    title: str
    kind: Kind = Kind.COUNT


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars: `y` over `x`, for each `series` if there is one. All three are names of columns.

    is_stacked: what the series have adds up; else their bars stand side by side.
    """

    x: str
    y: str
    series: str = ""
    is_stacked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """`days_before`: what it reads before its range begins, to compare with.

    of_slaves: it reads the lake's table of slaves instead of messages. nothing: what an empty one says.
    """

    name: str
    title: str
    about: str
    columns: tuple[Column, ...]
    chart: Chart
    days_before: int = 0
    of_slaves: bool = False
    nothing: str = "Nothing to show of this range."


_MESSAGES = Column("messages", "Messages")
_STORED = Column("stored_bytes", "Stored", Kind.BYTES)
_BODIES = Column("body_bytes", "Bodies", Kind.BYTES)
_TOPIC = Column("topic", "Topic", Kind.TEXT)
_KIND = Column("kind", "Kind", Kind.TEXT)
_HOST = Column("host", "Host", Kind.TEXT)
_DAY = Column("day", "Day", Kind.TEXT)
TRAFFIC = "traffic"
FORECAST = "forecast"

_ALL = (
    Report(
        name=TRAFFIC,
        title="Traffic per topic and hour",
        about="Messages and bytes of each topic in each hour, by the time of storing.",
        columns=(Column("hour", "Hour", Kind.TEXT), _TOPIC, _KIND, _MESSAGES, _STORED, _BODIES),
        chart=Chart("hour", "messages", "topic"),
    ),
    Report(
        name="days",
        title="Traffic per day",
        about="Messages of ordinary topics on each day, beside the day before and the same day of the week before. "
        "The first day is counted whole; the last one may not be over.",
        columns=(
            _DAY,
            _MESSAGES,
            _STORED,
            Column("day_before", "Day before"),
            Column("day_change", "Change", Kind.CHANGE),
            Column("week_before", "Week before"),
            Column("week_change", "Change in a week", Kind.CHANGE),
        ),
        chart=Chart("day", "messages"),
        days_before=9,  # a week, the rest of the first day, and an hour that a clock was put back
    ),
    Report(
        name="months",
        title="Bytes by topic and month",
        about="What each topic stored in each month, for those who pay for it.",
        columns=(Column("month", "Month", Kind.TEXT), _TOPIC, _KIND, _MESSAGES, _STORED, _BODIES),
        chart=Chart("month", "stored_bytes", "topic"),
    ),
    Report(
        name="producers",
        title="Producers by host",
        about="Which hosts sent to ordinary topics, to how many, and when first and last.",
        columns=(
            _HOST,
            _MESSAGES,
            _STORED,
            Column("topics", "Topics"),
            Column("first_ms", "First", Kind.TIME),
            Column("last_ms", "Last", Kind.TIME),
        ),
        chart=Chart("host", "messages"),
    ),
    Report(
        name="talkers",
        title="Top talkers",
        about="The hundred pairs of host and topic that stored the most bytes, and their share of all.",
        columns=(_HOST, _TOPIC, _MESSAGES, _STORED, Column("share", "Share", Kind.SHARE)),
        chart=Chart("host", "stored_bytes", "topic"),
    ),
    Report(
        name="sizes",
        title="Sizes of bodies",
        about="Bytes of the bodies of each ordinary topic, as stored: half, nine tenths and 99 of 100 are no larger.",
        columns=(
            _TOPIC,
            _MESSAGES,
            Column("smallest", "Smallest", Kind.BYTES),
            Column("p50", "Half", Kind.BYTES),
            Column("p90", "90 %", Kind.BYTES),
            Column("p99", "99 %", Kind.BYTES),
            Column("largest", "Largest", Kind.BYTES),
        ),
        chart=Chart("topic", "p99"),
    ),
    Report(
        name="latency",
        title="Produce latency",
        about="From the producer's clock to the broker's, for each ordinary topic: half, nine tenths and 99 of 100 "
        "took no longer. A delayed message's delay is part of it. With a producer's clock ahead it is negative.",
        columns=(
            _TOPIC,
            _MESSAGES,
            Column("p50", "Half", Kind.MS),
            Column("p90", "90 %", Kind.MS),
            Column("p99", "99 %", Kind.MS),
            Column("longest", "Longest", Kind.MS),
            Column("clock_ahead", "Clock ahead"),
        ),
        chart=Chart("topic", "p99"),
    ),
    Report(
        name="retries",
        title="Retries and dead letters",
        about="Messages that a group sent back, and those it gave up, on each day. The cause is not stored with them.",
        columns=(
            _DAY,
            Column("group", "Group", Kind.TEXT),
            Column("retried", "Retried"),
            Column("dead_letters", "Dead letters"),
            Column("attempts_max", "Most attempts"),
        ),
        chart=Chart("day", "retried", "group"),
    ),
    Report(
        name="delays",
        title="Delayed messages",
        about="Messages that had to wait, by the day of storing and by delay level (with default settings level 1 is "
        "1 s and level 18 is 2 h): those that producers delayed, and those that groups sent back to have again.",
        columns=(
            _DAY,
            Column("delay", "Delay", Kind.TEXT),
            Column("delayed", "By producers"),
            Column("retried", "By groups"),
            _STORED,
        ),
        chart=Chart("day", "delayed", "delay"),
    ),
    Report(
        name="transactions",
        title="Transactions",
        about="Half messages stored on each day, and transactions that ended on it. A half message that a producer is "
        "asked about is stored again, so there may be more of them than ends. Given up: no producer answered in time.",
        columns=(
            _DAY,
            Column("halves", "Half messages"),
            Column("committed", "Committed"),
            Column("rolled_back", "Rolled back"),
            Column("given_up", "Given up"),
        ),
        chart=Chart("day", "committed"),
    ),
    Report(
        name=FORECAST,
        title="Growth and forecast",
        about="Bytes that each broker stored on each whole day, and those to expect of the next 14: a line through the "
        "days of the range and the 28 before it. Four of five days will be between the lowest and the highest if "
        "nothing changes. It needs three whole days.",
        columns=(
            Column("broker", "Broker", Kind.TEXT),
            _DAY,
            Column("kind", "Kind", Kind.TEXT),
            Column("bytes", "Bytes", Kind.BYTES),
            Column("low", "Lowest", Kind.BYTES),
            Column("high", "Highest", Kind.BYTES),
        ),
        chart=Chart("day", "bytes", "kind"),
        days_before=28,
    ),
    Report(
        name="slaves",
        title="Slaves behind their masters",
        about="How far each slave was behind at most in each hour, for what share of its minutes it was in sync, and "
        "what it was fed a second. As the dashboard sampled it each second.",
        columns=(
            Column("hour", "Hour", Kind.TEXT),
            Column("slave", "Slave", Kind.TEXT),
            Column("behind_bytes", "Behind", Kind.BYTES),
            Column("behind_messages", "Messages behind"),
            Column("behind_seconds", "Time behind", Kind.SECONDS),
            Column("minutes", "Minutes seen"),
            Column("in_sync", "In sync", Kind.SHARE),
            Column("bytes_per_second", "Fed a second", Kind.BYTES),
        ),
        chart=Chart("hour", "behind_bytes", "slave", is_stacked=False),
        of_slaves=True,
        nothing="No slave was seen in this range.",
    ),
)
REPORTS = {report.name: report for report in _ALL}
