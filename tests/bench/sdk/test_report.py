"""`python -m tests.bench.sdk` end to end, with few messages."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.bench.sdk.flows import END_TO_END, FLOWS, Cost, measure, next_one_due
from tests.bench.sdk.report import SdkBench, in_own_process, render


def test_every_flow_is_measured_and_told(tmp_path: Path) -> None:
    def measure_here(name_servers: str, topic: str, flow: str, count: int) -> Cost:
        """One in a process of its own, the others for less in this one."""
        return (in_own_process if flow == FLOWS[-1] else measure)(name_servers, topic, flow, count)

    said: list[str] = []
    text, figures = SdkBench(tmp_path, said.append, count=100, rounds=1, measure=measure_here, others=()).run()
    assert text.startswith("GantryMQ ")
    assert len(said) == len(FLOWS)
    for flow in FLOWS:
        assert f"\n| {flow} | " in text
        (found,) = figures["flows"][flow]["GantryMQ"]
        assert found["cpu_us"] > 0 and found["rate"] > 0
        assert found["messages"] in (20, 100)
        assert (found["p50_ms"] is not None) == (flow in END_TO_END)


async def test_a_message_waits_until_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    slept_s: list[float] = []

    async def sleep(delay: float) -> None:
        slept_s.append(delay)

    monkeypatch.setattr("tests.bench.sdk.flows.asyncio.sleep", sleep)
    due = time.perf_counter() + 3600
    assert await next_one_due(due, 100.0) == due + 0.01
    (pause_s,) = slept_s
    assert 0 < pause_s <= 3600


async def test_a_message_that_is_late_does_not_hurry_the_next_one() -> None:
    now = time.perf_counter()
    assert await next_one_due(now - 3600, 100.0) >= now + 0.01


def test_a_row_has_the_medians_of_its_runs() -> None:
    runs = {"a": [Cost(1, 9.0, 1000.0, 1.0, 2.0), Cost(1, 5.0, 3000.0, 3.0, 5.0), Cost(1, 7.0, 2000.0, 2.0, 9.0)]}
    assert render(runs).splitlines()[-1] == "| a | 7.0 | 2,000 | 2.00 | 5.00 |"
    assert render({"b": [Cost(1, 9.0, 1000.0)]}).endswith("| b | 9.0 | 1,000 |  |  |")
