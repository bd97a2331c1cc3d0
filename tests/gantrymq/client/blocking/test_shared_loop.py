"""The loop that blocking clients share: a call that meets its end is told, and leaves nothing half begun."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NoReturn

import pytest

from gantrymq import (
    ConsumeCall,
    ConsumeResult,
    Interceptor,
    Message,
    MessageExt,
    MessageQueue,
    RetryLater,
    SendCall,
    SendResult,
    SyncProducer,
)
from gantrymq.client.blocking.shared_loop import SharedLoop
from gantrymq.client.connection.callbacks import tell
from gantrymq.client.consume.listener_calls import ListenerCalls
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.client.interceptors import ConsumeProceed, SendProceed, around_consume
from gantrymq.errors import ClientClosed
from tests.gantrymq.client.messages import stored
from tests.gantrymq.client.ports import closed_port
from tests.waiting import wait_until


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


async def exits(*_: object) -> None:
    sys.exit(3)


def listened() -> Coroutine[Any, Any, object]:
    return ListenerCalls(exits, ConsumeCounters(), concurrency=1).consume("T", [stored(0)])


class Exits(Interceptor):
    async def send(self, call: SendCall, proceed: SendProceed) -> SendResult:
        sys.exit(3)

    async def consume(self, call: ConsumeCall, proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        sys.exit(3)


class ExitsAtOnce(Interceptor):
    def send(self, call: SendCall, proceed: SendProceed) -> NoReturn:
        sys.exit(3)

    def consume(self, call: ConsumeCall, proceed: ConsumeProceed) -> NoReturn:
        sys.exit(3)


def intercepted(by: Interceptor) -> Coroutine[Any, Any, object]:
    async def around(messages: list[MessageExt], proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        return await around_consume([by], ConsumeCall(messages, "g", "c"), proceed)

    return ListenerCalls(exits, ConsumeCounters(), concurrency=1, around=around).consume("T", [stored(0)])


def told() -> Coroutine[Any, Any, object]:
    return tell(exits, [MessageQueue("T", "b", 0)], "on_assigned")


@pytest.mark.parametrize(
    "call",
    [listened, functools.partial(intercepted, Exits()), functools.partial(intercepted, ExitsAtOnce()), told],
    ids=["listener", "interceptor", "plain interceptor", "callback"],
)
def test_an_async_functions_exit_does_not_end_the_shared_loop(
    call: Callable[[], Coroutine[Any, Any, object]],
) -> None:
    shared, client = SharedLoop(), Client()
    shared.acquire(client)  # type: ignore[arg-type]
    assert shared.run(call()) in (ConsumeResult.LATER, None)
    assert shared.run(work()) == "done"
    shared.release(client)  # type: ignore[arg-type]


@pytest.mark.parametrize("interceptor", [Exits(), ExitsAtOnce()], ids=["async", "plain"])
def test_an_exit_of_an_interceptor_is_the_outcome_of_its_send(interceptor: Interceptor) -> None:
    with SyncProducer(closed_port(), interceptors=[interceptor]) as producer:
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"SystemExit\(3\)"):
                producer.send(Message("T", b"x"))


def test_an_exit_of_the_applications_code_on_the_shared_loop_ends_its_call_alone() -> None:
    shared, client = SharedLoop(), Client()
    shared.acquire(client)  # type: ignore[arg-type]
    with pytest.raises(SystemExit):
        shared.run(exits())
    assert shared.run(work()) == "done"
    shared.release(client)  # type: ignore[arg-type]


def test_an_exit_in_the_turn_of_the_stop_does_not_keep_the_loop() -> None:
    shared, client = SharedLoop(), Client()
    shared.acquire(client)  # type: ignore[arg-type]
    threads: list[threading.Thread] = []

    def end() -> None:
        threads.append(threading.current_thread())
        shared.release(client)  # type: ignore[arg-type]
        asyncio.get_running_loop().call_soon(sys.exit)

    shared.call_soon(end)
    wait_until(lambda: threads and not threads[0].is_alive())
