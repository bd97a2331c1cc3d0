"""Samples of slaves between the dashboard and the lake: appended by the minute, whole lines only, for thirty days."""

from __future__ import annotations

from pathlib import Path

from appliance.reports.slave_samples import DAY_MS, KEPT_DAYS, MINUTE_MS, append, read
from tests.appliance.reports.samples import sample
from tests.appliance.reports.stores import NOON

BOTH: list[tuple[str, int | None]] = [("broker-a:1", 3), ("broker-a:2", None)]


def test_rows_come_back_in_order_over_the_ends_of_days(tmp_path: Path) -> None:
    minutes = [NOON, NOON + MINUTE_MS, NOON + DAY_MS]
    for at_ms in minutes:
        append(tmp_path, [sample(at_ms), sample(at_ms, "broker-a:2", None)])
    assert read(tmp_path, 0) == [sample(at, name, known) for at in minutes for name, known in BOTH]
    assert [each.at_ms for each in read(tmp_path, NOON + MINUTE_MS)] == [at for at in minutes[1:] for _ in BOTH]
    assert read(tmp_path, minutes[-1] + 1) == []


def test_a_line_that_a_crash_tore_is_left_out_and_the_next_one_is_whole(tmp_path: Path) -> None:
    append(tmp_path, [sample()])
    [path] = (tmp_path / "dashboard" / "samples").iterdir()
    path.write_bytes(path.read_bytes() + path.read_bytes()[:-20])
    append(tmp_path, [sample(NOON + MINUTE_MS)])
    assert read(tmp_path, 0) == [sample(), sample(NOON + MINUTE_MS)]


def test_days_that_are_too_old_go(tmp_path: Path) -> None:
    for day in (0, 1, KEPT_DAYS, KEPT_DAYS + 1):
        append(tmp_path, [sample(NOON + day * DAY_MS)])
    assert [each.at_ms for each in read(tmp_path, 0)] == [NOON + day * DAY_MS for day in (1, KEPT_DAYS, KEPT_DAYS + 1)]
