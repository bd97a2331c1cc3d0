"""A value with its moment, and a page's table of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from dashboard.cluster import units
from dashboard.language.sentences import gettext
from dashboard.status.board import FRESH_S


class Metric(NamedTuple):
    """One value. at: when it was read (epoch seconds), None when it is unknown. why: the reason, for hovering."""

    text: str
    at: float | None
    why: str | None = None

    def state(self, now: float) -> str:
        if self.at is None:
            return "unknown"
        return "stale" if now - self.at > FRESH_S else "live"


def shape_of(*rows: str) -> str:
    """A text that changes when rows come or go, or what stands in them besides figures."""
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]


@dataclass
class Metrics:
    """All metrics of one page. bars: key to a ratio 0…1, None when unknown."""

    now: float
    shape: str = ""  # changes when rows come or go: the page then fetches its fragment again
    values: dict[str, Metric] = field(default_factory=dict)
    bars: dict[str, float | None] = field(default_factory=dict)

    def put(self, key: str, text: str, at: float | None, why: str | None = None) -> None:
        """Add a metric. The text of an unknown value makes it unknown, whatever its moment."""
        is_unknown = text == units.UNKNOWN or at is None
        self.values[key] = (
            Metric(units.UNKNOWN, None, why or gettext("not known yet")) if is_unknown else Metric(text, at, why)
        )
