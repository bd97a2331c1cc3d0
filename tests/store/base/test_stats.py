"""Counters and their windows."""

from __future__ import annotations

import pytest

from store.base.stats import StoreStatsService


def test_rates_need_enough_samples() -> None:
    stats = StoreStatsService(0.0)
    for second in range(11):
        stats.put_times = 50 * second
        stats.sample(float(second))
    assert stats.put_tps() == "50.0  "
    assert stats.get_total_tps() == "0.0 0.0 0.0"


def test_each_window_looks_back_as_far_as_it_says() -> None:
    """Rates grow all the time: 10, 60 and 600 s back give three numbers. Clocks that run unevenly count as they ran."""
    stats = StoreStatsService(0.0)
    for second in range(0, 1202, 2):
        stats.put_times = second * second
        stats.get_found_times, stats.get_miss_times, stats.get_transferred = second, 2 * second, 32 * second
        assert len(stats.put_tps().split()) == sum(second // 2 > window for window in (10, 60, 600))
        stats.sample(float(second))
    last = 1200
    expected = [(last**2 - (last - 2 * window) ** 2) / (2 * window) for window in (10, 60, 600)]
    assert [float(text) for text in stats.put_tps().split()] == pytest.approx(expected)
    assert stats.get_found_tps() == "1.0 1.0 1.0"
    assert stats.get_miss_tps() == "2.0 2.0 2.0"
    assert stats.get_total_tps() == "3.0 3.0 3.0"
    assert stats.get_transferred_tps() == "32.0 32.0 32.0"


def test_each_minute_counts_its_own_puts() -> None:
    stats = StoreStatsService(0.0)
    for minute, (puts, slow) in enumerate([(100, [5, 5]), (30, [700]), (0, [])], 1):
        stats.put_times += puts
        for elapsed_ms in slow:
            stats.slow_put(elapsed_ms)
        stats.sample(60.0 * minute)
        text = stats.put_distribution()
        assert text is not None
        cells = [int(cell.rpartition(":")[2]) for cell in text.split()]
        assert (sum(cells), cells[0]) == (puts, puts - len(slow))


@pytest.mark.parametrize(
    ("elapsed_ms", "cell"),
    [
        (1, "[0~10ms]"), (9, "[0~10ms]"), (10, "[10~50ms]"), (49, "[10~50ms]"), (50, "[50~100ms]"),
        (100, "[100~200ms]"), (499, "[200~500ms]"), (500, "[500ms~1s]"), (1000, "[1~2s]"), (4999, "[4~5s]"),
        (9999, "[5~10s]"), (10_000, "[10s~]"),
    ],
)  # fmt: skip
def test_a_slow_put_falls_into_its_cell(elapsed_ms: int, cell: str) -> None:
    stats = StoreStatsService(0.0)
    stats.put_times = 1
    stats.slow_put(elapsed_ms)
    stats.sample(60.0)
    assert f"{cell}:1 " in (stats.put_distribution() or "")


def test_latencies_are_reported_for_the_finished_minute() -> None:
    stats = StoreStatsService(0.0)
    assert stats.put_distribution() is None
    stats.put_times = 100
    for elapsed_ms in (5, 15, 20000):
        stats.slow_put(elapsed_ms)
    stats.sample(60.0)
    text = stats.put_distribution()
    assert text is not None
    assert text.startswith("[<=0ms]:97 [0~10ms]:1 [10~50ms]:1 ")
    assert text.endswith("[10s~]:1 ")
    assert stats.put_max_ms == 20000
    assert stats.put_latency_ms(0.5) < 1
    assert stats.put_latency_ms(0.98) == pytest.approx(6.0, abs=1.5)


def test_runtime_rows_follow_at_once() -> None:
    stats = StoreStatsService(1.0)
    assert stats.runtime_info()["putMessageTimesTotal"] == "1"  # as RocketMQ shows none
    stats.put_times, stats.put_bytes = 4, 100
    rows = stats.runtime_info()
    assert (rows["putMessageTimesTotal"], rows["putMessageAverageSize"]) == ("4", "25.0")
    assert rows["putMessageDistributeTime"] == "null"
