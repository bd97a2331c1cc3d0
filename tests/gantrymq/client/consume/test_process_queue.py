"""The group's offset is the smallest one not done with. What is polled next."""

from __future__ import annotations

import random

from gantrymq.client.consume.options import FlowLimits
from gantrymq.client.consume.polled_messages import PolledMessages
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.message.model import MessageQueue
from tests.gantrymq.client.messages import stored

QUEUE = MessageQueue("T", "b", 0)


def filled(*offsets: int, next_offset: int) -> ProcessQueue:
    process_queue = ProcessQueue(QUEUE, offsets[0])
    process_queue.add([stored(offset) for offset in offsets], next_offset)
    return process_queue


def test_an_empty_queue_commits_where_the_next_pull_begins() -> None:
    assert ProcessQueue(QUEUE, 7).commit_offset == 7


def test_messages_done_with_out_of_order_wait_for_the_first() -> None:
    process_queue = filled(5, 6, 7, next_offset=8)
    process_queue.remove([stored(6), stored(7)])
    assert process_queue.commit_offset == 5
    process_queue.remove([stored(5)])
    assert process_queue.commit_offset == 8


def test_offsets_that_were_filtered_away_count_as_done() -> None:
    process_queue = filled(5, 9, next_offset=20)
    process_queue.remove([stored(5)])
    assert process_queue.commit_offset == 9
    process_queue.remove([stored(9)])
    assert process_queue.commit_offset == 20


def test_the_commit_offset_never_passes_an_unfinished_message_in_any_order() -> None:
    order = list(range(50))
    random.Random(7).shuffle(order)
    process_queue = filled(*range(50), next_offset=50)
    left = set(order)
    for offset in order:
        process_queue.remove([stored(offset)])
        left.discard(offset)
        assert process_queue.commit_offset == (min(left) if left else 50)


def test_counts_and_bytes_follow_what_is_held() -> None:
    process_queue = filled(1, 2, next_offset=3)
    assert (process_queue.cached_messages, process_queue.cached_bytes, process_queue.span) == (2, 8, 1)
    process_queue.remove([stored(1)])
    process_queue.remove([stored(1)])
    assert (process_queue.cached_messages, process_queue.cached_bytes, process_queue.span) == (1, 4, 0)


def test_a_message_that_was_given_another_body_counts_as_it_came() -> None:
    process_queue = ProcessQueue(QUEUE, 1)
    message = stored(1, b"packed")
    process_queue.add([message, stored(2, b"two")], 3)
    message.body = b"unpacked and longer"
    process_queue.remove([message])
    assert process_queue.cached_bytes == 3
    process_queue.add([stored(2, b"again")], 3)
    assert process_queue.cached_bytes == 5


def test_messages_a_listener_holds_too_long_are_overdue() -> None:
    process_queue = filled(1, 2, 3, next_offset=4)
    process_queue.begin([stored(1)], now=100.0)
    process_queue.begin([stored(2)], now=200.0)
    assert [message.queue_offset for message in process_queue.overdue(150.0)] == [1]
    process_queue.remove([stored(1)])
    assert process_queue.overdue(150.0) == []


def test_a_message_that_was_sent_back_is_not_overdue_again() -> None:
    process_queue = filled(1, 2, next_offset=3)
    process_queue.remove([stored(1)])
    process_queue.begin([stored(1), stored(2)], now=100.0)
    assert [message.queue_offset for message in process_queue.overdue(150.0)] == [2]


def test_a_dropped_queue_holds_nothing_any_more() -> None:
    process_queue = filled(1, next_offset=2)
    assert process_queue.holds(stored(1))
    process_queue.drop()
    assert process_queue.was_dropped()
    assert not process_queue.holds(stored(1))


def test_pulling_pauses_at_each_limit() -> None:
    limits = FlowLimits(messages_per_queue=3, bytes_per_consumer=100, span_per_queue=10)
    assert limits.allow(filled(1, 2, next_offset=3), 1)
    assert not limits.allow(filled(1, 2, 3, next_offset=4), 1)
    assert not limits.allow(filled(1, 2, next_offset=3), 50)  # the bytes are shared by all queues
    assert not limits.allow(filled(1, 12, next_offset=13), 1)
    assert limits.allow(ProcessQueue(QUEUE, 1), 101), "a queue could never be read"


def test_the_limits_of_a_topic_are_shared_by_its_queues() -> None:
    limits = FlowLimits(messages_per_topic=8)
    assert limits.allow(filled(1, next_offset=2), 100, 4)
    assert not limits.allow(filled(1, 2, next_offset=3), 100, 4)
    assert limits.allow(ProcessQueue(QUEUE, 1), 100, 100), "a queue could never be read"
    held = filled(1, next_offset=2)
    assert not FlowLimits(bytes_per_topic=4 * held.cached_bytes).allow(held, 100, 4)
    assert FlowLimits(bytes_per_topic=4 * held.cached_bytes + 4).allow(held, 100, 4)


def test_what_the_last_call_under_a_lost_lock_did_does_not_come_again() -> None:
    former = filled(5, 6, 7, next_offset=8)
    former.is_leaving = True
    with former.in_use():
        again = ProcessQueue(QUEUE, 5, after=former)
        again.add([stored(offset) for offset in (5, 6, 7)], 8)
        assert again.must_wait() and again.commit_offset == 5
        former.remove([stored(5)])
    assert not again.must_wait()
    assert (again.commit_offset, again.cached_messages) == (6, 2)


ONE, OTHER = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


async def test_messages_of_a_paused_queue_keep_their_order() -> None:
    polled, one, other = PolledMessages(batch_size=10), ProcessQueue(ONE, 0), ProcessQueue(OTHER, 0)
    for process_queue, offset in ((one, 1), (other, 7), (one, 2)):
        polled.add(process_queue, [stored(offset)])
    polled.paused.add(ONE)
    offsets = [await next_offset(polled)]
    polled.resume([ONE])
    offsets += [await next_offset(polled), await next_offset(polled)]
    assert offsets == [7, 1, 2]


async def next_offset(polled: PolledMessages) -> int:
    batch = await polled.next(0)
    assert batch is not None
    (message,) = batch.messages
    return message.queue_offset
