"""Who reads a topic: its groups, and how far the one that is furthest behind is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dashboard.status.board import WatchedGroup


@dataclass(slots=True)
class Readers:
    """groups: how many have a place in it; lag, lag_ms, group: of the one that is furthest behind, by messages.

    at: of the oldest look. A group that was not looked at yet is missing.
    """

    groups: int = 0
    lag: int = 0
    lag_ms: int | None = None
    group: str = ""
    at: float = 0.0
    out_rate: float | None = None  # messages a second that all of them consume together; None: of none it is known


def readers_of(groups: Iterable[WatchedGroup]) -> Mapping[str, Readers]:
    """By topic, as the groups were seen last."""
    found: dict[str, Readers] = {}
    for group in groups:
        lags: dict[str, tuple[int, int | None]] = {}
        rates: dict[str, float] = {}
        for place in group.places:
            lag, lag_ms = lags.get(place.topic, (0, None))
            times = [value for value in (lag_ms, place.lag_ms) if value is not None]
            lags[place.topic] = lag + place.lag, max(times, default=None)
            if place.consume_rate is not None:
                rates[place.topic] = rates.get(place.topic, 0.0) + place.consume_rate
        for topic, (lag, lag_ms) in lags.items():
            readers = found.setdefault(topic, Readers(at=group.at))
            if topic in rates:
                readers.out_rate = (readers.out_rate or 0.0) + rates[topic]
            readers.groups += 1
            readers.at = min(readers.at, group.at)
            if not readers.group or lag > readers.lag:
                readers.lag, readers.lag_ms, readers.group = lag, lag_ms, group.name
    return found
