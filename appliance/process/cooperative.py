"""Cooperative multitasking for long work on the event loop: it is cut into slices, and other tasks run in between.

Used by code that walks over every topic, queue or group of a broker: there may be thousands, and the loop has one
thread. A slice is a number of items, chosen so that it takes about a millisecond. Each turn of the loop runs one slice,
however many such walks are under way: with four hundred of them a turn would otherwise take half a second. The fair
queue decides whose slice comes next, by the time that its owner has used so far (see fair_queue.py). The collection
must not change its size during the walk: pass a copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable
from contextvars import ContextVar
from typing import TypeVar
from weakref import WeakKeyDictionary

from appliance.process.fair_queue import AddressUsage, ConnectionUsage, FairQueue, UsageTable

_Item = TypeVar("_Item")

# The broker's own work is charged to a usage outside every table, so it never waits behind the work of clients.
NO_CLIENT = ConnectionUsage(AddressUsage(UsageTable()))
# The connection to which the running task's time is charged.
charged_usage: ContextVar[ConnectionUsage] = ContextVar("charged_usage", default=NO_CLIENT)


class SliceScheduler:
    """Lets one waiting task run its slice in each turn of the loop."""

    def __init__(self) -> None:
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()
        self._is_scheduled = False

    @property
    def is_busy(self) -> bool:
        """Whether a task waits."""
        return self._is_scheduled

    async def next_turn(self) -> None:
        """Let other tasks run; return when it is this task's turn again."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.put(charged_usage.get(), future, loop.time())
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._resume_one, loop)
        await future

    def _resume_one(self, loop: asyncio.AbstractEventLoop) -> None:
        while len(self._waiting):
            future = self._waiting.take()
            if not future.done():  # its task was not cancelled meanwhile
                future.set_result(None)
                break
        self._is_scheduled = len(self._waiting) > 0
        if self._is_scheduled:
            loop.call_soon(self._resume_one, loop)


_schedulers: WeakKeyDictionary[asyncio.AbstractEventLoop, SliceScheduler] = WeakKeyDictionary()


def slice_scheduler() -> SliceScheduler:
    """Return the scheduler of the running loop."""
    loop = asyncio.get_running_loop()
    found = _schedulers.get(loop)
    if found is None:
        found = _schedulers[loop] = SliceScheduler()
    return found


class Slices:
    """Counts the steps of one walk, which may consist of several `for` loops."""

    def __init__(self, steps_a_slice: int) -> None:
        self._steps_a_slice = self._left = steps_a_slice

    async def step(self) -> None:
        """Count one step; after a whole slice let other tasks run."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._steps_a_slice
            await slice_scheduler().next_turn()


async def in_slices(items: Iterable[_Item], items_a_slice: int) -> AsyncIterator[_Item]:
    """Yield the items; after each `items_a_slice` of them let other tasks run."""
    slices = Slices(items_a_slice)
    for item in items:
        yield item
        await slices.step()


async def in_turns(steps: Generator[None, None, _Item]) -> _Item:
    """Run a generator, one step in each turn of the loop; return the generator's return value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a generator's own result
        await slice_scheduler().next_turn()
