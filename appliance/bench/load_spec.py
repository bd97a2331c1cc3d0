"""The specification of a load and its result: what the benchmark tells a load generator, and what that tells back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

SLACK_S = 180.0  # a load that takes so much longer than it was told hangs; the compiled one gives up before, with words
PULLED = 32  # messages of one pull
TOPIC_DIGITS = 5  # of a load over several topics: they are numbered


@dataclass(frozen=True, kw_only=True)
class LoadSpec:
    """One load: what, how wide, how long."""

    kind: str  # send, batch, pull, latency
    address: str
    topic: str
    queue_count: int = 8
    topic_count: int = 1  # more than one: `topic` is followed by a number of TOPIC_DIGITS digits
    connections: int = 1
    in_flight: int = 1
    body_bytes: int = 1024
    batch: int = 32
    warm_s: float = 0.5
    measure_s: float = 3.0
    messages_max: int = 0  # stop when so many are acknowledged; 0: only by time
    queue_length: int = 0  # pull: turn back to the start of the queue here
    rate: int = 1000  # latency: messages a second
    binary_headers: bool = False  # ROCKETMQ instead of JSON
    one_way: bool = False  # sends that are not answered
    access_key: str = ""  # sends are signed under this account
    secret_key: str = ""

    @property
    def timeout_s(self) -> float:
        return self.warm_s + self.measure_s + SLACK_S


@dataclass
class LoadResult:
    """What one load saw. Rates and times are of the measured part; `acknowledged` counts the warm-up too."""

    rate: float = 0.0
    acknowledged: int = 0
    measured: int = 0
    measured_s: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    ack_p50_ms: float = 0.0  # latency load: until the producer has its answer
    ack_p99_ms: float = 0.0
    cpu_share: float = 0.0  # of one core, by this process, in the measured part
    cpu_us_per_message: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)  # answers with another code than success, by code


class Load(Protocol):
    """What runs loads; the one there is: generator/drive.py."""

    def run(self, spec: LoadSpec) -> LoadResult: ...


def percentile_of_counts(counts: Counter[int], percent: float) -> int:
    """The smallest value that at least `percent` of the counted values don't exceed; 0 when nothing was counted."""
    wanted = counts.total() * percent / 100
    seen = 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= wanted:
            return value
    return 0
