"""One thing that a client told of one message: sent, handled, a transaction ended. And what is asked of many. Pure.

A client tells when it begins to handle a message and when it has ended; the end says all, so the begin is no event of
its own. Only the sender tells the topic: where it is not known yet, it is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext

from dashboard.cluster import units
from dashboard.cluster.trace_steps import outcome_of
from gantrymq.client.produce.trace_records import TraceKind, TraceRecord, decode_records
from gantrymq.message.model import MessageExt

ALL, FAILED, SLOW = "all", "failed", "slow"


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """place: where it was told, which names the row. at_ms: by the client's clock, else when it was stored."""

    place: str
    kind: TraceKind
    msg_id: str
    at_ms: int
    group: str
    topic: str
    keys: str
    took_ms: int
    outcome: str
    is_bad: bool
    client_host: str

    @property
    def what(self) -> str:
        """In words, in the language of the request."""
        if self.kind is TraceKind.PUB:
            return gettext("Sent")
        return gettext("Handled") if self.kind is TraceKind.SUB_AFTER else gettext("Transaction ended")

    @property
    def took(self) -> str:
        return units.milliseconds(self.took_ms)


@dataclass(frozen=True, slots=True)
class TraceWish:
    """What is asked for; an empty text asks for nothing. text: a message's id or one of its keys."""

    text: str = ""
    topic: str = ""
    group: str = ""
    which: str = ALL
    slow_ms: int = 1000

    def has(self, event: TraceEvent) -> bool:
        """Whether it fits, but for the topic."""
        if self.text and self.text != event.msg_id and self.text not in event.keys.split():
            return False
        if self.group and self.group != event.group:
            return False
        if self.which == FAILED:
            return event.is_bad
        return self.which != SLOW or event.took_ms >= self.slow_ms


def events_of(message: MessageExt) -> Iterator[TraceEvent]:
    """The events that a message of the trace topic carries, the newest first."""
    host = message.born_host[0]
    place = f"{message.broker_name}.{message.queue_id}.{message.queue_offset}"
    records = decode_records(bytes(message.body).decode(errors="replace"))
    topics = topics_of(records)
    events = [
        _event(record, f"{place}.{number}", topics, message.store_timestamp, host)
        for number, record in enumerate(records)
        if record.kind is not TraceKind.SUB_BEFORE
    ]
    return iter(sorted(events, key=lambda event: -event.at_ms))


def topics_of(records: list[TraceRecord]) -> dict[str, str]:
    """Of each message whose sender told, by its id."""
    return {record.msg_id: record.topic for record in records if record.topic}


def _event(record: TraceRecord, place: str, topics: Mapping[str, str], stored_ms: int, host: str) -> TraceEvent:
    outcome = "" if record.is_success else "failed"
    is_bad = not record.is_success
    if record.kind is TraceKind.SUB_AFTER:
        outcome = outcome_of(record)
    if record.kind is TraceKind.END_TRANSACTION:
        outcome = record.transaction_state.removesuffix("_MESSAGE").lower()
        is_bad = outcome == "rollback"
    return TraceEvent(
        place, record.kind, record.msg_id, record.time_ms or stored_ms, record.group,
        record.topic or topics.get(record.msg_id, ""), record.keys or "", record.cost_ms, outcome, is_bad, host,
    )  # fmt: skip
