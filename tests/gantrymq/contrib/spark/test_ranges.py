"""Ranges of queues: shares of a batch, cuts for tasks, what is told of a loss."""

from __future__ import annotations

from gantrymq.contrib.spark.ranges import Lost, Queue, QueueRange, cut, limited, messages_lost, ranges_between

A, B = Queue("orders", "broker-a", 0), Queue("orders", "broker-a", 1)


def test_a_batch_takes_its_share_of_each_queue() -> None:
    assert limited({A: 0, B: 0}, {A: 900, B: 100}, 100) == {A: 90, B: 10}
    assert limited({A: 10, B: 5}, {A: 20, B: 6}, 100) == {A: 20, B: 6}


def test_a_batch_of_one_message_still_goes_on() -> None:
    ends = limited({A: 0, B: 0}, {A: 3, B: 3}, 1)
    assert sum(ends.values()) == 1


def test_a_queue_that_was_made_anew_goes_back() -> None:
    assert limited({A: 100, B: 0}, {A: 0, B: 50}, 10) == {A: 0, B: 10}


def test_a_range_is_cut_into_parts_that_are_whole_together() -> None:
    whole = [QueueRange(A, 5, 105), QueueRange(B, 0, 3)]
    parts = cut(whole, 8)
    assert len(parts) >= 8
    assert sorted(n for part in parts if part.queue == A for n in range(part.begin, part.end)) == [*range(5, 105)]
    assert [part for part in parts if part.queue == B] == [QueueRange(B, 0, 3)]
    assert cut(whole, 1) == whole
    assert len(cut([QueueRange(B, 0, 2)], 50)) == 2


def test_what_has_no_start_or_nothing_in_it_is_not_read() -> None:
    assert ranges_between({A: 3}, {A: 3, B: 9}) == []


def test_a_loss_is_told_by_topic_queue_and_offsets() -> None:
    text = str(messages_lost([Lost(QueueRange(A, 10, 20)), Lost(QueueRange(Queue("mail", "", 3), 0, 1))]))
    assert "topic orders, queue 0 of broker-a: offsets 10 to 19 (10 messages)" in text
    assert "topic mail, queue 3: offsets 0 to 0 (1 messages)" in text
    assert "failOnDataLoss=false" in text
