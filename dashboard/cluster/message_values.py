"""A message as one line of a table: the texts a row shows, and its place as a stable key."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.cluster import units
from dashboard.messages.bodies.body_view import preview
from gantrymq.client.results import LostMessage
from gantrymq.message.model import MessageExt

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class MessageLine:
    """What a row shows. place: "broker.queue.offset", which finds the message again.

    damage: why it can't be read; then all else but the place is empty, and stored_ms is that of a message beside it.
    """

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
    damage: str = ""

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

    @classmethod
    def of_damaged(cls, lost: LostMessage, stored_ms: int) -> MessageLine:
        queue, offset = lost.queue, lost.queue_offset
        place = f"{queue.broker_name}.{queue.queue_id}.{offset}"
        return cls(place, queue.broker_name, queue.queue_id, offset, False, "", (), "", "", "", stored_ms, 0, str(lost))


def with_damaged(lines: Iterable[MessageLine], damaged: Iterable[LostMessage]) -> list[MessageLine]:
    """Lines, newest first, with those of damaged messages among them: each beside its neighbour in its queue."""
    shown = list(lines)
    for lost in sorted(damaged, key=lambda each: each.queue_offset):
        of_queue = [at for at, line in enumerate(shown) if _is_of_queue(line, lost)]
        older = [at for at in of_queue if shown[at].queue_offset < lost.queue_offset]
        at = older[0] if older else of_queue[-1] + 1 if of_queue else len(shown)
        shown.insert(at, MessageLine.of_damaged(lost, _stored_beside(shown, at, of_queue)))
    return shown


def _is_of_queue(line: MessageLine, lost: LostMessage) -> bool:
    return (line.broker_name, line.queue_id) == (lost.queue.broker_name, lost.queue.queue_id)


def _stored_beside(lines: Sequence[MessageLine], at: int, of_queue: Sequence[int]) -> int:
    """When the nearest one of the queue was stored; 0: it has no other here."""
    return lines[min(of_queue, key=lambda other: abs(other - at))].stored_ms if of_queue else 0


def read_place(text: str) -> tuple[str, int, int] | None:
    """(broker name, queue id, queue offset) of a place, None when it is none."""
    parts = text.rsplit(".", 2)
    if len(parts) != 3 or not parts[0] or not all(part.isdecimal() and len(part) < 20 for part in parts[1:]):
        return None
    return parts[0], int(parts[1]), int(parts[2])
