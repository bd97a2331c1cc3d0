"""What is sampled: the rows of each kind, and for how long their files are kept if no run takes them to the lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One minute of something. at_ms: when the minute began."""

    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaveSample(Sample):
    """One slave in one minute. The differences are the largest of the minute; behind_messages: None when not known.

    in_sync: all the time. bytes_per_second: what it was fed, mean. seconds: for how many it was seen connected.
    """

    broker: str
    slave: str
    behind_bytes: int
    behind_messages: int | None
    behind_seconds: float
    in_sync: bool
    bytes_per_second: float
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSample(Sample):
    """One consumer group in one minute, all of its topics together. None: not known.

    lag, behind_seconds: the largest of the minute; members: the fewest. consumer_offset and end_offset: sums over its
    queues at the last look. stored (without retries), consumed: differences of offsets since the last look before this
    minute, and counted_minutes: how many minutes they cover. last_consumed_ms: when its newest consumed message was
    stored; 0: none.
    """

    group: str
    lag: int | None
    behind_seconds: float | None
    members: int | None
    consumer_offset: int
    end_offset: int
    last_consumed_ms: int
    looks: int
    stored: int | None = None  # lines of before these were counted have none of the three
    consumed: int | None = None
    counted_minutes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSample(Sample):
    """One broker in one minute. Rates: messages a second, mean; disk_ratio: the largest, 0...1. None: not known.

    seconds: for how many it answered.
    """

    broker: str
    in_rate: float | None
    out_rate: float | None
    disk_ratio: float | None
    commit_log_bytes: int | None
    seconds: int


Row = TypeVar("Row", bound=Sample)


@dataclass(frozen=True, slots=True)
class SampleKind(Generic[Row]):
    """name: of its files and of its table in the lake. kept_days: how long lines wait for a run."""

    name: str
    row: type[Row]
    kept_days: int


SLAVES = SampleKind("slaves", SlaveSample, 30)  # as the dashboard's own history
GROUPS = SampleKind("groups", GroupSample, 7)  # at most some 60 MB a day
BROKERS = SampleKind("brokers", BrokerSample, 30)
