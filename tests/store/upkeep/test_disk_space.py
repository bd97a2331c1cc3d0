"""The forecast: how fast a disk fills up, and when it will be full."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from store.base.config import MessageStoreConfig
from store.upkeep.disk_space import DiskForecast, DiskForecaster, DiskSpace, disk_ratio, joint_space

GIB = 1 << 30
MARKS = MessageStoreConfig(root=Path("any"))  # those of the defaults


def fed(rate: float, *, start: int, seconds: int, total: int = 100 * GIB) -> DiskForecast:
    forecaster = DiskForecaster(MARKS)
    for second in range(0, seconds + 1, 10):
        forecaster.note(1000.0 + second, DiskSpace(int(start + rate * second), total))
    return forecaster.forecast()


def test_a_steady_rate_leads_to_the_next_mark_and_to_full() -> None:
    forecast = fed(1 << 20, start=50 * GIB, seconds=1800)
    assert forecast.bytes_per_second == pytest.approx(1 << 20)
    assert forecast.next_mark == 0.75
    used = 50 * GIB + (1800 << 20)
    assert forecast.seconds_to_next_mark == pytest.approx((75 * GIB - used) / (1 << 20))
    assert forecast.seconds_to_full == pytest.approx((90 * GIB - used) / (1 << 20))


@pytest.mark.parametrize(("used", "mark"), [(10, 0.75), (75, 0.75), (76, 0.85), (86, 0.90), (91, None)])
def test_the_next_mark_is_the_first_that_is_not_passed(used: int, mark: float | None) -> None:
    forecast = fed(1 << 20, start=used * GIB - (1800 << 20), seconds=1800)
    assert forecast.next_mark == mark
    assert (forecast.seconds_to_next_mark is None) == (mark is None)


def test_nothing_is_foretold_without_a_minute_of_readings_or_without_growth() -> None:
    assert DiskForecaster(MARKS).forecast() == DiskForecast()
    assert fed(1000, start=GIB, seconds=50) == DiskForecast(next_mark=0.75)
    for rate in (0, -1000, 1):  # standing, shrinking, full in 2000 years
        forecast = fed(rate, start=GIB, seconds=600)
        assert forecast == dataclasses.replace(forecast, seconds_to_next_mark=None, seconds_to_full=None)
        assert forecast.bytes_per_second == pytest.approx(rate)


def test_a_full_disk_is_full_now() -> None:
    assert fed(1000, start=95 * GIB, seconds=600).seconds_to_full == 0


def test_only_the_last_half_hour_counts() -> None:
    forecaster = DiskForecaster(MARKS)
    for second in range(0, 7200, 10):
        used = GIB + max(second - 5000, 0) * 1000
        forecaster.note(second, DiskSpace(used, 100 * GIB))
    assert forecaster.forecast().bytes_per_second == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize(("seconds", "is_foretold"), [(600, False), (1200, True)])
def test_a_short_past_foretells_no_far_future(seconds: int, is_foretold: bool) -> None:
    """6.7 h at 1 MiB/s."""
    forecast = fed(1 << 20, start=90 * GIB - (24_000 + seconds << 20), seconds=seconds)
    assert (forecast.seconds_to_full is not None) == is_foretold


def test_what_programs_write_and_delete_again_is_no_trend() -> None:
    """The whole half hour grew by 2 GiB, in leaps that went up and down by 8."""
    forecaster = DiskForecaster(MARKS)
    for second in range(0, 1801, 10):
        leap = 8 * GIB if second // 110 % 2 else 0
        forecaster.note(second, DiskSpace(50 * GIB + leap + 2 * GIB * second // 1800, 100 * GIB))
    forecast = forecaster.forecast()
    assert forecast.bytes_per_second is not None and forecast.bytes_per_second > 0
    assert forecast.seconds_to_full is forecast.latest_full_s is None


def test_a_rate_that_varies_makes_a_range_and_a_steady_one_none() -> None:
    forecaster, used = DiskForecaster(MARKS), 50 * GIB
    for second in range(0, 1801, 10):
        used += (12 if second // 300 % 2 else 8) << 20
        forecaster.note(second, DiskSpace(used, 100 * GIB))
    forecast = forecaster.forecast()
    assert forecast.earliest_full_s and forecast.seconds_to_full and forecast.latest_full_s
    assert (
        forecast.earliest_full_s
        < 0.9 * forecast.seconds_to_full
        < 1.1 * forecast.seconds_to_full
        < forecast.latest_full_s
    )
    steady = fed(1 << 20, start=50 * GIB, seconds=1800)
    assert steady.earliest_full_s == pytest.approx(steady.latest_full_s)


def test_a_disk_that_began_to_fill_up_minutes_ago_is_seen() -> None:
    forecaster = DiskForecaster(MARKS)
    for second in range(0, 1801, 10):
        forecaster.note(second, DiskSpace(50 * GIB + max(second - 1500, 0) * (100 << 20), 100 * GIB))
    free = 40 * GIB - 300 * (100 << 20)
    assert forecaster.forecast().seconds_to_full == pytest.approx(free / (100 << 20), rel=0.01)


def test_another_disk_under_the_path_begins_without_a_past() -> None:
    forecaster = DiskForecaster(MARKS)
    for second in range(0, 700, 10):
        forecaster.note(second, DiskSpace(GIB + second * 1000, 100 * GIB))
    forecaster.note(700, DiskSpace(5 * GIB, 200 * GIB))
    assert forecaster.forecast().bytes_per_second is None


def test_two_folders_on_one_disk_count_once(tmp_path: Path) -> None:
    assert joint_space([tmp_path / "a", tmp_path / "b"]).total_bytes == joint_space([tmp_path]).total_bytes


def test_a_disk_that_does_not_answer_has_no_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(path: Path) -> os.statvfs_result:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(os, "statvfs", stale)
    assert disk_ratio(tmp_path) == -1.0


@pytest.mark.parametrize(
    ("used", "total", "ratio"),
    [(0, 100, 0.0), (1, 100, 0.01), (1, 101, 0.01), (90, 100, 0.9), (901, 1000, 0.91), (90 << 60, 100 << 60, 0.9),
     ((90 << 60) + 1, 100 << 60, 0.91), (100, 100, 1.0), (5, 0, 0.0)],
)  # fmt: skip
def test_a_ratio_is_rounded_up_to_hundredths_as_in_rocketmq(used: int, total: int, ratio: float) -> None:
    assert DiskSpace(used, total).ratio == ratio
