"""Messages as applications see them."""

from __future__ import annotations

from gantrymq.message.model import Message, MessageQueue
from tests.message.test_record import MESSAGE


def test_keys_tags_and_delay_become_properties() -> None:
    message = Message("T", b"", tags="A", keys=["k1", "k2"], properties={"colour": "red"}, delay_level=3)
    assert message.encoded_properties() == "colour\x01red\x02KEYS\x01k1 k2\x02TAGS\x01A\x02DELAY\x013"
    assert Message("T", b"", keys="one").encoded_properties() == "KEYS\x01one"


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
