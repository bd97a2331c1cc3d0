"""Acts that wait until the name servers know a topic: the answer to its first message above all.

A client that hears that its message is stored may start a consumer at once, and some clients give up for good when
no name server has a route. So the answer waits for each name server that is up, and never longer than WAIT_S: one that
hangs costs the first message of a topic that second, and other messages nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

WAIT_S = 1.0


class _Waiting:
    """One act. links: the name servers, as their keys, that have not answered yet."""

    __slots__ = ("act", "links", "timer")

    def __init__(self, act: Callable[[], None], links: set[str]) -> None:
        self.act = act
        self.links = links
        self.timer: asyncio.TimerHandle | None = None


class TopicAnnouncements:
    """What waits, by topic. Everything is called on the event loop."""

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._waiting: dict[str, list[_Waiting]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def wait(self, topic: str, links: Iterable[str], act: Callable[[], None]) -> None:
        """Act once all these name servers were told of the topic; at once when there are none."""
        waiting = _Waiting(act, set(links))
        if not waiting.links:
            act()
            return
        self._waiting.setdefault(topic, []).append(waiting)
        waiting.timer = asyncio.get_running_loop().call_later(self._wait_s, self._end, topic, waiting)

    def settle(self, link: str, topics: Iterable[str]) -> None:
        """This name server has heard of the topics, or can't be told now: it is waited for no more."""
        if not self._waiting:
            return
        for topic in topics:
            for waiting in list(self._waiting.get(topic, ())):
                waiting.links.discard(link)
                if not waiting.links:
                    self._end(topic, waiting)

    def _end(self, topic: str, waiting: _Waiting) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        left = self._waiting[topic]
        left.remove(waiting)
        if not left:
            del self._waiting[topic]
        waiting.act()
