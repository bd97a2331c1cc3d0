"""Spans for OpenTelemetry (gantrymq[opentelemetry]), after its semantic conventions for messaging and RocketMQ.

A message's context travels in its property `traceparent` (W3C Trace Context), so a trace goes on at the other side.

    create TOPIC    producer   a message that goes in a batch with others
    send TOPIC      producer   one message; for a batch: client, linked to its messages
    process TOPIC   consumer   a listener call; the child of its message, or linked to its messages

The application's context is current while the listener runs, in its thread as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry import context, propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

import gantrymq
from gantrymq.client.interceptors import ConsumeCall, ConsumeProceed, Interceptor, SendCall, SendProceed
from gantrymq.client.results import ConsumeResult, RetryLater, SendResult
from gantrymq.message import properties as names
from gantrymq.message.model import Message, MessageExt

AttributeValue = str | int | list[str]


class OpenTelemetryInterceptor(Interceptor):
    """`interceptors=[OpenTelemetryInterceptor()]`. tracer_provider, propagator: those of the process by default."""

    def __init__(
        self, tracer_provider: TracerProvider | None = None, propagator: TextMapPropagator | None = None
    ) -> None:
        self._tracer: Tracer = trace.get_tracer("gantrymq", gantrymq.__version__, tracer_provider)
        self._propagator: TextMapPropagator = propagate.get_global_textmap() if propagator is None else propagator

    def collect(self, message: Message) -> None:
        """A span `create TOPIC`, whose context the message takes along."""
        attributes = _attributes(message.topic, "create", [message])
        with self._tracer.start_as_current_span(
            f"create {message.topic}", kind=SpanKind.PRODUCER, attributes=attributes
        ):
            self._propagator.inject(message.properties)

    async def send(self, call: SendCall, proceed: SendProceed) -> SendResult:
        """A span `send TOPIC` around the send; what fails sets `error.type`."""
        messages = call.messages
        topic = messages[0].topic
        is_one = len(messages) == 1
        if not is_one and not call.is_collected:
            for message in messages:
                self.collect(message)
        attributes = _attributes(topic, "send", messages) | {
            "messaging.client.id": call.client_id,
            "messaging.rocketmq.client_group": call.group,
        }
        is_creating = is_one and not call.is_collected
        with self._tracer.start_as_current_span(
            f"send {topic}",
            kind=SpanKind.PRODUCER if is_creating else SpanKind.CLIENT,
            attributes=attributes,
            links=[] if is_creating else self._links(messages),
        ) as span:
            if is_creating:
                self._propagator.inject(messages[0].properties)
            try:
                result = await proceed()
            except Exception as exc:
                span.set_attribute("error.type", type(exc).__qualname__)
                raise  # the span notes it
            span.set_attribute("messaging.destination.partition.id", str(result.queue.queue_id))
            if is_one:
                span.set_attribute("messaging.message.id", result.msg_id)
            return result

    async def consume(self, call: ConsumeCall, proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        """A span `process TOPIC` around the listener call, linked to the spans its messages came from."""
        messages = call.messages
        attributes = _attributes(messages[0].topic, "process", messages) | {
            "messaging.client.id": call.client_id,
            "messaging.consumer.group.name": call.group,
            "messaging.rocketmq.client_group": call.group,
            "messaging.destination.partition.id": str(messages[0].queue_id),
        }
        if len(messages) == 1:
            attributes["messaging.message.id"] = messages[0].msg_id
        parent = self._context(messages[0]) if len(messages) == 1 else context.get_current()
        with self._tracer.start_as_current_span(
            f"process {messages[0].topic}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=self._links(messages),
        ) as span:
            try:
                result = await proceed()
            except Exception as exc:
                span.set_attribute("error.type", type(exc).__qualname__)
                raise
            _note_result(span, result)
            return result

    def _context(self, message: Message | MessageExt) -> Context:
        return self._propagator.extract(message.properties)

    def _links(self, messages: Sequence[Message | MessageExt]) -> list[Link]:
        """To where each message was created, of those that say it."""
        created = (trace.get_current_span(self._context(message)).get_span_context() for message in messages)
        return [Link(each) for each in created if each.is_valid]


def _note_result(span: Span, result: ConsumeResult | RetryLater) -> None:
    if result is not ConsumeResult.SUCCESS:
        span.set_attribute("error.type", "LATER")
        span.set_status(Status(StatusCode.ERROR, "the messages are delivered again"))


def _attributes(topic: str, operation: str, messages: Sequence[Message | MessageExt]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "messaging.system": "rocketmq",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
    }
    if len(messages) > 1:
        attributes["messaging.batch.message_count"] = len(messages)
        return attributes
    message = messages[0]
    attributes["messaging.message.body.size"] = len(message.body)
    attributes["messaging.rocketmq.message.type"] = _type(message)
    if message.tags:
        attributes["messaging.rocketmq.message.tag"] = message.tags
    if message.keys:
        attributes["messaging.rocketmq.message.keys"] = (
            message.keys.split() if isinstance(message.keys, str) else list(message.keys)
        )
    return attributes


def _type(message: Message | MessageExt) -> str:
    if names.TRAN_MSG in message.properties:
        return "transaction"
    is_delayed = (
        message.is_delayed if isinstance(message, Message) else not names.DELAYING.isdisjoint(message.properties)
    )
    return "delay" if is_delayed else "normal"
