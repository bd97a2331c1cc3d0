"""GcPacer: new cycles go soon, old objects are left alone, Python's own ways come back."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator

import pytest

from appliance.process import gc_pacing
from appliance.process.gc_pacing import THRESHOLDS, GcPacer, collect_all_later
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
