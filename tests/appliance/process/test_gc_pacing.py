"""GcPacer: new cycles go soon, old objects are left alone, Python's own ways come back."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator

import pytest

from appliance.process import gc_pacing
from appliance.process.gc_pacing import (
    FEW_OBJECTS,
    PERIOD_S,
    QUIET_PERIOD_S,
    THRESHOLDS,
    GcPacer,
    collect_all_later,
    next_pause_s,
)
from tests.waiting import aside


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
async def collecting() -> AsyncIterator[None]:
    before = gc.get_threshold()
    async with aside(GcPacer().run()):
        assert gc.get_threshold() == THRESHOLDS
        yield
    assert gc.get_threshold() == before


@pytest.mark.usefixtures("collecting")
async def test_a_new_cycle_is_freed_soon() -> None:
    gone = asyncio.Event()
    cycle = Cycle()
    weakref.finalize(cycle, gone.set)
    del cycle
    async with asyncio.timeout(30):
        await gone.wait()


@pytest.mark.usefixtures("collecting")
async def test_what_is_kept_is_looked_at_once() -> None:
    kept = [Cycle() for _ in range(1000)]
    async with asyncio.timeout(30):
        while any(generation is not None and kept[0] in generation for generation in map(gc.get_objects, (0, 1))):
            await asyncio.sleep(0.02)
    assert any(one is kept[0] for one in gc.get_objects(2))


def test_an_idle_process_is_woken_once_a_second_and_a_busy_one_as_before() -> None:
    pause_s = PERIOD_S
    for _ in range(10):
        pause_s = next_pause_s(pause_s, FEW_OBJECTS - 1)
    assert pause_s == QUIET_PERIOD_S == 1.0
    assert next_pause_s(pause_s, FEW_OBJECTS) == PERIOD_S


async def test_the_pacer_counts_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    kept: list[Cycle] = []
    sleep = asyncio.sleep

    async def noted(pause_s: float) -> None:
        if pause_s:
            pauses.append(pause_s)
            gc.collect()
            kept.extend(Cycle() for _ in range(FEW_OBJECTS if len(pauses) == 4 else 0))
        await sleep(0)

    monkeypatch.setattr(gc_pacing.asyncio, "sleep", noted)
    async with aside(GcPacer().run()):
        while len(pauses) < 6:
            await sleep(0)
    assert pauses[:6] == [PERIOD_S, 2 * PERIOD_S, 4 * PERIOD_S, 8 * PERIOD_S, PERIOD_S, 2 * PERIOD_S]


async def test_a_cycle_of_an_earlier_role_is_freed_once_this_one_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_pacing, "SETTLED_S", 0.05)
    gone = asyncio.Event()
    cycle = Cycle()
    weakref.finalize(cycle, gone.set)
    gc.freeze()
    del cycle
    collect_all_later()
    assert not gone.is_set()
    async with asyncio.timeout(30):
        await gone.wait()
