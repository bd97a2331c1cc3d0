"""What threads hand over without waiting reaches the producer in their order."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq import Message, MessageQueue, SendResult, SendStatus
from gantrymq.client.blocking.shared_loop import SharedLoop
from gantrymq.client.blocking.soon import SoonSends
from gantrymq.client.produce.options import ProducerOptions
from gantrymq.errors import ClientClosed, RouteNotFound
from tests.waiting import until, wait_until

RESULT = SendResult(SendStatus.SEND_OK, "id", "offset id", MessageQueue("T", "broker-a", 0), 0, "", True)


class SlowAtFirst:
    """Stands for a producer that has no route for its first message, and has one for the next."""

    def __init__(self) -> None:
        self.options = ProducerOptions(name_servers="127.0.0.1:1", group="g")
        self.route = asyncio.Event()
        self.failure: Exception | None = None  # of the first message
        self.came: list[bytes] = []
        self.tasks: list[asyncio.Task[None]] = []

    def hand_over(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def send_collected(self, message: Message, **_choice: Any) -> asyncio.Future[SendResult]:
        if message.body == b"0":
            await self.route.wait()
            if self.failure is not None:
                raise self.failure
        self.came.append(message.body)
        sent = asyncio.get_running_loop().create_future()
        sent.set_result(RESULT)
        return sent


def submit(soon: SoonSends, number: int) -> Any:
    return soon.submit(Message("T", b"%d" % number), None, "key", asyncio.get_running_loop().call_soon)


async def test_a_burst_that_waits_for_its_route_is_not_overtaken() -> None:
    producer = SlowAtFirst()
    soon = SoonSends(producer)  # type: ignore[arg-type]
    futures = [submit(soon, 0)]
    await until(lambda: bool(producer.tasks))
    futures += [submit(soon, 1)]
    for _ in range(5):
        await asyncio.sleep(0)  # the second burst would have gone by now
    futures += [submit(soon, 2)]
    producer.route.set()
    await until(lambda: all(future.done() for future in futures))
    assert producer.came == [b"0", b"1", b"2"]
    assert all(future.result(0) is RESULT for future in futures)
    futures += [submit(soon, 3)]
    await until(futures[-1].done)
    assert producer.came[-1] == b"3", "the next burst after a pause goes, too"


async def test_what_was_handed_over_when_the_producer_is_closed_has_an_outcome() -> None:
    producer = SlowAtFirst()
    soon = SoonSends(producer)  # type: ignore[arg-type]
    futures = [submit(soon, number) for number in range(3)]
    await until(lambda: bool(producer.tasks))
    await asyncio.sleep(0)
    producer.tasks[0].cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await producer.tasks[0]
    await until(lambda: all(future.done() for future in futures))
    for future in futures:
        with pytest.raises(ClientClosed):
            future.result(0)


async def test_what_a_loop_that_ended_never_came_to_has_an_outcome() -> None:
    soon = SoonSends(SlowAtFirst())  # type: ignore[arg-type]
    taken: list[Callable[[], None]] = []  # and never called
    futures = [soon.submit(Message("T", b"%d" % number), None, "key", taken.append) for number in range(2)]
    assert len(taken) == 1
    soon.end()
    for future in futures:
        with pytest.raises(ClientClosed):
            future.result(0)
    with pytest.raises(ClientClosed):
        submit(soon, 3)


async def test_a_message_behind_one_that_could_not_be_handed_over_has_an_outcome() -> None:
    soon = SoonSends(SlowAtFirst())  # type: ignore[arg-type]
    behind: list[Any] = []

    def closed(take: Callable[[], None]) -> None:
        behind.append(submit(soon, 1))  # another thread
        raise ClientClosed("closed by another thread before this call began")

    with pytest.raises(ClientClosed):
        soon.submit(Message("T", b"0"), None, "key", closed)
    with pytest.raises(ClientClosed):
        behind[0].result(0)


async def test_a_message_that_is_given_up_does_not_take_the_others_along() -> None:
    producer = SlowAtFirst()
    producer.failure = RouteNotFound("T")
    soon = SoonSends(producer)  # type: ignore[arg-type]
    futures = [submit(soon, number) for number in range(3)]
    await until(lambda: bool(producer.tasks))
    waiting = asyncio.wrap_future(futures[0])
    waiting.cancel()  # as a wait with a limit does
    await asyncio.sleep(0)
    producer.route.set()
    await until(lambda: all(future.done() for future in futures))
    assert isinstance(futures[0].exception(0), RouteNotFound)
    assert [future.result(0) for future in futures[1:]] == [RESULT, RESULT]


@pytest.mark.parametrize("failure", [None, RouteNotFound("T")], ids=["sent", "not sent"])
def test_a_callback_that_exits_takes_no_other_message_along(failure: Exception | None) -> None:
    producer, shared = SlowAtFirst(), SharedLoop()
    producer.failure = failure
    shared.acquire(producer)  # type: ignore[arg-type]
    soon = SoonSends(producer)  # type: ignore[arg-type]
    futures = [soon.submit(Message("T", b"%d" % number), None, "key", shared.call_soon) for number in range(3)]
    futures[0].add_done_callback(lambda done: sys.exit(3))
    wait_until(lambda: producer.tasks)
    futures.append(soon.submit(Message("T", b"3"), None, "key", shared.call_soon))  # while the first ones are sent
    shared.call_soon(producer.route.set)
    wait_until(lambda: all(future.done() for future in futures))
    assert futures[0].exception(0) is failure
    assert [future.result(0) for future in futures[1:]] == [RESULT] * 3
    shared.release(producer)  # type: ignore[arg-type]


def test_a_callback_that_exits_at_the_end_leaves_no_message_without_an_outcome() -> None:
    soon = SoonSends(SlowAtFirst())  # type: ignore[arg-type]
    futures = [soon.submit(Message("T", b"x"), None, "key", lambda take: None) for _ in range(3)]
    for future in futures:
        future.add_done_callback(lambda done: sys.exit(3))
    with pytest.raises(SystemExit):
        soon.end()
    assert all(isinstance(future.exception(0), ClientClosed) for future in futures)
