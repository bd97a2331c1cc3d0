"""Silence: a broker that takes requests and answers none, noticed long before their time is up.

A host that stands still, or that the network cut off, closes no connection: a send there would wait for the third part
of its call's time, a pull for half a minute. A client looks each second for requests that wait. It has the route asked
for meanwhile (moves.py), and once that shows another master it ends what waits at the old one: those requests are tried
again where they are answered. One that only its slaves and etcd can't reach answers, but has nothing to give: there the
long polls are ended.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from gantrymq.client.connection.moves import Moves
from gantrymq.client.connection.routes import Routes

SILENT_S = 1.0  # with a request under way, and between two looks
ANSWER_S = 0.3  # that a master which was replaced has for answers


class Connections(Protocol):
    """What a client has to brokers."""

    def silent_for(self, seconds: float) -> set[str]:
        """The addresses where a request waits that long for anything from the peer. Long polls don't count."""

    def end_silent(self, address: str, seconds: float, reason: str) -> None:
        """End what waits there if nothing came for that long, long polls and connecting in any case."""


class Silence:
    """Of one client. watched: each kind of connection that it has."""

    def __init__(self, routes: Routes, moves: Moves, *watched: Connections) -> None:
        self.watched: list[Connections] = list(watched)
        self._routes = routes
        self._moves = moves

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(SILENT_S)
            for address in self._silent():
                for broker_name, topic in self._routes.served_by(address):
                    self._moves.suspect(broker_name, topic, address)

    def moved(self, before: str) -> None:
        """A broker's master is not at this address any more. Answers that are on their way still arrive."""
        self._end(before, SILENT_S)
        asyncio.get_running_loop().call_later(ANSWER_S, self._end, before, ANSWER_S)

    def _end(self, address: str, seconds: float) -> None:
        for each in self.watched:
            each.end_silent(address, seconds, "the broker's master serves elsewhere")

    def _silent(self) -> set[str]:
        return set().union(*(each.silent_for(SILENT_S) for each in self.watched))
