"""Messages as applications see them. RocketMQ's delay levels."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gantrymq.message.delay_levels import DELAYS_S, level_of
from gantrymq.message.model import Message, MessageQueue
from tests.gantrymq.message.example import MESSAGE


def test_keys_tags_and_delay_become_properties() -> None:
    message = Message("T", b"", tags="A", keys=["k1", "k2"], properties={"colour": "red"}, delay_level=3)
    assert message.encoded_properties() == "colour\x01red\x02KEYS\x01k1 k2\x02TAGS\x01A\x02DELAY\x013"
    assert Message("T", b"", keys="one").encoded_properties() == "KEYS\x01one"


def test_a_time_to_deliver_becomes_rocketmq_5s_property() -> None:
    assert Message("T", b"", delay_seconds=1.5).encoded_properties() == "TIMER_DELAY_MS\x011500"
    moment = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert Message("T", b"", deliver_at=moment).encoded_properties() == "TIMER_DELIVER_MS\x011795262400000"
    assert Message("T", b"", deliver_at=1795262400.25).encoded_properties() == "TIMER_DELIVER_MS\x011795262400250"
    both = Message("T", b"", delay_seconds=1, deliver_at=2.0)
    assert both.encoded_properties() == "TIMER_DELAY_MS\x011000"
    with pytest.raises(ValueError, match="time zone"):
        Message("T", b"", deliver_at=datetime(2026, 11, 21, 12)).encoded_properties()


def test_a_message_says_if_it_is_delayed() -> None:
    assert not Message("T", b"").is_delayed
    assert Message("T", b"", delay_level=1).is_delayed
    assert Message("T", b"", delay_seconds=0.1).is_delayed
    assert Message("T", b"", properties={"TIMER_DELAY_SEC": "1"}).is_delayed


def test_the_id_is_the_unique_key_where_there_is_one() -> None:
    assert MESSAGE.msg_id == MESSAGE.offset_msg_id == "0A00000200002A9F0000000000001000"
    MESSAGE.properties["UNIQ_KEY"] = "ABC"
    try:
        assert MESSAGE.msg_id == "ABC"
    finally:
        del MESSAGE.properties["UNIQ_KEY"]
    assert MESSAGE.keys == ["k1", "k2"]


def test_queues_sort_by_topic_broker_and_number() -> None:
    queues = [
        MessageQueue("b", "x", 0),
        MessageQueue("a", "y", 1),
        MessageQueue("a", "x", 10),
        MessageQueue("a", "x", 2),
    ]
    assert sorted(queues) == [queues[3], queues[2], queues[1], queues[0]]


def test_the_next_longer_delay_of_the_broker_is_taken() -> None:
    assert len(DELAYS_S) == 18
    assert [level_of(delay_s) for delay_s in (0, 1, 1.1, 5, 60, 61, 600, 601, 7200, 9999)] == [
        1, 1, 2, 2, 5, 6, 14, 15, 18, 18,
    ]  # fmt: skip
