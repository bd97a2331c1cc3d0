"""The last hour of each of the Overview's tiles as a small line, out of the history."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dashboard.history.block_builder import HOUR, MINUTE
from dashboard.history.charts import values_of
from dashboard.history.series import DEAD, DISK, IN, LAG, OUT, STORED

WIDTH, HEIGHT = 120, 24
EDGE = 2  # so that the line's own width is not cut off
SHOWN = (IN, OUT, LAG, DEAD, STORED, DISK)


@dataclass(frozen=True, slots=True)
class Spark:
    """points: of an SVG polyline within WIDTH x HEIGHT, "" while fewer than two minutes are known."""

    points: str
    width: int = WIDTH
    height: int = HEIGHT


async def sparks(now: float | None = None) -> dict[str, Spark]:
    """By series. A minute that is not known is left out."""
    until = int(time.time() if now is None else now)
    begin = (until - HOUR) // MINUTE * MINUTE
    return {name: Spark(_line(await values_of(name, MINUTE, MINUTE, begin, until))) for name in SHOWN}


def _line(values: dict[int, float]) -> str:
    """From the first known minute to the last, the least at the bottom: a change shows."""
    if len(values) < 2:
        return ""
    least, most = min(values.values()), max(values.values())
    first, last = min(values), max(values)
    across, up = WIDTH / (last - first), (HEIGHT - 2 * EDGE) / (most - least or 1.0)
    return " ".join(
        f"{(at - first) * across:.1f},{HEIGHT - EDGE - (value - least) * up:.1f}"
        for at, value in sorted(values.items())
    )
