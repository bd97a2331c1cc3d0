"""Whose request is worked on next: addresses share the time, so a flood from some of them holds up no other.

Of the addresses that wait, the one that has had least time is next. What is refused is the newest of the address with
most in the line. Values and futures only; `strangers.py` says what takes a turn.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable

SPENT_KEPT_MAX = 4096  # addresses


class TooManyWaiting(Exception):
    """The line is full, and no other address has more in it."""


class Turn:
    """One piece of work; `end` may be called again."""

    def __init__(self, key: str, begun: float, ended: Callable[[Turn], None]) -> None:
        self.key = key
        self.begun = begun
        self._ended = ended
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._ended(self)


class Turns:
    """Of one loop. at_once: turns at the same time; waiting_max: in all; of_one_max: of them of one key."""

    def __init__(
        self, *, at_once: int, waiting_max: int, of_one_max: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._at_once = at_once
        self._waiting_max = waiting_max
        self._of_one_max = of_one_max
        self._clock = clock
        self._lines: dict[str, deque[asyncio.Future[Turn]]] = {}
        self._running: Counter[str] = Counter()
        self._spent: dict[str, float] = {}  # seconds; who comes anew begins where the others are
        self._level = 0.0  # what the one that was let in last had spent

    def __len__(self) -> int:
        """How many wait."""
        return sum(map(len, self._lines.values()))

    async def take(self, key: str) -> Turn:
        """Wait for a turn. Raises TooManyWaiting, at once or when others need the room."""
        if not self._is_here(key):
            self._spent[key] = max(self._spent.get(key, 0.0), self._level)
        self._make_room(key)
        asked: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(key, deque()).append(asked)
        self._go_on()
        try:
            return await asked
        except asyncio.CancelledError:
            if asked.done() and not asked.cancelled() and asked.exception() is None:
                asked.result().end()
            else:
                self._strike(key, asked)
            raise

    def _is_here(self, key: str) -> bool:
        return key in self._lines or self._running[key] > 0

    def _make_room(self, key: str) -> None:
        own = len(self._lines.get(key, ()))
        if own >= self._of_one_max:
            raise TooManyWaiting
        if len(self) < self._waiting_max:
            return
        longest = max(self._lines, key=lambda one: len(self._lines[one]))
        if len(self._lines[longest]) < own + 2:
            raise TooManyWaiting
        gives = self._lines[longest][-1]
        self._strike(longest, gives)
        gives.set_exception(TooManyWaiting())

    def _strike(self, key: str, asked: asyncio.Future[Turn]) -> None:
        line = self._lines.get(key)
        if line is not None and asked in line:
            line.remove(asked)
            if not line:
                del self._lines[key]

    def _go_on(self) -> None:
        while self._lines and self._running.total() < self._at_once:
            key = min(self._lines, key=lambda one: self._spent[one])
            asked = self._lines[key][0]
            self._strike(key, asked)
            if asked.done():  # who asked was cancelled
                continue
            self._level = max(self._level, self._spent[key])
            self._running[key] += 1
            asked.set_result(Turn(key, self._clock(), self._ended))

    def _ended(self, turn: Turn) -> None:
        self._running[turn.key] -= 1
        if not self._running[turn.key]:
            del self._running[turn.key]
        self._spent[turn.key] += self._clock() - turn.begun
        if len(self._spent) > SPENT_KEPT_MAX:
            self._spent = {key: spent for key, spent in self._spent.items() if self._is_here(key)}
        self._go_on()
