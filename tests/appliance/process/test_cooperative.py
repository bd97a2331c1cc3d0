"""Long work in slices: others have a turn after each."""

from __future__ import annotations

import asyncio

import pytest

from appliance.process.cooperative import in_slices


@pytest.mark.parametrize(("items", "turns"), [(0, 0), (9, 0), (10, 1), (95, 9)])
async def test_others_have_a_turn_after_each_slice(items: int, turns: int) -> None:
    had = 0

    async def other() -> None:
        nonlocal had
        while True:
            await asyncio.sleep(0)
            had += 1

    task = asyncio.create_task(other())
    await asyncio.sleep(0)  # it has started
    assert [item async for item in in_slices(range(items), 10)] == list(range(items))
    assert turns <= had <= 2 * turns, "a slice each other turn at the least"
    task.cancel()
