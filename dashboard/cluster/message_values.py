"""A message as one line of a table: the texts a row shows, and its place as a stable key."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dashboard.cluster import units
from dashboard.messages.bodies.body_view import preview
from gantrymq.message.model import MessageExt

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class MessageLine:
    """What a row shows. place: "broker.queue.offset", which finds the message again."""

    place: str
    broker_name: str
    queue_id: int
    queue_offset: int
    is_today: bool  # stored on this day of UTC
    tag: str
    keys: tuple[str, ...]
    size: str
    preview: str
    msg_id: str
    stored_ms: int
    size_bytes: int

    @classmethod
    def of(cls, message: MessageExt) -> MessageLine:
        stored_ms = message.store_timestamp
        return cls(
            place=f"{message.broker_name}.{message.queue_id}.{message.queue_offset}",
            broker_name=message.broker_name,
            queue_id=message.queue_id,
            queue_offset=message.queue_offset,
            is_today=stored_ms // DAY_MS == int(time.time() * 1000) // DAY_MS,
            tag=message.tags or "",
            keys=tuple(message.keys),
            size=units.size(len(message.body)),
            preview=preview(message),
            msg_id=message.msg_id,
            stored_ms=stored_ms,
            size_bytes=len(message.body),
        )


def read_place(text: str) -> tuple[str, int, int] | None:
    """(broker name, queue id, queue offset) of a place, None when it is none."""
    parts = text.rsplit(".", 2)
    if len(parts) != 3 or not parts[0] or not all(part.isdecimal() and len(part) < 20 for part in parts[1:]):
        return None
    return parts[0], int(parts[1]), int(parts[2])
