"""One trace over Python and Java: the SDK's interceptor, and OpenTelemetry's agent around RocketMQ's Java client."""

from __future__ import annotations

import asyncio
import re
import time

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from appliance.bench import rpc
from appliance.bench.maven import copied_jars
from appliance.bench.peer import CLUSTER_NAME, Peer
from gantrymq import ConsumeFrom, ConsumeResult, Message, MessageExt, Producer, PushConsumer
from gantrymq.contrib.opentelemetry import OpenTelemetryInterceptor
from tests.interop.clients import ClientProgram, JavaClient
from tests.waiting import WITHIN_S, until

AGENT = ("io.opentelemetry.javaagent:opentelemetry-javaagent:2.8.0",)
AGENT_OPTIONS = {
    "otel.traces.exporter": "logging",
    "otel.metrics.exporter": "none",
    "otel.logs.exporter": "none",
    "otel.bsp.schedule.delay": 200,  # ms
}
SPAN = re.compile(r"'([^']+)' : ([0-9a-f]{32}) ([0-9a-f]{16}) (PRODUCER|CONSUMER|CLIENT)")


def test_a_trace_goes_to_java_and_comes_back(cluster: Peer, java: JavaClient) -> None:
    """Python sends; Java's listener answers in the same trace; a listener of Python's reads the answer."""
    topic = f"Interop-traces-{time.monotonic_ns()}"
    rpc.create_topic(cluster.broker_address, topic, 1)
    (agent,) = copied_jars(AGENT).glob("opentelemetry-javaagent-*.jar")
    arguments = (cluster.namesrv_address, topic, f"{topic}-java", "answer")
    with java.run("RequestReply", *arguments, java_properties=AGENT_OPTIONS, agent=agent) as program:
        program.wait_started()
        spans = asyncio.run(_ask_and_read(cluster, topic, program))
        (sent,) = [span for span in spans if span.name == f"send {topic}"]
        trace = f"{sent.context.trace_id:032x}"
        program.wait_for(
            lambda: {kind for _, _, kind in _java_spans(program, trace)} >= {"PRODUCER", "CONSUMER"}, "spans"
        )
        producing = {span for _, span, kind in _java_spans(program, trace) if kind == "PRODUCER"}
    (processed,) = [span for span in spans if span.name.startswith("process ") and trace in str(_origins(span))]
    assert _origins(processed) <= {(trace, span) for span in producing}


async def _ask_and_read(cluster: Peer, topic: str, program: ClientProgram) -> list[ReadableSpan]:
    """The spans of Python's side."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    interceptor = OpenTelemetryInterceptor(provider)
    read: list[bytes] = []

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        read.extend(message.body for message in messages)
        return ConsumeResult.SUCCESS

    consumer = PushConsumer(
        cluster.namesrv_address,
        group=f"{topic}-python",
        listener=listener,
        consume_from=ConsumeFrom.FIRST_OFFSET,
        interceptors=[interceptor],
    )
    consumer.subscribe(f"{CLUSTER_NAME}_REPLY_TOPIC")
    async with Producer(cluster.namesrv_address, interceptors=[interceptor]) as producer, consumer:
        reply = await producer.request(Message(topic, b"a question"), timeout_s=WITHIN_S)
        assert reply.body == b"java answers a question"
        await until(lambda: b"java answers a question" in read)
    assert not program.lines("FAILED")
    return list(exporter.get_finished_spans())


def _java_spans(program: ClientProgram, trace: str) -> set[tuple[str, str, str]]:
    """(name, span id, kind) of those that the agent has written down."""
    found = SPAN.findall(program.log.read_text(errors="replace"))
    return {(name, span, kind) for name, of, span, kind in found if of == trace}


def _origins(span: ReadableSpan) -> set[tuple[str, str]]:
    """(trace id, span id) of what it is a child of or linked to."""
    contexts = [link.context for link in span.links] + ([span.parent] if span.parent else [])
    return {(f"{context.trace_id:032x}", f"{context.span_id:016x}") for context in contexts}
