"""Spans of what is sent and consumed, at a running broker and with OpenTelemetry's own SDK."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from gantrymq import ConsumeResult, Message, MessageExt, Producer
from gantrymq.contrib.opentelemetry import OpenTelemetryInterceptor
from gantrymq.errors import GantryError
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.client.seen import consumer_of_all, until
from tests.harness import serving


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def named(spans: Sequence[ReadableSpan], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


async def test_a_trace_goes_on_from_the_sender_to_the_listener(
    tmp_path: Path, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    interceptors = [OpenTelemetryInterceptor(provider)]
    in_listener: list[int] = []

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        in_listener.append(trace.get_current_span().get_span_context().span_id)
        return ConsumeResult.LATER if messages[0].body == b"bad" else ConsumeResult.SUCCESS

    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address, interceptors=interceptors) as producer:
        with provider.get_tracer("test").start_as_current_span("a request") as request:
            result = await producer.send(Message("T", b"good", tags="new", keys="k1 k2"))
        await producer.send(Message("T", b"bad"))
        async with consumer_of_all(cluster, "T", listener, interceptors):
            await until(lambda: len(named(exporter.get_finished_spans(), "process T")) == 2)
            spans = exporter.get_finished_spans()  # the bad one comes again in ten seconds
    sent = named(spans, "send T")[0]
    processed, failed = sorted(named(spans, "process T"), key=lambda span: span.status.status_code is StatusCode.ERROR)
    assert sent.parent is not None and processed.parent is not None
    assert sent.parent.span_id == request.get_span_context().span_id
    assert processed.parent.span_id == sent.context.span_id
    assert {span.context.trace_id for span in (sent, processed)} == {request.get_span_context().trace_id}
    assert (sent.kind, processed.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert set(in_listener) == {processed.context.span_id, failed.context.span_id}
    assert failed.status.status_code is StatusCode.ERROR
    for span, operation in ((sent, "send"), (processed, "process")):
        assert dict(span.attributes or {}) | {
            "messaging.system": "rocketmq",
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
            "messaging.destination.name": "T",
            "messaging.destination.partition.id": str(result.queue.queue_id),
            "messaging.message.id": result.msg_id,
            "messaging.message.body.size": 4,
            "messaging.rocketmq.message.tag": "new",
            "messaging.rocketmq.message.keys": ("k1", "k2"),
            "messaging.rocketmq.message.type": "normal",
        } == dict(span.attributes or {})


async def test_messages_of_a_batch_have_spans_that_the_send_is_linked_to(
    tmp_path: Path, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    interceptors = [OpenTelemetryInterceptor(provider)]
    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address, interceptors=interceptors) as producer:
        messages = [Message("T", b"%d" % number) for number in range(3)]
        await producer.send_batch(messages)
    spans = exporter.get_finished_spans()
    created = [span.context.span_id for span in named(spans, "create T")]
    (sent,) = named(spans, "send T")
    assert [link.context.span_id for link in sent.links] == created
    assert [int(message.properties["traceparent"].split("-")[2], 16) for message in messages] == created
    assert (sent.attributes or {})["messaging.batch.message_count"] == 3


async def test_a_send_that_fails_says_so(exporter: InMemorySpanExporter, provider: TracerProvider) -> None:
    async with Producer(closed_port(), interceptors=[OpenTelemetryInterceptor(provider)], retries=0) as producer:
        with pytest.raises(GantryError):
            await producer.send(Message("T", b"x"))
    (sent,) = exporter.get_finished_spans()
    assert sent.status.status_code is StatusCode.ERROR
    assert (sent.attributes or {})["error.type"] == "ConnectError"
