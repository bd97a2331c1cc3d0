"""Long work on the event loop, cut so that everybody else has a turn in between.

For what walks over every topic, queue or group of a broker: there may be thousands, and the loop has one thread. A
slice is a number of items, chosen so that it takes about a millisecond. In each turn of the loop one slice is made,
however many pieces of such work are under way: with four hundred of them a turn would otherwise take half a second.
Whose slice comes next is decided by what its owner has cost so far (see fair_queue.py). What is walked over must not
change its size meanwhile: give a copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable
from contextvars import ContextVar
from typing import TypeVar
from weakref import WeakKeyDictionary

from appliance.process.fair_queue import Account, AddressAccount, Ledger, TurnQueue

_Item = TypeVar("_Item")

NOBODY = Account(AddressAccount(Ledger()))  # who pays for work that no client asked for: it never waits behind theirs
paid_by: ContextVar[Account] = ContextVar("paid_by", default=NOBODY)  # on whose account a task works


class Turnstile:
    """Lets one slice pass in each turn of the loop."""

    def __init__(self) -> None:
        self._waiting: TurnQueue[asyncio.Future[None]] = TurnQueue()
        self._is_scheduled = False

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits."""
        return self._is_scheduled

    async def next_turn(self) -> None:
        """Let others run; return when it is this task's turn again."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.put(paid_by.get(), future, loop.time())
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._let_one_in, loop)
        await future

    def _let_one_in(self, loop: asyncio.AbstractEventLoop) -> None:
        while len(self._waiting):
            future = self._waiting.take()
            if not future.done():  # its task was not cancelled meanwhile
                future.set_result(None)
                break
        self._is_scheduled = len(self._waiting) > 0
        if self._is_scheduled:
            loop.call_soon(self._let_one_in, loop)


_turnstiles: WeakKeyDictionary[asyncio.AbstractEventLoop, Turnstile] = WeakKeyDictionary()


def turnstile() -> Turnstile:
    """The one of the running loop."""
    loop = asyncio.get_running_loop()
    found = _turnstiles.get(loop)
    if found is None:
        found = _turnstiles[loop] = Turnstile()
    return found


class Slices:
    """Counts the steps of one piece of work, in however many loops they are made."""

    def __init__(self, steps_a_slice: int) -> None:
        self._steps_a_slice = self._left = steps_a_slice

    async def step(self) -> None:
        """One step is done; after a slice of them let others run."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._steps_a_slice
            await turnstile().next_turn()


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
        await turnstile().next_turn()
