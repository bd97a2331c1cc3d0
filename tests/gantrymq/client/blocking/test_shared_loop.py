"""The loop that blocking clients share: a call that meets its end is told, and leaves nothing half begun."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gantrymq.client.blocking.shared_loop import SharedLoop
from gantrymq.errors import ClientClosed


class Ended(SharedLoop):
    """Another thread ends the loop just when a call has found it. is_closed: and closes it, too."""

    def __init__(self, *, is_closed: bool) -> None:
        super().__init__()
        self._is_closed = is_closed

    def _beside(self) -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
        loop, thread = super()._beside()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        if self._is_closed:
            loop.close()
        return loop, thread


class Client:
    """What is open while the loop runs."""

    async def close(self) -> None: ...


async def work() -> str:
    return "done"


@pytest.fixture(params=[False, True], ids=["ended", "closed"])
def ended(request: pytest.FixtureRequest) -> Iterator[Ended]:
    shared = Ended(is_closed=request.param)
    client: Any = Client()
    shared.acquire(client)
    yield shared
    if not request.param:
        shared.release(client)


def test_a_call_that_the_loop_never_came_to_is_refused_and_closed(ended: Ended) -> None:
    coroutine = work()
    with pytest.raises(ClientClosed):
        ended.run(coroutine)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED, "or Python warns of it at some other time"


def test_an_act_that_the_loop_never_came_to_is_refused(ended: Ended) -> None:
    has_ended = threading.Lock()
    has_ended.acquire()
    with pytest.raises(ClientClosed):
        ended.begin(has_ended.release, has_ended)
