"""What a listener's result means."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq import ConsumeFrom, ConsumeResult, Message, MessageExt, Producer, PushConsumer, RetryLater
from gantrymq.client.consume import listener_calls
from gantrymq.client.consume.failed_messages import DELAYS_S, level_of
from gantrymq.client.consume.listener_calls import ListenerCalls
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.errors import WrongType
from tests.gantrymq.client.messages import stored
from tests.gantrymq.client.seen import until
from tests.harness import serving

MESSAGES = [stored(offset) for offset in range(3)]


def calls_of(listener: Callable[[list[MessageExt]], object]) -> ListenerCalls:
    async def wrapped(messages: list[MessageExt]) -> object:
        return listener(messages)

    return ListenerCalls(wrapped, ConsumeCounters(), concurrency=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("result", [None, ConsumeResult.SUCCESS])
async def test_nothing_returned_is_success(result: object) -> None:
    assert await calls_of(lambda messages: result).consume("T", MESSAGES) is ConsumeResult.SUCCESS


@pytest.mark.parametrize("result", [True, False, 0, "SUCCESS", ConsumeResult, [ConsumeResult.SUCCESS]])
async def test_what_is_no_result_is_told_once_and_the_messages_come_again(
    result: object, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_the_next_longer_delay_of_the_broker_is_taken() -> None:
    assert len(DELAYS_S) == 18
    assert [level_of(delay_s) for delay_s in (0, 1, 1.1, 5, 60, 61, 600, 601, 7200, 9999)] == [
        1, 1, 2, 2, 5, 6, 14, 15, 18, 18,
    ]  # fmt: skip


async def test_only_the_named_messages_of_a_batch_come_again_after_the_delay(tmp_path: Path) -> None:
    calls: list[tuple[float, list[tuple[bytes, int]]]] = []

    async def listener(messages: list[MessageExt]) -> None:
        calls.append((time.time(), [(message.body, message.tries) for message in messages]))
        failed = [message for message in messages if message.body == b"bad" and message.tries == 1]
        if failed:
            raise RetryLater(1, failed)

    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        sent = await producer.send_batch([Message("partly", body) for body in (b"good", b"bad", b"fine")])
        consumer = PushConsumer(
            cluster.namesrv_address, group="partly", listener=listener, batch_size=3,
            consume_from=ConsumeFrom.FIRST_OFFSET,
        )  # fmt: skip
        consumer.subscribe("partly")
        async with consumer:
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
        consumer = PushConsumer(
            cluster.namesrv_address, group="inorder", listener=listener, batch_size=3, ordered=True,
            consume_from=ConsumeFrom.FIRST_OFFSET,
        )  # fmt: skip
        consumer.subscribe("inorder")
        async with consumer:
            await until(lambda: len(calls) == 2)
    assert calls == [[b"1", b"2", b"3"], [b"2", b"3"]]
