"""Counters of the store and the windows they are reported in (RocketMQ: StoreStatsService).

The writer and the reader add to plain ints; `sample`, called once a second, turns them into rates. A put normally takes
microseconds, so only puts of a millisecond and more are sorted into cells one by one.
"""

from __future__ import annotations

import bisect
from collections import deque

SAMPLES_MAX = 601
SLOW_S = 0.001  # a put or get that took longer is looked at one by one
WINDOWS_S = (10, 60, 600)
_CELL_BOUNDS_MS = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
_CELL_NAMES = (
    "[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]", "[1~2s]", "[2~3s]",
    "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]",
)  # fmt: skip
_PERCENTILE_STEPS = ((20, 1), (50, 2), (100, 5), (200, 10), (500, 50), (1000, 100), (10000, 1000))


def _percentile_bounds() -> list[int]:
    bounds, bound = [], 0
    for end, step in _PERCENTILE_STEPS:
        while bound < end:
            bound += step
            bounds.append(bound)
    return bounds


_BOUNDS_MS = _percentile_bounds()


class StoreStatsService:
    """`put_times`, `put_bytes` … are totals since the store was made; times are counted per message."""

    def __init__(self, now: float) -> None:
        self.boot_timestamp_ms = int(now * 1000)
        self.put_times = 0
        self.put_bytes = 0
        self.put_failed_times = 0
        self.get_found_times = 0
        self.get_miss_times = 0
        self.get_transferred = 0
        self.put_max_ms = 0
        self.get_max_ms = 0
        self.dispatch_max_buffer = 0
        self._samples: deque[tuple[float, int, int, int, int]] = deque(maxlen=SAMPLES_MAX)
        self._slow_cells = [0] * len(_CELL_NAMES)
        self._slow_percentiles = [0] * (len(_BOUNDS_MS) + 1)
        self._minute_start_s = now
        self._minute_start_puts = 0
        self._last_cells: list[int] | None = None
        self._last_percentiles: list[int] | None = None

    def slow_put(self, elapsed_ms: int) -> None:
        """Count a put that took a millisecond or more."""
        self.put_max_ms = max(self.put_max_ms, elapsed_ms)
        self._slow_cells[bisect.bisect_right(_CELL_BOUNDS_MS, elapsed_ms)] += 1
        self._slow_percentiles[bisect.bisect_right(_BOUNDS_MS, elapsed_ms)] += 1

    def slow_get(self, elapsed_ms: int) -> None:
        """Note a get that took a millisecond or more."""
        self.get_max_ms = max(self.get_max_ms, elapsed_ms)

    def sample(self, now: float) -> None:
        """Take the once-a-second sample; each minute, keep the finished minute's latencies."""
        self._samples.append((now, self.put_times, self.get_found_times, self.get_miss_times, self.get_transferred))
        if now - self._minute_start_s >= 60:
            fast = max(self.put_times - self._minute_start_puts - sum(self._slow_cells), 0)
            self._last_cells = [fast, *self._slow_cells[1:]]
            self._last_percentiles = [self._slow_percentiles[0] + fast, *self._slow_percentiles[1:]]
            self._slow_cells = [0] * len(_CELL_NAMES)
            self._slow_percentiles = [0] * (len(_BOUNDS_MS) + 1)
            self._minute_start_s = now
            self._minute_start_puts = self.put_times

    def rates(self, column: int) -> list[float | None]:
        """Return per-second rates over 10, 60 and 600 s, None with too few samples. Columns: 1 put … 4 transferred."""
        rates: list[float | None] = []
        for window in WINDOWS_S:
            if len(self._samples) <= window:
                rates.append(None)
                continue
            last, before = self._samples[-1], self._samples[-1 - window]
            elapsed = last[0] - before[0]
            rates.append((last[column] - before[column]) / elapsed if elapsed > 0 else 0.0)
        return rates

    def put_tps(self) -> str:
        return _text(self.rates(1))

    def get_found_tps(self) -> str:
        return _text(self.rates(2))

    def get_miss_tps(self) -> str:
        return _text(self.rates(3))

    def get_transferred_tps(self) -> str:
        return _text(self.rates(4))

    def get_total_tps(self) -> str:
        pairs = zip(self.rates(2), self.rates(3), strict=True)
        return " ".join(str((found or 0.0) + (miss or 0.0)) for found, miss in pairs)

    def put_distribution(self) -> str | None:
        """The finished minute's latencies, as RocketMQ prints them; None before the first."""
        if self._last_cells is None:
            return None
        return "".join(f"{name}:{count} " for name, count in zip(_CELL_NAMES, self._last_cells, strict=True))

    def put_latency_ms(self, share: float) -> float:
        """Return a percentile (0.99, 0.999) of the finished minute's puts, interpolated; 0 without one."""
        cells = self._last_percentiles
        total = sum(cells) if cells else 0
        if not cells or not total:
            return 0.0
        wanted, seen = share * total, 0
        for index, count in enumerate(cells):
            if count and seen + count >= wanted:
                low = _BOUNDS_MS[index - 1] if index else 0
                high = _BOUNDS_MS[index] if index < len(_BOUNDS_MS) else low
                return low + (high - low) * (wanted - seen) / count
            seen += count
        return float(_BOUNDS_MS[-1])

    def runtime_info(self) -> dict[str, str]:
        """The rows of GET_BROKER_RUNTIME_INFO that come from here."""
        times = self.put_times or 1
        return {
            "putMessageEntireTimeMax": str(self.put_max_ms),
            "putMessageTimesTotal": str(times),
            "putMessageFailedTimes": str(self.put_failed_times),
            "putMessageSizeTotal": str(self.put_bytes),
            "putMessageDistributeTime": self.put_distribution() or "null",
            "putMessageAverageSize": str(self.put_bytes / times),
            "dispatchMaxBuffer": str(self.dispatch_max_buffer),
            "getMessageEntireTimeMax": str(self.get_max_ms),
            "putTps": self.put_tps(),
            "getFoundTps": self.get_found_tps(),
            "getMissTps": self.get_miss_tps(),
            "getTotalTps": self.get_total_tps(),
            "getTransferedTps": self.get_transferred_tps(),
            "putLatency99": f"{self.put_latency_ms(0.99):.2f}",
            "putLatency999": f"{self.put_latency_ms(0.999):.2f}",
        }


def _text(rates: list[float | None]) -> str:
    return " ".join("" if rate is None else str(rate) for rate in rates)
