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
    RATE = "rate"  # a second


@dataclass(frozen=True, slots=True)
class Column:
    """about: what the title alone does not say."""

    name: str
    title: str
    kind: Kind = Kind.COUNT
    about: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars: `y` over `x`, for each `series` if there is one. All three are names of columns. title: what is drawn.

    is_stacked: what the series have adds up; else their bars stand side by side.
    """

    title: str
    x: str
    y: str
    series: str = ""
    is_stacked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """`days_before`: what it reads before its range begins, to compare with.

    tables: what it reads of the lake. counts: which messages are in its totals. nothing: what an empty one says.
    """

    name: str
    title: str
    about: str
    columns: tuple[Column, ...]
    chart: Chart
    days_before: int = 0
    tables: tuple[str, ...] = ("messages",)
    counts: str = ""
    nothing: str = "Nothing to show for this range."


_MESSAGES = Column("messages", "Messages")
_STORED = Column(
    "stored_bytes",
    "Stored",
    Kind.BYTES,
    about="Whole records as the log has them: bodies, properties and what the broker adds",
)
_BODIES = Column(
    "body_bytes", "Bodies", Kind.BYTES, about="Bodies only, as stored: compressed bodies count as compressed"
)
_TOPIC = Column("topic", "Topic", Kind.TEXT)
_KIND = Column("kind", "Kind", Kind.TEXT)
_HOST = Column("host", "Host", Kind.TEXT)
_DAY = Column("day", "Day", Kind.TEXT)
EVERY_RECORD = (
    "Totals: every stored record, also retries, dead letters and RocketMQ's own topics. A message that is delayed or "
    "retried counts each time it is stored."
)
ORDINARY = "Totals: messages of ordinary topics only, without retries, dead letters and RocketMQ's own topics."
BROKERS_OWN = "Totals: the brokers' own counters, every record that they stored or delivered."
GROUPS_TOPICS = "Totals: messages of the topics that the group consumes, without those that no sample covers."
TRAFFIC = "traffic"
FORECAST = "forecast"

_ALL = (
    Report(
        name=TRAFFIC,
        title="Traffic per topic and hour",
        about="Messages and bytes of each topic in each hour, by the time of storing.",
        counts=EVERY_RECORD,
        columns=(Column("hour", "Hour", Kind.TEXT), _TOPIC, _KIND, _MESSAGES, _STORED, _BODIES),
        chart=Chart("Messages per hour, by topic", "hour", "messages", "topic"),
    ),
    Report(
        name="days",
        title="Traffic per day",
        about=(
            "Messages of ordinary topics on each day, compared with the day before and the same day of "
            "the week before. The first day is counted whole; the last one may still be running, so its "
            "change is not final."
        ),
        counts=ORDINARY,
        columns=(
            _DAY,
            _MESSAGES,
            _STORED,
            Column("day_before", "Day before", about="Messages of the day before"),
            Column("day_change", "Change", Kind.CHANGE),
            Column("week_before", "Week before", about="Messages of the same day of the week before"),
            Column("week_change", "Change in a week", Kind.CHANGE),
        ),
        chart=Chart("Messages per day", "day", "messages"),
        days_before=9,  # a week, the rest of the first day, and an hour that a clock was put back
    ),
    Report(
        name="months",
        title="Bytes by topic and month",
        about="What each topic stored in each month, for billing.",
        counts=EVERY_RECORD,
        columns=(Column("month", "Month", Kind.TEXT), _TOPIC, _KIND, _MESSAGES, _STORED, _BODIES),
        chart=Chart("Bytes stored per month, by topic", "month", "stored_bytes", "topic"),
    ),
    Report(
        name="producers",
        title="Producers by host",
        about="Which hosts sent to ordinary topics, to how many, and when first and last.",
        counts=ORDINARY,
        columns=(
            _HOST,
            _MESSAGES,
            _STORED,
            Column("topics", "Topics", about="To how many topics it sent"),
            Column("first_ms", "First", Kind.TIME),
            Column("last_ms", "Last", Kind.TIME),
        ),
        chart=Chart("Messages by host", "host", "messages"),
    ),
    Report(
        name="talkers",
        title="Top talkers",
        about="The hundred pairs of host and topic that stored the most bytes, and their share of all.",
        counts=ORDINARY,
        columns=(
            _HOST,
            _TOPIC,
            _MESSAGES,
            _STORED,
            Column("share", "Share", Kind.SHARE, about="Of all that ordinary topics stored in this range"),
        ),
        chart=Chart("Bytes stored by host and topic", "host", "stored_bytes", "topic"),
    ),
    Report(
        name="sizes",
        title="Sizes of bodies",
        about="Body sizes of each ordinary topic, as stored: half, nine tenths and 99 of 100 are no larger.",
        counts=ORDINARY,
        columns=(
            _TOPIC,
            _MESSAGES,
            Column("smallest", "Smallest", Kind.BYTES),
            Column("p50", "Half", Kind.BYTES, about="Half of the bodies are no larger"),
            Column("p90", "90 %", Kind.BYTES, about="Nine of ten bodies are no larger"),
            Column("p99", "99 %", Kind.BYTES, about="99 of 100 bodies are no larger"),
            Column("largest", "Largest", Kind.BYTES),
        ),
        chart=Chart("Size that 99 of 100 bodies stay within, by topic", "topic", "p99"),
    ),
    Report(
        name="latency",
        title="Produce latency",
        about=(
            "From the producer's clock to the broker's, for each ordinary topic: half, nine tenths and "
            "99 of 100 were no slower. A delayed message's delay is included. With a producer's clock "
            "ahead the value is negative."
        ),
        counts=ORDINARY,
        columns=(
            _TOPIC,
            _MESSAGES,
            Column("p50", "Half", Kind.MS, about="Half of the messages took no longer"),
            Column("p90", "90 %", Kind.MS, about="Nine of ten messages took no longer"),
            Column("p99", "99 %", Kind.MS, about="99 of 100 messages took no longer"),
            Column("longest", "Longest", Kind.MS),
            Column(
                "clock_ahead",
                "Clock ahead",
                about="Messages dated later than the broker stored them: their producer's clock is ahead",
            ),
        ),
        chart=Chart("Time that 99 of 100 messages stay within, by topic", "topic", "p99"),
    ),
    Report(
        name="retries",
        title="Retries and dead letters",
        about=(
            "Messages that a group sent back or gave up, by day and by cause: the error that its "
            "listener raised, and where, as GantryMQ's SDK reports it to the broker. Other clients "
            "report none."
        ),
        columns=(
            _DAY,
            Column("group", "Group", Kind.TEXT),
            Column("cause", "Cause", Kind.TEXT),
            Column("retried", "Retried"),
            Column("dead_letters", "Dead letters"),
            Column("attempts_max", "Most attempts", about="Maximum number of redeliveries of one of these messages"),
        ),
        chart=Chart("Messages sent back per day, by group", "day", "retried", "group"),
    ),
    Report(
        name="delays",
        title="Delayed messages",
        about=(
            "Messages that had to wait, by the day of storing and by delay level (with default settings "
            "level 1 is 1 s and level 18 is 2 h): those that producers delayed, and those that groups "
            "sent back for a retry."
        ),
        columns=(
            _DAY,
            Column("delay", "Delay", Kind.TEXT),
            Column("delayed", "By producers"),
            Column("retried", "By groups"),
            _STORED,
        ),
        chart=Chart("Messages delayed by producers per day, by delay", "day", "delayed", "delay"),
    ),
    Report(
        name="transactions",
        title="Transactions",
        about=(
            "Transactions started on each day, by their half messages, and transactions that ended on "
            "it. A half message that the broker stores again when it checks with the producer is not "
            "counted again. Given up: no producer answered in time."
        ),
        columns=(
            _DAY,
            Column("halves", "Half messages"),
            Column("committed", "Committed"),
            Column("rolled_back", "Rolled back"),
            Column("given_up", "Given up", about="No producer answered the broker's check of the transaction"),
        ),
        chart=Chart("Transactions committed per day", "day", "committed"),
    ),
    Report(
        name=FORECAST,
        title="Growth and forecast",
        about=(
            "Bytes that each broker stored on each whole day, and a forecast for the next 14: a line "
            "through the days of the range and the 28 before it. Four of five days will be between the "
            "lowest and the highest if nothing changes. The forecast needs three whole days."
        ),
        counts=EVERY_RECORD,
        columns=(
            Column("broker", "Broker", Kind.TEXT),
            _DAY,
            Column("kind", "Kind", Kind.TEXT),
            Column("bytes", "Bytes", Kind.BYTES),
            Column("low", "Lowest", Kind.BYTES, about="Nine of ten days will be above it"),
            Column("high", "Highest", Kind.BYTES, about="Nine of ten days will be below it"),
        ),
        chart=Chart("Bytes stored per day, and a forecast", "day", "bytes", "kind"),
        days_before=28,
    ),
    Report(
        name="slaves",
        title="Slaves behind their masters",
        about=(
            "How far each slave was behind at most in each hour, in what share of its minutes it was in "
            "sync, and its replication rate. Sampled by the dashboard each second."
        ),
        columns=(
            Column("hour", "Hour", Kind.TEXT),
            Column("slave", "Slave", Kind.TEXT),
            Column("behind_bytes", "Behind", Kind.BYTES),
            Column("behind_messages", "Messages behind"),
            Column("behind_seconds", "Time behind", Kind.SECONDS, about="Maximum in this hour"),
            Column("minutes", "Minutes seen", about="Minutes of this hour that the dashboard sampled"),
            Column(
                "in_sync", "In sync", Kind.SHARE, about="Share of the minutes in which it was in sync the whole time"
            ),
            Column("bytes_per_second", "Replicated per second", Kind.BYTES),
        ),
        chart=Chart("Most bytes behind in each hour, by slave", "hour", "behind_bytes", "slave", is_stacked=False),
        tables=("slaves",),
        nothing="No slave was seen in this range.",
    ),
    Report(
        name="lag",
        title="Groups behind, and promises",
        about=(
            "The maximum lag of each consumer group in each hour, and for how many of its minutes it was "
            "over the promise. Sampled by the dashboard; of more than 200 groups in a minute the worst."
        ),
        counts=GROUPS_TOPICS,
        columns=(
            Column("hour", "Hour", Kind.TEXT),
            Column("group", "Group", Kind.TEXT),
            Column(
                "behind_seconds",
                "Time behind",
                Kind.SECONDS,
                about="Age of the oldest message not consumed, the maximum in this hour",
            ),
            Column(
                "promise_seconds",
                "Promise",
                Kind.SECONDS,
                about="How far behind the group may be, as set on the page Reports",
            ),
            Column("minutes_over", "Minutes over", about="Minutes in which its lag was over the promise"),
            Column("minutes", "Minutes seen", about="Minutes of this hour that the dashboard sampled"),
            Column("lag", "Messages behind"),
            Column(
                "in_rate",
                "Stored per second",
                Kind.RATE,
                about="Messages of its topics over the minutes seen, without retries",
            ),
            Column(
                "out_rate",
                "Consumed per second",
                Kind.RATE,
                about="Messages by which its offsets moved over the sampled minutes; a retried message counts again",
            ),
        ),
        chart=Chart("Longest time behind in each hour, by group", "hour", "behind_seconds", "group", is_stacked=False),
        tables=("groups",),
        nothing="No consumer group was seen in this range.",
    ),
    Report(
        name="brokers",
        title="Brokers by hour",
        about=(
            "Messages per second that each broker stored and delivered, as the mean of an hour and "
            "in its busiest minute, and how full its disk was at most. Sampled by the dashboard each "
            "second."
        ),
        counts=BROKERS_OWN,
        columns=(
            Column("hour", "Hour", Kind.TEXT),
            Column("broker", "Broker", Kind.TEXT),
            Column("in_rate", "Stored per second", Kind.RATE),
            Column("in_most", "Stored, busiest minute", Kind.RATE),
            Column("out_rate", "Delivered per second", Kind.RATE),
            Column("out_most", "Delivered, busiest minute", Kind.RATE),
            Column("disk_ratio", "Disk full", Kind.SHARE),
            Column("commit_log_bytes", "Commit log", Kind.BYTES),
            Column("minutes", "Minutes seen", about="Minutes of this hour that the dashboard sampled"),
        ),
        chart=Chart("Messages stored per second in each hour, by broker", "hour", "in_rate", "broker"),
        tables=("brokers",),
        nothing="No broker was seen in this range.",
    ),
    Report(
        name="unused",
        title="Unused topics and groups",
        about=(
            "Topics in which nothing was stored in the range, and groups that had no member and consumed "
            "nothing in it. Last use is searched for in the range and the 90 days before it."
        ),
        columns=(
            Column("kind", "Kind", Kind.TEXT),
            Column("name", "Name", Kind.TEXT),
            Column("last_ms", "Last used", Kind.TIME),
            Column("days", "Days since"),
            Column("waiting", "Messages waiting", about="Messages that the group has not consumed"),
        ),
        chart=Chart("Days since the last use", "name", "days", "kind"),
        days_before=90,
        tables=("messages", "names", "groups"),
        nothing="Every topic and group was used in this range.",
    ),
)
REPORTS = {report.name: report for report in _ALL}
