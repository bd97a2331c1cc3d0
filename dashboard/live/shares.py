"""Shares a bounded number of places among accounts: who opens many leaves the others theirs.

An account takes free places as it likes. When none is free, the account with most of them gives up its newest, unless
the one that comes would then have as many. What several accounts show counts for the first of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class NoPlace(Exception):
    """Every place is taken, and no account has more of them than its share."""


@dataclass(eq=False, slots=True)
class Seat(Generic[T]):
    """One tab's or stream's hold of a thing. lost: called when another account needed the place."""

    thing: T
    account: int
    lost: Callable[[], None]


class Shares(Generic[T]):
    """The things that have a place now, in the order in which they came, each with who holds it."""

    def __init__(self) -> None:
        self._seats: dict[T, list[Seat[T]]] = {}

    def __contains__(self, thing: T) -> bool:
        return thing in self._seats

    @property
    def things(self) -> frozenset[T]:
        return frozenset(self._seats)

    @property
    def seats(self) -> int:
        return sum(map(len, self._seats.values()))

    def take(self, thing: T, account: int, places_max: int, lost: Callable[[], None]) -> Seat[T]:
        """Raises NoPlace."""
        gives = self._who_gives(thing, account, places_max)
        if gives is not None:
            for seat in self._seats.pop(gives):
                seat.lost()
        seat = Seat(thing, account, lost)
        self._seats.setdefault(thing, []).append(seat)
        return seat

    def has_place(self, thing: T, account: int, places_max: int) -> bool:
        """Whether `take` would work."""
        try:
            self._who_gives(thing, account, places_max)
        except NoPlace:
            return False
        return True

    def give_back(self, seat: Seat[T]) -> None:
        """Of a seat that was lost, nothing."""
        held = self._seats.get(seat.thing, [])
        if seat in held:
            held.remove(seat)
            if not held:
                del self._seats[seat.thing]

    def _who_gives(self, thing: T, account: int, places_max: int) -> T | None:
        """What loses its place for this; None when nothing has to."""
        if thing in self._seats or len(self._seats) < places_max:
            return None
        counted = Counter(held[0].account for held in self._seats.values())
        richest, most = max(counted.items(), key=lambda item: item[1], default=(account, 0))
        if most < counted[account] + 2:
            raise NoPlace
        own = [one for one, held in self._seats.items() if held[0].account == richest]
        alone = [one for one in own if all(seat.account == richest for seat in self._seats[one])]
        return (alone or own)[-1]
