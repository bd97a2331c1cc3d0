"""What a page, and a number of open tabs, cost the dashboard's process and the brokers'."""

from __future__ import annotations

import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psutil

from tests.appliance_process import RunningAppliance
from tests.bench.dashboard.tabs import Tab
from tests.visitor import Visitor


class Cost(NamedTuple):
    """Milliseconds: median and worst of a request, CPU per request or second of dashboard and brokers."""

    median_ms: float
    worst_ms: float
    dashboard_ms: float
    brokers_ms: float


class Meter:
    """CPU of the appliance's processes."""

    def __init__(self, gantry: RunningAppliance) -> None:
        self._web, self._brokers = gantry.web, gantry.workers("broker")

    def read(self) -> tuple[float, float]:
        """CPU milliseconds so far: the dashboard's process, all brokers."""
        return _cpu_ms(self._web), sum(_cpu_ms(broker) for broker in self._brokers)

    @contextmanager
    def stopped(self, number: int, how: signal.Signals) -> Iterator[None]:
        """One broker gets a signal, and SIGCONT at the end."""
        broker = self._brokers[number]
        broker.send_signal(how)
        try:
            yield
        finally:
            if broker.is_running():
                broker.send_signal(signal.SIGCONT)


def _cpu_ms(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return (times.user + times.system) * 1000


def request_cost(meter: Meter, ask: Callable[[], int], times: int) -> Cost:
    """Ask one after the other. What runs by itself meanwhile is in it: subtract `idle_cost`. Raises RuntimeError."""
    web, brokers = meter.read()
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        status = ask()
        took.append((time.perf_counter() - begun) * 1000)
        if status != 200:
            raise RuntimeError(f"answered {status}")
    after = meter.read()
    return Cost(statistics.median(took), max(took), (after[0] - web) / times, (after[1] - brokers) / times)


def idle_cost(meter: Meter, seconds: float) -> tuple[float, float]:
    """CPU milliseconds a second of dashboard and brokers while nothing is asked."""
    web, brokers = meter.read()
    threading.Event().wait(seconds)
    after = meter.read()
    return (after[0] - web) / seconds, (after[1] - brokers) / seconds


class TabCost(NamedTuple):
    """A second of so many tabs: CPU milliseconds, and what came to a tab."""

    tabs: int
    dashboard_ms: float
    brokers_ms: float
    frames: float
    asked: float
    kilobytes: float
    failed: tuple[str, ...]


def tabs_cost(meter: Meter, visitor: Visitor, path: str, number: int, seconds: float) -> TabCost:
    """Open the tabs, wait until each had something, then measure."""
    tabs = [Tab(visitor, path) for _ in range(number)]
    for tab in tabs:
        tab.start()
    until = time.monotonic() + 60
    while any(not (tab.frames or tab.asked or tab.error) for tab in tabs) and time.monotonic() < until:
        threading.Event().wait(0.2)
    before = [(tab.frames, tab.asked, tab.bytes_in) for tab in tabs]
    dashboard, brokers = idle_cost(meter, seconds)
    after = [(tab.frames, tab.asked, tab.bytes_in) for tab in tabs]
    for tab in tabs:
        tab.leave()
    for tab in tabs:
        tab.join(10)
    frames, asked, size = (
        sum(now[part] - was[part] for now, was in zip(after, before, strict=True)) / number / seconds
        for part in range(3)
    )
    failed = tuple(sorted({tab.error for tab in tabs if tab.error}))
    return TabCost(number, dashboard, brokers, frames, asked, size / 1024, failed)
