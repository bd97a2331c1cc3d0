"""Sums of messages over steps of time, so that what a row costs most, calendar and names, is worked out once a step."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime

from pyspark.sql import Column
from pyspark.sql import functions as F

from appliance.reports.runs import HOUR_MS
from appliance.reports.samples.lines import MINUTE_MS

QUARTER_MS = 900_000


def step_of(begin_ms: int, end_ms: int, zone: str) -> int:
    """The longest step, in ms, in none of which the zone's clocks change their day: all have one offset, a whole one.

    A minute suits every zone since 1972: offsets are whole minutes, and clocks change at them.
    """
    for step in (HOUR_MS, QUARTER_MS):
        if _is_steady(begin_ms, end_ms, zoneinfo.ZoneInfo(zone), step):
            return step
    return MINUTE_MS


def step_begin(at_ms: str, step: int) -> Column:
    """When the step of a time began, in ms."""
    return F.col(at_ms) - F.pmod(F.col(at_ms), F.lit(step))


def _is_steady(begin_ms: int, end_ms: int, zone: zoneinfo.ZoneInfo, step: int) -> bool:
    if zone.key == "UTC":
        return True
    for at in range(begin_ms - begin_ms % step, end_ms, step):
        offset = _offset_ms(at, zone)
        if offset % step or _offset_ms(at + step - 1, zone) != offset:
            return False
    return True


def _offset_ms(at_ms: int, zone: zoneinfo.ZoneInfo) -> int:
    offset = datetime.fromtimestamp(at_ms // 1000, UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return round(offset.total_seconds() * 1000)
