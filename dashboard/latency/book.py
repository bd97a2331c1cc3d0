"""From what clients report to how long messages took: a sender's report and a group's meet by the message's id. Pure.

Sent: when a producer began to send it, of a transaction the half message. Handled: when a listener ended with success,
so that the tries before count, too. What was sent with a delay is left out: its wait is meant. Times are of the
clients' clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dashboard.latency.histogram import Histogram
from gantrymq.client.produce.trace_records import TracedMessageType, TraceKind, TraceRecord

SENT_MAX = 50_000  # messages whose sender's report is remembered
WAITING_MAX = 20_000  # reports of groups that came before the sender's
WAIT_S = 60.0
PAIRS_SEEN_MAX = 1000  # of topic and group, in a minute
PAIRS_KEPT = 100  # of them, those with the most messages
NO_TOPIC = NO_GROUP = ""
Pair = tuple[str, str]  # topic, group


@dataclass(slots=True)
class Measured:
    """One topic and group in one minute. unmeasured: handled, but the sender's report is not known, or its clock is
    ahead. Without a topic only those are known; without a group, too, they are trace messages that were not read.
    """

    histogram: Histogram = field(default_factory=Histogram)
    unmeasured: int = 0


@dataclass(frozen=True, slots=True)
class _Handled:
    group: str
    at_ms: int
    seen_at: float


class LatencyBook:
    """`take` adds reports, `finish` hands out the pairs of the time since it was called last."""

    def __init__(self) -> None:
        self._sent: dict[str, tuple[str, int | None]] = {}  # message id → topic, and when; None: its wait is meant
        self._waiting: dict[str, list[_Handled]] = {}
        self._pairs: dict[Pair, Measured] = {}

    def take(self, records: Iterable[TraceRecord], now: float) -> None:
        for record in records:
            if record.kind is TraceKind.PUB and record.is_success:
                self._note_sent(record)
            elif record.kind is TraceKind.SUB_AFTER and record.is_success and record.group and record.time_ms:
                self._note_handled(record.msg_id, _Handled(record.group, record.time_ms, now))
        self._give_up(now)

    def skip(self, messages: int) -> None:
        """Trace messages that are not read."""
        self._pair(NO_TOPIC, NO_GROUP).unmeasured += messages

    def finish(self) -> list[tuple[Pair, Measured]]:
        """The pairs with the most messages."""
        pairs, self._pairs = self._pairs, {}
        return sorted(pairs.items(), key=lambda one: -(one[1].histogram.total + one[1].unmeasured))[:PAIRS_KEPT]

    # ---- helpers

    def _note_sent(self, record: TraceRecord) -> None:
        at_ms = None if record.message_type == TracedMessageType.DELAY else record.time_ms
        self._sent[record.msg_id] = record.topic, at_ms
        if len(self._sent) > SENT_MAX:
            del self._sent[next(iter(self._sent))]
        for handled in self._waiting.pop(record.msg_id, ()):
            self._measure(record.topic, at_ms, handled)

    def _note_handled(self, msg_id: str, handled: _Handled) -> None:
        topic, at_ms = self._sent.get(msg_id, (NO_TOPIC, None))
        if topic:
            self._measure(topic, at_ms, handled)
        else:
            self._waiting.setdefault(msg_id, []).append(handled)

    def _measure(self, topic: str, at_ms: int | None, handled: _Handled) -> None:
        if at_ms is None:
            return
        pair = self._pair(topic, handled.group)
        if handled.at_ms < at_ms:
            pair.unmeasured += 1
        else:
            pair.histogram.add(handled.at_ms - at_ms)

    def _give_up(self, now: float) -> None:
        """Of the oldest in `_waiting` no sender's report has come."""
        while self._waiting:
            msg_id = next(iter(self._waiting))
            if now - self._waiting[msg_id][0].seen_at < WAIT_S and len(self._waiting) <= WAITING_MAX:
                break
            for handled in self._waiting.pop(msg_id):
                self._pair(NO_TOPIC, handled.group).unmeasured += 1

    def _pair(self, topic: str, group: str) -> Measured:
        pair = self._pairs.get((topic, group))
        if pair is None:
            pair = Measured()
            if len(self._pairs) < PAIRS_SEEN_MAX:
                self._pairs[topic, group] = pair
        return pair
