"""When a search for a broker's master asks: by a clock that goes only when nothing else is to be done."""

from __future__ import annotations

import asyncio
import functools
import itertools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq.client.connection.background import Background
from gantrymq.client.connection.moves import FIRST_PAUSE_S, SEEK_S, SOON_PAUSE_S, SOON_S, Moves
from gantrymq.client.connection.routes import REFRESH_S, Routes
from gantrymq.errors import ConnectError
from gantrymq.remoting.bodies import BrokerData, QueueData, TopicRouteData
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.outages import Outages

JITTER_S = 0.001  # of the clock, as a loop rounds


class Skipping(selectors.SelectSelector):
    """Takes a wait as done."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


class Clocked(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = Skipping()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def clocked(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run the test on such a loop."""

    @functools.wraps(test)
    def run(*given: Any, **named: Any) -> None:
        loop = Clocked()
        try:
            loop.run_until_complete(test(*given, **named))
        finally:
            loop.close()

    return run


class NameServer:
    """Has the topic T, of broker a, while that has members; notes when it was asked."""

    def __init__(self, members: dict[int, str]) -> None:
        self.members = members
        self.outages = Outages()
        self.asked_at: list[float] = []

    async def invoke(self, code: int, fields: dict[str, str], **_: object) -> RemotingCommand:
        self.asked_at.append(now())
        request = RemotingCommand.request(code, {})
        if not self.members:
            return request.reply(ResponseCode.TOPIC_NOT_EXIST)
        route = TopicRouteData([BrokerData("c", "a", dict(self.members))], [QueueData("a", 1, 1, 6)])
        return request.reply(body=route.to_json())

    def accepted(self, answer: RemotingCommand, code: int) -> RemotingCommand:
        return answer


class Client:
    """Knows the topic's route, as a session has it."""

    def __init__(self, members: dict[int, str]) -> None:
        self.names = NameServer(members)
        self.routes = Routes(self.names)  # type: ignore[arg-type]
        self.background = Background()
        self.moves = Moves(self.routes, self.background)
        self.routes.on_moved = lambda name, before, now: self.moves.moved()
        self.routes.on_headless = self.moves.without_master

    async def refused_for(self, seconds: float) -> list[float]:
        """Have m1 refuse all that time: how long after the first report the name server was asked each time."""
        began = now()
        self.names.asked_at.clear()
        while now() < began + seconds:
            self.moves.report("a", "T", ConnectError("m1", "refused"))
            await asyncio.sleep(0.05)
        return [at - began for at in self.names.asked_at]


def now() -> float:
    return asyncio.get_running_loop().time()


def gaps(at: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(at)]


@pytest.mark.parametrize("before", ["m1", "m0"])
@clocked
async def test_a_master_found_meanwhile_that_refuses_is_asked_about_at_once(before: str) -> None:
    """The search for one has become rare."""
    client = Client({0: before, 1: "s"})
    await client.routes.to_read("T")
    client.names.members = {1: "s"}
    client.moves.report("a", "T", ConnectError(before, "refused"))
    await asyncio.sleep(300.0)  # on the clock of this test, which skips it
    assert gaps(client.names.asked_at)[-1] > SEEK_S
    client.names.members = {0: "m1", 1: "s"}
    await client.routes.refresh()
    asked = await client.refused_for(SOON_S)
    assert asked[0] <= FIRST_PAUSE_S
    assert max(gaps(asked)) <= SOON_PAUSE_S + JITTER_S
    await client.background.close()


@clocked
async def test_many_reports_do_not_hurry_a_search_that_has_just_asked() -> None:
    client = Client({0: "m1"})
    await client.routes.to_read("T")
    assert len(await client.refused_for(SEEK_S)) <= 3 + 2 * (SOON_S / SOON_PAUSE_S + SEEK_S)
    await client.background.close()


@clocked
async def test_a_search_asks_often_again_once_the_last_slave_has_left_the_route() -> None:
    """In a group of two that slave is about to be the master: the name server has the topic no longer."""
    client = Client({0: "m1", 1: "s"})
    await client.routes.to_read("T")
    client.names.members = {1: "s"}
    rare = await client.refused_for(SEEK_S / 2)
    assert gaps(rare)[-1] > SOON_PAUSE_S + JITTER_S
    client.names.members = {}
    asked = await client.refused_for(1.0 + SOON_S / 2)
    assert max(gaps(asked)) <= SOON_PAUSE_S + JITTER_S
    later = await client.refused_for(SEEK_S / 2)
    assert gaps(later)[-1] > SOON_PAUSE_S + JITTER_S, "it is not another answer each time"
    await client.background.close()


@clocked
async def test_a_closed_client_searches_no_more() -> None:
    client = Client({1: "s"})
    await client.background.close()
    await client.routes.to_read("T")
    asked = len(client.names.asked_at)
    await asyncio.sleep(2 * REFRESH_S)  # on the clock of this test, which skips it
    assert len(client.names.asked_at) == asked
    assert asyncio.all_tasks() == {asyncio.current_task()}
