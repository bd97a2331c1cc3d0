"""Pops and notifications that wait for a message: of their topic, of its retry topic, or one that comes back in order.

They wait by topic and group. A message wakes the group's waiting requests in the order in which they came, once a round
for all the messages of that round; one that still finds nothing keeps its place. Of notifications one a round is
answered, so that a message brings one pop and not one of every member; a pop that leaves messages wakes the next. If
none comes for what was told, twice as many are told after each tenth of a second. Those whose time is up are answered
within a tenth of a second: the deadline of a client behind a proxy is not much later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.broker.pop.requests import PopFields
from appliance.remoting.connection import ServerConnection
from gantrymq.message.topics import pop_retry_topic
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

WAITING_MAX = 100_000
WAITING_A_GROUP_MAX = 4096  # of one topic
SWEEP_SECONDS = 0.1

Place = tuple[str, str]  # topic and group


@dataclass(eq=False, slots=True)
class WaitingPop:
    """A request that waits. deadline: monotonic seconds. kind: requests of one kind find the same; in order, what is
    blocked for an attempt was not there when it came, so another request of that attempt has it by now."""

    connection: ServerConnection
    request: RemotingCommand
    asked: PopFields
    deadline: float
    kind: tuple[object, ...] = field(init=False)

    def __post_init__(self) -> None:
        asked = self.asked
        self.kind = (asked.queue_id, asked.is_ordered, asked.expression_type, asked.expression)


class PopHold:
    """All that wait. topics: by topic, whom to call when it gets a message; shared with who stores.

    answer: try again, and return whether there was an answer; time_up: say that nothing came.
    """

    def __init__(self, topics: dict[str, Callable[[str], None]]) -> None:
        self._topics = topics
        self.answer: Callable[[WaitingPop], bool] = _unset
        self.time_up: Callable[[WaitingPop], object] = _unset
        self.waiting: dict[Place, list[WaitingPop]] = {}
        self.count = 0
        self._places: dict[str, set[Place]] = {}  # by the topics whose messages they wait for
        self._woken: dict[Place, None] = {}
        self._told: dict[Place, int] = {}  # notifications answered last, where some still wait
        self._wanted = asyncio.Event()  # something waits

    def park(self, pop: WaitingPop) -> bool:
        """Let it wait; False when too many do."""
        place = (pop.asked.topic, pop.asked.group)
        waiting = self.waiting.get(place)
        if self.count >= WAITING_MAX or (waiting is not None and len(waiting) >= WAITING_A_GROUP_MAX):
            return False
        if waiting is None:
            waiting = self.waiting[place] = []
            for topic in _topics_of(place):
                self._places.setdefault(topic, set()).add(place)
                self._topics[topic] = self.message_arrived
        waiting.append(pop)
        self.count += 1
        self._wanted.set()
        return True

    def message_arrived(self, topic: str) -> None:
        """A message was stored; called for each put while someone waits for the topic."""
        for place in self._places.get(topic, ()):
            self.wake(*place)

    def wake(self, topic: str, group: str) -> None:
        """Have those that wait look again, in the loop's next turn."""
        if (topic, group) not in self.waiting:
            return
        if not self._woken:
            asyncio.get_running_loop().call_soon(self._answer_woken)
        self._woken[topic, group] = None

    def _answer_woken(self) -> None:
        woken, self._woken = self._woken, {}
        for place in woken:
            self._look_again(place)

    def _look_again(self, place: Place, told_max: int = 1) -> None:
        kept: list[WaitingPop] = []
        in_vain: set[tuple[object, ...]] = set()
        told = 0
        for pop in self.waiting.get(place, ()):
            if pop.connection.is_closing:
                continue
            is_notification = pop.request.code == RequestCode.NOTIFICATION
            if pop.kind in in_vain or (is_notification and told >= told_max):
                kept.append(pop)
            elif self._answered(pop):
                told += is_notification
            else:
                in_vain.add(pop.kind)
                kept.append(pop)
        self._keep(place, kept)
        if told and kept:
            self._told[place] = told
        else:
            self._told.pop(place, None)

    def _answered(self, pop: WaitingPop) -> bool:
        try:
            if not self.answer(pop):
                return False
        except Exception as exc:  # a bug: the others are answered
            pop.connection.reading_failed(exc)
        pop.connection.flush()
        return True

    def _keep(self, place: Place, kept: list[WaitingPop]) -> None:
        self.count += len(kept) - len(self.waiting.get(place, ()))
        if kept:
            self.waiting[place] = kept
            return
        self.waiting.pop(place, None)
        for topic in _topics_of(place):
            places = self._places.get(topic)
            if places is None:
                continue
            places.discard(place)
            if not places:
                del self._places[topic]
                self._topics.pop(topic, None)

    # -- time ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Answer those whose time is up and forget those whose client is gone."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep(time.monotonic())
            if not self.count:
                self._wanted.clear()

    def sweep(self, now: float) -> None:
        """One look at every waiting request."""
        for place, told in list(self._told.items()):
            self._look_again(place, 2 * told)
        for place, waiting in list(self.waiting.items()):
            kept = [pop for pop in waiting if now < pop.deadline and not pop.connection.is_closing]
            if len(kept) == len(waiting):
                continue
            self._keep(place, kept)
            for pop in waiting:
                if now >= pop.deadline and not pop.connection.is_closing:
                    self.time_up(pop)
                    pop.connection.flush()


def _topics_of(place: Place) -> tuple[str, str]:
    topic, group = place
    return topic, pop_retry_topic(group, topic)


def _unset(pop: WaitingPop) -> bool:
    raise AssertionError("a pop waits before there is anyone to answer it")
