"""Moves: finds out soon that a broker's master serves at another address now.

A broker that refuses (SERVICE_NOT_AVAILABLE), that can't be reached or does not answer may have handed over to one of
its slaves. A request that fails so is reported here. The route is asked for at once, and again after growing pauses,
until it shows another address, or nothing has been reported for a while. Who waits to try again is woken then.

However many report, a broker has one question on its way at a time, and a client one for all its brokers: after a
report some eight in the first two seconds, later one a second. A slave that becomes the master leaves the route before
it is in it again, and on a busy machine that takes a second or two: once an answer shows other members, the next two
seconds are as the first ones. A broker that a route shows without a master is looked for, too, ever more rarely, until
it has one: a client that has just begun, and sends to others meanwhile, does not wait for the next refresh. A report
that comes after a long time without any does not wait for the end of such a pause either.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import NamedTuple

from gantrymq.client.connection.background import Background
from gantrymq.client.connection.routes import LOOK_AGAIN_S, REFRESH_S, Routes
from gantrymq.errors import ConnectError, GantryError, NoBrokerYet, RequestTimeout, ResponseError, RouteNotFound
from gantrymq.remoting.codes import ResponseCode
from gantrymq.timeouts import timeout, wait_for_event

logger: logging.Logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1  # after the first question; doubles
SOON_PAUSE_S = 0.4  # at most, in the first SOON_S
SOON_S = 2.0
# The second: of a slave, about the end of a transaction. What stores a message and says so raises nothing.
NOT_A_MASTER = frozenset({ResponseCode.SERVICE_NOT_AVAILABLE.value, ResponseCode.SLAVE_NOT_AVAILABLE.value})
SEEK_S = 10.0  # without a report: then the usual refresh is enough, unless the broker has no master


def may_have_moved(failure: GantryError) -> bool:
    """Whether the broker that a request failed at may serve elsewhere."""
    if isinstance(failure, ResponseError):
        return failure.code in NOT_A_MASTER
    return isinstance(failure, ConnectError | RequestTimeout)


def address_of(failure: GantryError) -> str:
    """Where it failed."""
    return failure.address if isinstance(failure, ResponseError | ConnectError | RequestTimeout) else ""


def pause_after(questions: int, elapsed_s: float, quiet_s: float = 0.0) -> float:
    """Seconds until the next question, before jitter. elapsed_s: since the first one, or since an answer showed other
    members; quiet_s: since the last report."""
    longest_s = SOON_PAUSE_S if elapsed_s < SOON_S else min(max(quiet_s / 8, LOOK_AGAIN_S), REFRESH_S)
    return min(FIRST_PAUSE_S * 2.0 ** min(questions - 1, 16), longest_s)


class _Report(NamedTuple):
    at: float  # on the loop's clock
    topic: str  # of the request that failed
    address: str  # where it failed
    changed: Callable[[], object] | None


class Moves:
    """Of one client's brokers."""

    def __init__(self, routes: Routes, background: Background) -> None:
        self._routes = routes
        self._background = background
        self._asking = asyncio.Lock()
        self._reports: dict[str, _Report] = {}  # by broker name: the last one
        self._seeking: dict[str, asyncio.Event] = {}  # by broker name: set when the search does not wait longer
        self._ended_at: dict[str, float] = {}  # of the last search: one soon after it goes on at its pace
        self._moved = asyncio.Event()  # replaced by each move

    def report(
        self, broker_name: str, topic: str, failure: GantryError, *, changed: Callable[[], object] | None = None
    ) -> None:
        """A request about the topic failed at this broker. changed: called when the topic's route is another one."""
        if may_have_moved(failure):
            self.suspect(broker_name, topic, address_of(failure), changed=changed)

    def suspect(
        self, broker_name: str, topic: str, address: str, *, changed: Callable[[], object] | None = None
    ) -> None:
        """The broker may serve elsewhere than at this address, "" when none was known. topic: one that it has."""
        if self._background.is_closed or not self.is_at_fault(broker_name, address):
            return
        before, now = self._reports.get(broker_name), asyncio.get_running_loop().time()
        changed = changed or (before.changed if before is not None else None)
        self._reports[broker_name] = _Report(now, topic, address, changed)
        if broker_name not in self._seeking:
            self._seeking[broker_name] = asyncio.Event()
            self._background.start(self._seek(broker_name), f"look where {broker_name} is")
        elif before is not None and now - before.at >= SEEK_S:
            self._seeking[broker_name].set()

    def without_master(self, broker_name: str, topic: str) -> None:
        """A route of the topic shows none of this broker."""
        if broker_name not in self._seeking:
            self.suspect(broker_name, topic, "")

    async def wait(self, broker_name: str, failure: GantryError, pause_s: float) -> bool:
        """Pause before the next try, but no longer than until the broker's master is known to be elsewhere, or, where
        no broker had a master, until one has; say if that is so."""
        is_without_master = isinstance(failure, NoBrokerYet)
        if not is_without_master and not may_have_moved(failure):
            await asyncio.sleep(pause_s)
            return False
        try:
            async with timeout(pause_s):
                if is_without_master:
                    await self._moved.wait()
                    return True
                while self.is_at_fault(broker_name, address_of(failure)):
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    def moved(self) -> None:
        """The routes know another address of some master: who waits looks whether it is theirs."""
        self._moved.set()
        self._moved = asyncio.Event()
        for broker_name, wakes in self._seeking.items():
            if not self._is_sought(broker_name):
                wakes.set()

    def is_at_fault(self, broker_name: str, address: str) -> bool:
        """Whether the address that failed is still the one to go to, or none is known."""
        return self._routes.address(broker_name) in (None, address)

    def _is_sought(self, broker_name: str) -> bool:
        return self.is_at_fault(broker_name, self._reports[broker_name].address)

    async def _seek(self, broker_name: str) -> None:
        loop, wakes = asyncio.get_running_loop(), self._seeking[broker_name]
        began, questions, known = loop.time(), 0, self._routes.members(broker_name)
        shown: dict[str, dict[int, str]] = {}  # by topic: the members in its last answer
        if began - self._ended_at.get(broker_name, -SEEK_S) < SEEK_S:
            began -= SOON_S
        try:
            while self._is_sought(broker_name):
                report = self._reports[broker_name]
                quiet_s = loop.time() - report.at
                if quiet_s >= SEEK_S and not self._routes.lacks_master(broker_name):
                    self._ended_at[broker_name] = loop.time()
                    return
                before = shown.get(report.topic, known)
                shown[report.topic] = await self._ask(broker_name, report, before)
                questions += 1
                if shown[report.topic] != before:
                    began = loop.time()
                pause_s = pause_after(questions, loop.time() - began, quiet_s)
                if self._is_sought(broker_name) and await wait_for_event(wakes, pause_s * random.uniform(0.5, 1.0)):
                    wakes.clear()
                    began, questions = loop.time(), 0
        finally:
            del self._seeking[broker_name]

    async def _ask(self, broker_name: str, report: _Report, before: dict[int, str]) -> dict[int, str]:
        """The broker's members in the topic's route, none where no name server has one; as before without an answer."""
        try:
            async with self._asking:
                is_other = await self._routes.look_again(report.topic)
        except GantryError as exc:
            logger.debug("route not refreshed: %s", exc, extra={"event": "route_not_refreshed", "topic": report.topic})
            return {} if isinstance(exc, RouteNotFound) else before
        if is_other and report.changed is not None:
            report.changed()
        return self._routes.known[report.topic].addresses.get(broker_name, {})
