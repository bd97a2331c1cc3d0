"""What GantryMQ's brokers tell of topics beyond RocketMQ's requests: their bytes, and who sends to them (29405)."""

from __future__ import annotations

from dataclasses import dataclass, field

from gantrymq.remoting.json_body import Body, json_field, list_of


@dataclass
class TopicProducer(Body):
    """A connection that sent one of the topic's newest messages. client_id: "" for what sends no heartbeat.

    last_stored_at: when its newest message that was seen was stored, ms since the epoch.
    """

    address: str = ""
    client_id: str = ""
    language: str = ""
    groups: list[str] = field(default_factory=list)
    last_stored_at: int = 0


@dataclass
class TopicFigures(Body):
    """A topic at one broker. messages: that can be read; of counted_messages of them the size is known.

    A broker counts on with each request, so all are counted after some of them.
    """

    topic: str = ""
    messages: int = 0
    counted_messages: int = 0
    counted_bytes: int = 0
    producers: list[TopicProducer] = json_field(read=list_of(TopicProducer), default=list)

    @property
    def is_exact(self) -> bool:
        """Whether all messages are counted."""
        return self.counted_messages == self.messages

    @property
    def size_bytes(self) -> int | None:
        """What its messages take in the log; while not all are counted, what they take if the rest is like them."""
        if self.is_exact:
            return self.counted_bytes
        return self.counted_bytes * self.messages // self.counted_messages if self.counted_messages else None


@dataclass
class TopicFiguresPage(Body):
    """Some topics by name. next: what to ask for then; "": that was all."""

    topics: list[TopicFigures] = json_field(read=list_of(TopicFigures), default=list)
    next: str = ""
