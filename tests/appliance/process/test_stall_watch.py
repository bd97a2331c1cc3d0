"""What a process notices when it was stopped, held up, or its clock was set."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from appliance.process import stall_watch
from appliance.process.stall_watch import Reading, StallWatch, compare, read_clocks

START = Reading(1000.0, 1_700_000_000.0, 5.0)


def after(steady: float, wall: float, worked: float) -> list[dict[str, object]]:
    now = Reading(START.steady + steady, START.wall + wall, START.worked + worked)
    return [found.facts for found in compare(START, now)]


def test_a_usual_round_is_not_worth_a_word() -> None:
    assert after(0.5, 0.5, 0.1) == []
    assert after(2.4, 2.4, 0.1) == []


@pytest.mark.parametrize(("worked", "why"), [(0.2, "it was stopped, or the machine was busy"), (59.0, "it worked all")])
def test_who_stood_still_says_how_long_and_why(worked: float, why: str) -> None:
    [facts] = after(60.5, 60.5, worked)
    assert (facts["event"], facts["seconds"]) == ("stood_still", 60.5)
    assert str(facts["why"]).startswith(why)


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_clock_that_was_set_is_told(jump: float) -> None:
    [facts] = after(0.5, 0.5 + jump, 0.1)
    assert (facts["event"], facts["by_seconds"], facts["forward"]) == ("clock_set", jump, jump > 0)


async def test_a_loop_that_is_held_up_tells_it_afterwards(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stall_watch, "EVERY_S", 0.01)
    monkeypatch.setattr(stall_watch, "STOOD_S", 0.1)
    watch = asyncio.create_task(StallWatch().run())
    await asyncio.sleep(0)  # it reads the clocks
    with caplog.at_level(logging.WARNING):
        time.sleep(0.3)  # noqa: ASYNC251 - holding the loop up is the point
        async with asyncio.timeout(30):
            while "stood still" not in caplog.text:
                await asyncio.sleep(0.01)
    watch.cancel()


def test_the_clocks_of_this_machine_agree() -> None:
    before = read_clocks()
    time.sleep(0.05)  # time has to pass: the clocks are compared by how far they went
    told = [found.facts["event"] for found in compare(before, read_clocks())]
    assert "clock_set" not in told, "on a busy machine only that the process stood still"
