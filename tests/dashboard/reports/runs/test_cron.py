"""Times by a cron line on the clocks of a zone, and lines that are refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboard.reports.runs.cron import CronRefused, check, following

BERLIN = "Europe/Berlin"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "zone", "after", "then"),
    [
        ("0 6 * * mon-fri", "UTC", "2026-11-20T06:00", "2026-11-23T06:00"),
        ("30 8 1 * *", BERLIN, "2026-11-20T06:00", "2026-12-01T07:30"),
        ("30 2 * * *", BERLIN, "2026-03-28T12:00", "2026-03-29T01:00"),  # 02:30 is left out: just after
        ("30 2 * * *", BERLIN, "2026-10-24T12:00", "2026-10-25T00:30"),  # and comes twice: once
        ("30 2 * * *", BERLIN, "2026-10-25T00:30", "2026-10-26T01:30"),
        ("0 * * * *", BERLIN, "2026-10-25T00:00", "2026-10-25T01:00"),  # each hour goes on
        ("0 8 * * mon", BERLIN, "2026-10-19T06:00", "2026-10-26T07:00"),
    ],
)
def test_the_next_time_is_that_of_the_zones_clocks(line: str, zone: str, after: str, then: str) -> None:
    assert following(line, zone, utc(after)) == utc(then)


@pytest.mark.parametrize(
    ("line", "zone", "why"),
    [
        ("", "UTC", "not a cron line"), ("* * * *", "UTC", "not a cron line"),
        ("61 * * * *", "UTC", "not a cron line (Bad minute)"),
        ("0 0 30 2 *", "UTC", "not a cron line (Bad day-of-month)"), ("* * */20 * 1L", "UTC", "this time never occurs"),
        ("0 6 * * *", "Mars/Olympus", "not a time zone"), ("0 6 * * *", "../../etc/passwd", "not a time zone"),
        ("*/5 * * * *", "UTC", "more often than every 15 minutes"),
        ("0,1 6 * * *", "UTC", "more often than every 15 minutes"),
    ],
)  # fmt: skip
def test_what_is_no_schedule_is_refused_in_a_sentence(line: str, zone: str, why: str) -> None:
    with pytest.raises(CronRefused) as refusal:
        check(line, zone, utc("2026-11-20T06:00"))
    assert why in str(refusal.value)


def test_each_quarter_of_an_hour_is_often_enough() -> None:
    check("*/15 * * * *", BERLIN, utc("2026-03-28T12:00"))
    check("*/15 * * * *", BERLIN, utc("2026-10-24T12:00"))
