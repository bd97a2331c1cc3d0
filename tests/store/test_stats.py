"""Counters and their windows."""

from __future__ import annotations

import pytest

from store.stats import StoreStatsService


def test_rates_need_enough_samples() -> None:
    stats = StoreStatsService(0.0)
    for second in range(11):
        stats.put_times = 50 * second
        stats.sample(float(second))
    assert stats.put_tps() == "50.0  "
    assert stats.get_total_tps() == "0.0 0.0 0.0"


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
