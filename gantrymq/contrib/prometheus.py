"""Counters for Prometheus (gantrymq[prometheus]): what was sent and consumed, how it ended, and how long it took."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

from gantrymq.client.interceptors import ConsumeCall, ConsumeProceed, Interceptor, SendCall, SendProceed
from gantrymq.client.results import ConsumeResult, LostMessage, RetryLater, SendResult

LABELS = ("topic", "group", "outcome")


class PrometheusInterceptor(Interceptor):
    """One for all clients of a process: `interceptors=[PrometheusInterceptor()]`; a registry takes each name once.

    gantrymq_sent_messages_total, gantrymq_send_seconds: outcome is a SendStatus in small letters, or the error's class.
    gantrymq_consumed_messages_total, gantrymq_consume_seconds: success, later, or the error's class.
    gantrymq_lost_messages_total: skipped because they are damaged, for a consumer's `on_message_lost=metrics.lost`.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._sent = Counter("gantrymq_sent_messages", "Messages sent", LABELS, registry=registry)
        self._send_s = Histogram("gantrymq_send_seconds", "Sends, tries included", LABELS, registry=registry)
        self._consumed = Counter(
            "gantrymq_consumed_messages", "Messages given to a listener", LABELS, registry=registry
        )
        self._consume_s = Histogram("gantrymq_consume_seconds", "Listener calls", LABELS, registry=registry)
        self._lost = Counter(
            "gantrymq_lost_messages", "Messages damaged on the broker's disk", ("topic", "broker"), registry=registry
        )

    async def lost(self, lost: LostMessage) -> None:
        """Count a message that a consumer skipped: give this to it as `on_message_lost`."""
        self._lost.labels(lost.queue.topic, lost.queue.broker_name).inc()

    async def send(self, call: SendCall, proceed: SendProceed) -> SendResult:
        """Count the messages and measure the send, in seconds, tries included."""
        with _counted(call, self._sent, self._send_s) as told:
            result = await proceed()
            told["outcome"] = result.status.name.lower()
            return result

    async def consume(self, call: ConsumeCall, proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        """Count the messages and measure the listener call, in seconds."""
        with _counted(call, self._consumed, self._consume_s) as told:
            result = await proceed()
            told["outcome"] = "success" if result is ConsumeResult.SUCCESS else "later"
            return result


@contextlib.contextmanager
def _counted(call: SendCall | ConsumeCall, messages: Counter, seconds: Histogram) -> Iterator[dict[str, str]]:
    """Count and measure what is done inside, which says its outcome unless it raises."""
    started, told = time.monotonic(), {"outcome": "cancelled"}
    try:
        yield told
    except Exception as exc:
        told["outcome"] = type(exc).__name__
        raise
    finally:
        labels = (call.messages[0].topic, call.group, told["outcome"])
        messages.labels(*labels).inc(len(call.messages))
        seconds.labels(*labels).observe(time.monotonic() - started)
