"""The specification of a load and its result: the JSON between the benchmark and its load process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class LoadSpec:
    """One load: what, how wide, how long."""

    kind: str  # send, batch, pull, latency
    address: str
    topic: str
    queue_count: int = 8
    connections: int = 1
    in_flight: int = 1
    body_bytes: int = 1024
    batch: int = 32
    warm_s: float = 0.5
    measure_s: float = 3.0
    messages_max: int = 0  # stop when so many are acknowledged; 0: only by time
    queue_length: int = 0  # pull: turn back to the start of the queue here
    rate: int = 1000  # latency: messages a second


@dataclass
class LoadResult:
    """What one load saw. Rates and times are of the measured part; `acknowledged` counts the warm-up too."""

    rate: float = 0.0
    acknowledged: int = 0
    measured: int = 0
    measured_s: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    ack_p50_ms: float = 0.0  # latency load: until the producer has its answer
    ack_p99_ms: float = 0.0
    cpu_share: float = 0.0  # of one core, by this process, in the measured part
    cpu_us_per_message: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)  # answers with another code than success, by code


def percentile_of_counts(counts: Counter[int], percent: float) -> int:
    """The smallest value that at least `percent` of the counted values don't exceed; 0 when nothing was counted."""
    wanted = counts.total() * percent / 100
    seen = 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= wanted:
            return value
    return 0
