"""A topic's slot: `first` has the queues from 0 on, whatever comes and goes; puts find their queue by it or without."""

from __future__ import annotations

import random

from store import MessageStore
from store.queues.consume_queue import ConsumeQueue
from store.queues.descriptors import DescriptorCache
from store.queues.topic_slot import FIRST_MAX, TopicSlot
from tests.store.conftest import message


def queue(queue_id: int) -> ConsumeQueue:
    return ConsumeQueue("unused", "TopicA", queue_id, 200, DescriptorCache())


def expected_first(slot: TopicSlot) -> tuple[ConsumeQueue, ...]:
    first: list[ConsumeQueue] = []
    while len(first) < FIRST_MAX and len(first) in slot.queues:
        first.append(slot.queues[len(first)])
    return tuple(first)


def test_first_has_the_queues_from_0_on_whatever_comes_and_goes() -> None:
    for seed in range(50):
        rnd = random.Random(seed)
        slot = TopicSlot("TopicA")
        for _ in range(100):
            queue_id = rnd.choice((-1, 0, 1, 2, 3, 4, 5, 70, 0x7FFFFFFF))
            if queue_id in slot.queues:
                slot.drop(slot.queues[queue_id])
            else:
                slot.add(queue(queue_id))
            assert slot.first == expected_first(slot)


def test_first_is_bounded() -> None:
    slot = TopicSlot("TopicA")
    for queue_id in reversed(range(FIRST_MAX + 10)):
        slot.add(queue(queue_id))
    assert slot.first == expected_first(slot)
    assert len(slot.first) == FIRST_MAX


def test_puts_find_their_queue_in_any_order_of_ids(store: MessageStore) -> None:
    ids = [3, 1, 0, 2, FIRST_MAX + 5, 0, 1, 2, 3, FIRST_MAX + 5]
    offsets = [store.put_message(message(b"x", queue_id=queue_id)).queue_offset for queue_id in ids]
    assert offsets == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
