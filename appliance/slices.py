"""Long work on the event loop, cut so that everybody else has a turn in between.

For what walks over every topic, queue or group of a broker: there may be thousands, and the loop has one thread. A
slice is a number of items, chosen so that it takes about a millisecond. What is walked over must not change its size
meanwhile: give a copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")


class Slices:
    """Counts the steps of one piece of work, in however many loops they are made."""

    def __init__(self, steps_a_slice: int) -> None:
        self._steps_a_slice = self._left = steps_a_slice

    async def step(self) -> None:
        """One step is done; after a slice of them let others run."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._steps_a_slice
            await asyncio.sleep(0)


async def in_slices(items: Iterable[_Item], items_a_slice: int) -> AsyncIterator[_Item]:
    """Yield the items; after each `items_a_slice` of them let others run."""
    slices = Slices(items_a_slice)
    for item in items:
        yield item
        await slices.step()


async def in_turns(steps: Generator[None, None, _Item]) -> _Item:
    """Make a generator's steps, each in a turn of its own; return what comes of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a generator's own result
        await asyncio.sleep(0)
