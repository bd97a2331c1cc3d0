"""What the store asks a filter that looks into messages (SQL92), beside tags, which stand in the consume queue."""

from __future__ import annotations

from typing import Protocol

from store.queues.consume_queue_ext import ExtUnit


class ContentFilter(Protocol):
    """Made by the broker for one read. Must not raise."""

    @property
    def records_max(self) -> int:
        """How many records one read may look into: the loop waits meanwhile."""

    def may_match(self, extended: ExtUnit) -> bool:
        """Whether the message can match, as far as its unit in the queue's extension tells."""

    def matches(self, properties: bytes) -> bool:
        """Whether a message with these encoded properties is wanted."""
