"""What a listener's result means."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq import AdminClient, ConsumeFrom, ConsumeResult, Message, MessageExt, Producer, RetryLater
from gantrymq.client.consume import listener_calls
from gantrymq.client.consume.failed_messages import retry_message
from gantrymq.client.consume.listener_calls import ListenerCalls
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.errors import WrongType
from tests.gantrymq.client.messages import stored
from tests.gantrymq.client.peers import subscribed
from tests.gantrymq.client.seen import until
from tests.harness import serving
from tests.waiting import WITHIN_S

FROM_THE_FIRST = {"consume_from": ConsumeFrom.FIRST_OFFSET}
MESSAGES = [stored(offset) for offset in range(3)]


def calls_of(listener: Callable[[list[MessageExt]], object]) -> ListenerCalls:
    async def wrapped(messages: list[MessageExt]) -> object:
        return listener(messages)

    return ListenerCalls(wrapped, ConsumeCounters(), concurrency=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("result", [None, ConsumeResult.SUCCESS])
async def test_nothing_returned_is_success(result: object) -> None:
    assert await calls_of(lambda messages: result).consume("T", MESSAGES) is ConsumeResult.SUCCESS


@pytest.mark.parametrize("result", [True, False, 0, "SUCCESS", ConsumeResult, [ConsumeResult.SUCCESS]])
async def test_no_result_is_told_once_and_the_messages_return(result: object, caplog: pytest.LogCaptureFixture) -> None:
    calls = calls_of(lambda messages: result)
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        assert await calls.consume("T", MESSAGES) is ConsumeResult.LATER
    (record,) = (each for each in caplog.records if each.name == listener_calls.__name__)
    assert "a listener returns ConsumeResult.SUCCESS" in record.getMessage()
    assert repr(result)[:60] in record.getMessage()
    with pytest.raises(WrongType):
        await calls.call(MESSAGES)  # a tool that calls it directly sees it


async def test_retry_later_may_be_returned_or_raised() -> None:
    again = RetryLater(30, MESSAGES[1:2])

    def raise_it(messages: list[MessageExt]) -> None:
        raise again

    assert await calls_of(lambda messages: again).consume("T", MESSAGES) is again
    assert await calls_of(raise_it).consume("T", MESSAGES) is again
    assert again.again(MESSAGES) == MESSAGES[1:2]
    assert RetryLater().again(MESSAGES) == MESSAGES
    with pytest.raises(ValueError, match="0 or more"):
        RetryLater(-1)


async def test_a_listener_that_meets_a_cancelled_future_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def meet_one(messages: list[MessageExt]) -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    calls = ListenerCalls(meet_one, ConsumeCounters(), concurrency=1)
    working = asyncio.create_task(calls.consume("T", MESSAGES))
    await asyncio.wait([working])
    assert not working.cancelled() and working.result() is ConsumeResult.LATER
    (record,) = (each for each in caplog.records if each.name == listener_calls.__name__)
    assert record.exc_info is not None


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_listener_may_take_messages_out_of_its_list(is_async: bool) -> None:
    def take_out(messages: list[MessageExt]) -> None:
        while messages:
            messages.pop()

    async def take_out_async(messages: list[MessageExt]) -> None:
        take_out(messages)

    calls = ListenerCalls(take_out_async if is_async else take_out, ConsumeCounters(), concurrency=1)  # type: ignore[arg-type]
    given = list(MESSAGES)
    calls.start()
    assert await calls.consume("T", given) is ConsumeResult.SUCCESS
    calls.close()
    assert given == MESSAGES, "the consumer has to finish them"


async def test_an_exit_in_a_thread_is_a_failure_and_not_the_end_of_the_loop() -> None:
    message = stored(0)
    calls = ListenerCalls(lambda messages: sys.exit(3), ConsumeCounters(), concurrency=1)
    calls.start()
    assert await calls.consume("T", [message]) is ConsumeResult.LATER
    calls.close()
    assert message.properties["CONSUME_ERROR_TEXT"] == "RuntimeError: SystemExit(3) in a thread, where it ends nothing"
    assert message.properties["CONSUME_ERROR"].startswith("RuntimeError at test_listener_calls.py:")


async def test_a_call_that_is_cancelled_has_no_result() -> None:
    async def last(messages: list[MessageExt]) -> None:
        await asyncio.Event().wait()

    calls = ListenerCalls(last, ConsumeCounters(), concurrency=1)
    working = asyncio.create_task(calls.consume("T", MESSAGES))
    await until(lambda: bool(calls.running))
    working.cancel()
    await asyncio.wait([working])
    assert working.cancelled()


async def test_messages_take_along_why_they_failed() -> None:
    def fail(messages: list[MessageExt]) -> None:
        raise ValueError('no "price"\nin order 17')

    message = stored(0)
    await calls_of(fail).consume("T", [message])
    assert re.fullmatch(r"ValueError at test_listener_calls\.py:\d+", message.properties["CONSUME_ERROR"])
    assert message.properties["CONSUME_ERROR_TEXT"] == "ValueError: no price in order 17"
    await calls_of(lambda messages: ConsumeResult.LATER).consume("T", [message])
    assert message.properties == {"CONSUME_ERROR": "the listener returned LATER"}, "the last try counts"
    again = retry_message(message, "%RETRY%g", 16)
    assert again.properties["CONSUME_ERROR"] == "the listener returned LATER", "also when it is sent as a new message"
    full = stored(0, much="x" * 32_500, CONSUME_ERROR="E at f.py:1", CONSUME_ERROR_TEXT="x" * 200)
    assert "CONSUME_ERROR" not in retry_message(full, "%RETRY%g", 16).properties, "it would not fit"
    untouched = stored(0)
    await calls_of(lambda messages: None).consume("T", [untouched])
    assert untouched.properties == {}


async def test_a_listener_in_a_thread_is_named_for_its_timeout(caplog: pytest.LogCaptureFixture) -> None:
    def late(messages: list[MessageExt]) -> None:
        raise TimeoutError("no answer")

    message, calls = stored(0), ListenerCalls(late, ConsumeCounters(), concurrency=1)
    calls.start()
    try:
        assert await calls.consume("T", [message]) is ConsumeResult.LATER
    finally:
        calls.close()
    assert re.fullmatch(r"TimeoutError at test_listener_calls\.py:\d+", message.properties["CONSUME_ERROR"])
    assert message.properties["CONSUME_ERROR_TEXT"] == "TimeoutError: no answer"
    assert "in late" in caplog.text


async def test_a_dead_letter_says_what_the_consumer_failed_on(tmp_path: Path) -> None:
    async def listener(messages: list[MessageExt]) -> None:
        raise KeyError("price")

    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        await producer.send(Message("readers", b"17"))
        async with subscribed(cluster, "readers", listener, max_reconsume_times=0, **FROM_THE_FIRST):
            await until(lambda: cluster.broker.store.max_offset("%DLQ%readers", 0) == 1, within_s=WITHIN_S)
        async with AdminClient(cluster.namesrv_address) as admin:
            ((letter,), *_) = await admin.messages.pull_at(cluster.broker_address, "%DLQ%readers", 0, 0)
    assert letter.properties["CONSUME_ERROR"].startswith("KeyError at test_listener_calls.py:")
    assert letter.properties["CONSUME_ERROR_TEXT"] == "KeyError: 'price'"


async def test_only_the_named_messages_of_a_batch_come_again_after_the_delay(tmp_path: Path) -> None:
    calls: list[tuple[float, list[tuple[bytes, int]]]] = []

    async def listener(messages: list[MessageExt]) -> None:
        calls.append((time.time(), [(message.body, message.tries) for message in messages]))
        failed = [message for message in messages if message.body == b"bad" and message.tries == 1]
        if failed:
            raise RetryLater(1, failed)

    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        sent = await producer.send_batch([Message("partly", body) for body in (b"good", b"bad", b"fine")])
        async with subscribed(cluster, "partly", listener, batch_size=3, **FROM_THE_FIRST):
            await until(lambda: len(calls) == 2)
    assert calls[0][1] == [(b"good", 1), (b"bad", 1), (b"fine", 1)]
    assert calls[1][1] == [(b"bad", 2)]
    assert calls[1][0] - calls[0][0] >= 0.9
    assert sent.queue.topic == "partly"


async def test_in_order_the_messages_before_the_failed_one_are_done(tmp_path: Path) -> None:
    calls: list[list[bytes]] = []

    async def listener(messages: list[MessageExt]) -> RetryLater | None:
        calls.append([message.body for message in messages])
        return RetryLater(0.05, messages[1:2]) if len(calls) == 1 else None

    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        await producer.send_batch([Message("inorder", body) for body in (b"1", b"2", b"3")])
        async with subscribed(cluster, "inorder", listener, batch_size=3, ordered=True, **FROM_THE_FIRST):
            await until(lambda: len(calls) == 2)
    assert calls == [[b"1", b"2", b"3"], [b"2", b"3"]]
