"""What a waiting message becomes: as it was sent, or stored anew; and what is none is not delivered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.broker.timer.delivery import delivered, rolled
from gantrymq.errors import RecordError
from gantrymq.message.ids import encode_host
from gantrymq.message.properties import PROPERTIES_BYTES_MAX, decode_properties, encode_properties
from gantrymq.message.topics import TIMER_TOPIC, TRANS_HALF_TOPIC
from store.base.config import MessageStoreConfig
from store.base.results import PutMessageStatus, StoreMessage
from store.message_store import MessageStore
from tests.harness import SMALL_STORE
from tests.store.conftest import opened

HOST = encode_host("127.0.0.1", 10911)
DUE_MS = 1_800_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    store = opened(MessageStoreConfig(root=tmp_path / "store", **SMALL_STORE))
    yield store
    store.close()


def waiting(store: MessageStore, topic: str = TIMER_TOPIC, **properties: str) -> int:
    """Store a message as it waits; returns where it lies."""
    text = encode_properties({"TIMER_OUT_MS": str(DUE_MS), "REAL_TOPIC": "orders", "REAL_QID": "3", **properties})
    put = store.put_message(StoreMessage(topic, 0, b"m", text.encode(), 7, 0, 1, HOST, HOST), delay=False)
    assert put.status is PutMessageStatus.PUT_OK
    return put.physical_offset


def test_what_was_sent_is_delivered_with_its_times(store: MessageStore) -> None:
    message = delivered(store, waiting(store, KEYS="k"), 0, DUE_MS, DUE_MS + 5)
    assert (message.topic, message.queue_id, bytes(message.body), message.flag) == ("orders", 3, b"m", 7)
    properties = decode_properties(message.properties)
    assert properties.pop("TIMER_ENQUEUE_MS").isdigit()
    assert properties == {"KEYS": "k", "TIMER_OUT_MS": str(DUE_MS), "TIMER_DEQUEUE_MS": str(DUE_MS + 5)}


@pytest.mark.parametrize(("queue_offset", "due_ms"), [(1, DUE_MS), (0, DUE_MS + 1)])
def test_another_message_at_that_place_is_not_delivered(store: MessageStore, queue_offset: int, due_ms: int) -> None:
    with pytest.raises(RecordError, match="another message is there"):
        delivered(store, waiting(store), queue_offset, due_ms, DUE_MS)


@pytest.mark.parametrize("topic", [TIMER_TOPIC, TRANS_HALF_TOPIC])
def test_a_topic_of_the_brokers_own_is_none_to_deliver_to(store: MessageStore, topic: str) -> None:
    with pytest.raises(RecordError, match="not a topic to deliver to"):
        delivered(store, waiting(store, REAL_TOPIC=topic), 0, DUE_MS, DUE_MS)


@pytest.mark.parametrize("queue_id", ["", "x", "-1"])
def test_a_queue_that_is_none_is_refused(store: MessageStore, queue_id: str) -> None:
    with pytest.raises(RecordError, match="is missing"):
        delivered(store, waiting(store, REAL_QID=queue_id), 0, DUE_MS, DUE_MS)


def test_a_message_of_another_topic_is_neither_delivered_nor_stored_anew(store: MessageStore) -> None:
    place = waiting(store, "orders")
    with pytest.raises(RecordError, match="a record of topic"):
        delivered(store, place, 0, DUE_MS, DUE_MS)
    with pytest.raises(RecordError, match="a record of topic"):
        rolled(store, place)
    with pytest.raises(RecordError, match="gone"):
        rolled(store, 1 << 40)


def test_how_often_a_message_was_stored_anew_is_counted(store: MessageStore) -> None:
    place = waiting(store)
    for count in ("1", "2", "3"):
        message = rolled(store, place)
        assert (message.topic, message.queue_id) == (TIMER_TOPIC, 0)
        properties = decode_properties(message.properties)
        assert properties.pop("TIMER_ROLL_TIMES") == count
        assert properties == {"TIMER_OUT_MS": str(DUE_MS), "REAL_TOPIC": "orders", "REAL_QID": "3"}
        place = store.put_message(message, delay=False).physical_offset


def test_notes_that_do_not_fit_any_more_are_left_out(store: MessageStore) -> None:
    known = len(encode_properties({"TIMER_OUT_MS": str(DUE_MS), "REAL_TOPIC": "orders", "REAL_QID": "3", "pad": ""}))
    pad = "x" * (PROPERTIES_BYTES_MAX - known - 1)
    place = waiting(store, pad=pad)
    properties = decode_properties(delivered(store, place, 0, DUE_MS, DUE_MS).properties)
    assert sorted(properties) == ["TIMER_OUT_MS", "pad"]
    assert len(properties["pad"]) == len(pad)
    again = rolled(store, place)
    assert "TIMER_ROLL_TIMES" not in decode_properties(again.properties)
    assert store.put_message(again, delay=False).status is PutMessageStatus.PUT_OK
