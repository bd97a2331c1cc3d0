"""What must hold between messages acknowledged and messages consumed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from tests.interop.clients import Got, Sent

TAGS = ("TagA", "TagB", "TagC")  # message n has tag n modulo 3


def tag_of(number: int) -> str:
    return TAGS[number % len(TAGS)]


def check_contents(messages: Sequence[Got]) -> None:
    """Tag, key and body are what was sent under that number."""
    for message in messages:
        expected = (tag_of(message.number), f"key-{message.number}", f"body-{message.number}-ä消息")
        assert (message.tag, message.keys, message.body) == expected


def check_places(sent: Sequence[Sent], messages: Sequence[Got]) -> None:
    """Every message was consumed from the queue and at the offset that its answer told."""
    places = {message.number: (message.queue_id, message.queue_offset) for message in sent}
    for message in messages:
        assert (message.queue_id, message.queue_offset) == places[message.number]


def check_order(messages: Sequence[Got]) -> None:
    """Within each queue, numbers and offsets arrived rising, offsets without a gap."""
    queues: dict[int, list[Got]] = defaultdict(list)
    for message in messages:
        queues[message.queue_id].append(message)
    for queue_id, arrived in queues.items():
        numbers = [message.number for message in arrived]
        assert numbers == sorted(numbers), f"queue {queue_id} is out of order"
        assert [message.queue_offset for message in arrived] == list(range(len(arrived)))


def repeated(messages: Sequence[Got]) -> int:
    """How many messages arrived more than once."""
    return sum(count > 1 for count in Counter(message.number for message in messages).values())
