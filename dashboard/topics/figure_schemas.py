"""What REST tells of topics beside their settings: who reads and writes them, and their bytes."""

from __future__ import annotations

from collections.abc import Mapping

from ninja import Field, Schema

from dashboard.cluster.values import TopicSummary
from dashboard.rest.values import FromSeconds, Out
from dashboard.status.readers import Readers
from dashboard.topics.topic_cache import TopicFacts


class ProducerOut(Out):
    """A connected client that sent one of the topic's newest messages. name: its client id, or its address."""

    name: str
    language: str
    groups: list[str]
    addresses: list[str]
    brokers: list[str]
    last_stored_at: FromSeconds


class TopicFiguresOut(Schema):
    """What was seen of a topic in turn, some seconds ago. Null is not known.

    size_bytes: what the messages that can be read take in the brokers' logs; not exact while some are not counted yet.
    """

    out_rate: float | None = Field(None, description="messages per second that its groups consume together")
    groups: int | None = Field(None, description="consumer groups that have offsets in it")
    worst_lag: int | None = None
    worst_group: str | None = None
    size_bytes: int | None = None
    size_is_exact: bool | None = None
    producers: list[ProducerOut] | None = None

    @classmethod
    def of(cls, row: TopicSummary, readers: Mapping[str, Readers], facts: TopicFacts) -> TopicFiguresOut:
        read = readers.get(row.name)
        return cls(
            out_rate=read.out_rate if read else None,
            groups=read.groups if read else None,
            worst_lag=read.lag if read else None,
            worst_group=read.group if read else None,
            size_bytes=facts.size_bytes,
            size_is_exact=None if facts.size_bytes is None else facts.is_exact,
            producers=[ProducerOut.of(sender) for sender in facts.senders] if facts.at else None,
        )
