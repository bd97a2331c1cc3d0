"""Acts that wait until the name servers know a topic: the answers to its first messages above all.

A client that hears that its message is stored may start a consumer at once, and some clients give up for good when
no name server has a route. So answers wait for each name server that is up, and WAIT_S at most from the first of them
on: one that hangs costs a new topic that second once, and other messages nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

WAIT_S = 1.0


class _Waiting:
    """What waits for one topic. links: the name servers, as their keys, that have not answered yet."""

    __slots__ = ("acts", "links", "timer")

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.acts: list[Callable[[], None]] = []
        self.links: set[str] = set()
        self.timer = timer


class TopicAnnouncements:
    """What waits, by topic. Everything is called on the event loop."""

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._waiting: dict[str, _Waiting] = {}
        self._given_up: dict[str, set[str]] = {}  # topic -> name servers that took too long, until they have answered

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def awaited(self, topic: str, links: Iterable[str]) -> set[str]:
        """Those of the name servers that an act about the topic would wait for."""
        return set(links).difference(self._given_up.get(topic, ()))

    def wait(self, topic: str, links: Iterable[str], act: Callable[[], None]) -> None:
        """Act once all these name servers were told of the topic; at once when there are none to wait for."""
        awaited = self.awaited(topic, links)
        if not awaited:
            act()
            return
        waiting = self._waiting.get(topic)
        if waiting is None:
            timer = asyncio.get_running_loop().call_later(self._wait_s, self._give_up, topic)
            waiting = self._waiting[topic] = _Waiting(timer)
        waiting.links |= awaited
        waiting.acts.append(act)

    def settle(self, link: str, topics: Iterable[str]) -> None:
        """This name server has heard of the topics, or can't be reached now: stop waiting for it."""
        if not self._waiting and not self._given_up:
            return
        for topic in topics:
            if (given_up := self._given_up.get(topic)) is not None:
                given_up.discard(link)
                if not given_up:
                    del self._given_up[topic]
            if (waiting := self._waiting.get(topic)) is not None:
                waiting.links.discard(link)
                if not waiting.links:
                    self._end(topic)

    def _give_up(self, topic: str) -> None:
        self._given_up.setdefault(topic, set()).update(self._waiting[topic].links)
        self._end(topic)

    def _end(self, topic: str) -> None:
        waiting = self._waiting.pop(topic)
        waiting.timer.cancel()
        for act in waiting.acts:
            act()
