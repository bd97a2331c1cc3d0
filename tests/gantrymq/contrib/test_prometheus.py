"""Counters of what is sent and consumed, at a running broker and with Prometheus's own client."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from gantrymq import ConsumeResult, LostMessage, Message, MessageExt, MessageQueue, Producer
from gantrymq.contrib.prometheus import PrometheusInterceptor
from gantrymq.errors import MessageRejected
from tests.gantrymq.client.seen import consumer_of_all, until
from tests.harness import serving


async def test_what_was_sent_and_consumed_is_counted_by_its_outcome(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    interceptors = [PrometheusInterceptor(registry)]

    def count(name: str, outcome: str, group: str) -> float:
        labels = {"topic": "T", "group": group, "outcome": outcome}
        return registry.get_sample_value(name, labels) or 0

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        if messages[0].body == b"raise":
            raise LookupError("nothing there")
        return ConsumeResult.LATER if messages[0].body == b"later" else ConsumeResult.SUCCESS

    async with serving(tmp_path) as cluster:
        async with Producer(cluster.namesrv_address, group="P", interceptors=interceptors) as producer:
            await producer.send_batch([Message("T", b"good"), Message("T", b"later"), Message("T", b"raise")])
            with pytest.raises(MessageRejected):
                await producer.send(Message("T", b""))
        async with consumer_of_all(cluster, "T", listener, interceptors):
            for outcome in ("success", "later", "LookupError"):
                await until(lambda outcome=outcome: count("gantrymq_consumed_messages_total", outcome, "G") == 1)  # type: ignore[misc]
    assert count("gantrymq_sent_messages_total", "send_ok", "P") == 3
    assert count("gantrymq_send_seconds_count", "send_ok", "P") == 1
    assert count("gantrymq_sent_messages_total", "MessageRejected", "P") == 1
    assert b'gantrymq_consume_seconds_bucket{group="G",le="+Inf",outcome="later",topic="T"} 1.0' in generate_latest(
        registry
    )


async def test_messages_that_were_skipped_are_counted() -> None:
    registry = CollectorRegistry()
    metrics = PrometheusInterceptor(registry)
    await metrics.lost(LostMessage(MessageQueue("T", "broker-a", 0), 7, 4096, "body does not match its CRC"))
    labels = {"topic": "T", "broker": "broker-a"}
    assert registry.get_sample_value("gantrymq_lost_messages_total", labels) == 1
