"""Sums over steps of time are exact when no step holds two days of a zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("pyspark")

from appliance.reports.runs import HOUR_MS
from appliance.reports.samples.lines import MINUTE_MS
from appliance.reports.transforms.messages import QUARTER_MS, step_of

DAY_MS = 24 * HOUR_MS
ODD = "America/St_Johns"  # until 2011 its clocks were put back a minute after midnight: two days in an hour


@pytest.mark.parametrize(
    ("zone", "year", "step"),
    [
        ("UTC", 2026, HOUR_MS),
        ("Europe/Berlin", 2026, HOUR_MS),
        ("Asia/Kolkata", 2026, QUARTER_MS),
        ("Asia/Kathmandu", 2026, QUARTER_MS),
        (ODD, 2026, QUARTER_MS),
        (ODD, 2009, MINUTE_MS),
    ],
)
def test_the_step_is_the_longest_in_which_no_clock_changes(zone: str, year: int, step: int) -> None:
    begin = _ms(datetime(year, 10, 10, 5, 7, tzinfo=UTC))
    assert step_of(begin, begin + 40 * DAY_MS, zone) == step


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", ODD])
def test_all_minutes_of_a_step_are_of_one_day(zone: str) -> None:
    begin = _ms(datetime(2009, 10, 20, tzinfo=UTC))
    end = begin + 14 * DAY_MS
    step = step_of(begin, end, zone)
    days = {at: datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).date() for at in range(begin, end, MINUTE_MS)}
    assert all(day == days[at - at % step] for at, day in days.items())


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
