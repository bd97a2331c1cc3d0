"""What a push consumer checks before it consumes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq import ConsumeResult, Message, Producer, PushConsumer
from gantrymq.errors import ResponseError
from gantrymq.message.model import MessageExt
from tests.harness import serving


async def listener(messages: list[MessageExt]) -> ConsumeResult:
    return ConsumeResult.SUCCESS


async def test_a_topic_that_is_not_known_yet_keeps_no_consumer_from_starting(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        consumer = PushConsumer(cluster.namesrv_address, group="early", listener=listener)
        consumer.subscribe("not-there-yet", sql="a > 5")
        async with consumer:
            assert consumer.assigned_queues == []


async def test_a_condition_that_no_broker_understands_fails_at_the_start(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        async with Producer(cluster.namesrv_address) as producer:
            await producer.send(Message("there", b"x"))
        await cluster.broker.opened.outer_api.register_all()
        consumer = PushConsumer(cluster.namesrv_address, group="wrong", listener=listener)
        consumer.subscribe("there", sql="a >")
        with pytest.raises(ResponseError, match="found end of the condition"):
            await consumer.start()
