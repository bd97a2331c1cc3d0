"""What topics take in the log, and who sends to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.broker.topics import topic_figures
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.broker.topics.topic_figures import TopicFigureBook, TopicFigures
from appliance.settings.roles import BrokerConfig
from gantrymq import AdminClient, Message, Producer
from gantrymq.errors import ResponseError
from gantrymq.message.ids import encode_host
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.codes import ResponseCode
from store.base.config import MessageStoreConfig
from store.base.results import PutMessageStatus, StoreMessage
from tests.harness import SMALL_STORE, serving
from tests.store.conftest import opened

HOST = encode_host("127.0.0.1", 10911)


class Kept:
    """A store, its topics and their figures. sizes: what each topic's messages take, as the store said."""

    def __init__(self, root: Path) -> None:
        self.topics = TopicConfigManager(root / "topics.json", BrokerConfig())
        self.store = opened(MessageStoreConfig(root=root / "store", **SMALL_STORE))
        self.book = TopicFigureBook(self.store, self.topics)
        self.sizes: dict[str, int] = {}

    def send(self, topic: str, count: int, *, port: int = 1, queue_id: int = 0) -> None:
        if self.topics.get(topic) is None:
            self.topics.update(TopicConfig(topic))
        for number in range(count):
            host = encode_host("10.0.0.1", port)
            body = b"x" * (number * 37 % 900)
            put = self.store.put_message(StoreMessage(topic, queue_id, body, b"", 0, 0, 1_800_000_000_000, host, HOST))
            assert put.status is PutMessageStatus.PUT_OK
            self.sizes[topic] = self.sizes.get(topic, 0) + put.size_bytes

    def look(self, *names: str) -> dict[str, TopicFigures]:
        return {one.name: one for one in self.book.look(names or self.book.page_after(""))}


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.store.close()


def test_the_size_is_the_sum_of_the_records_of_all_queues(kept: Kept) -> None:
    kept.send("a", 60)
    kept.send("a", 11, queue_id=3)
    kept.send("b", 5)
    found = kept.look("a", "b")
    assert {name: one.size_bytes for name, one in found.items()} == kept.sizes
    assert (found["a"].messages, found["a"].counted) == (71, 71)
    kept.send("a", 7)
    assert kept.look("a")["a"].size_bytes == kept.sizes["a"]


def test_a_look_ends_when_it_has_read_enough_and_the_next_goes_on(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_figures, "UNITS_A_LOOK", 30)
    monkeypatch.setattr(topic_figures, "UNITS_OF_A_TOPIC", 20)
    kept.send("a", 50)
    kept.send("b", 50)
    kept.send("c", 1)
    first = kept.look("a", "b", "c")
    assert {name: one.counted for name, one in first.items()} == {"a": 20, "b": 10}
    for _ in range(6):
        last = kept.look("a") | kept.look("b") | kept.look("c")
    assert {name: one.size_bytes for name, one in last.items()} == kept.sizes


def test_what_expired_counts_no_more(kept: Kept) -> None:
    kept.send("a", 40)
    assert kept.look("a")["a"].counted == 40
    queue = kept.store.parts.queues.find("a", 0)
    assert queue is not None
    queue.min_index = 15
    units, gone = kept.store.size_of_units("a", 0, 0, 15)
    assert units == 15
    told = kept.look("a")["a"]
    assert (told.messages, told.counted, told.size_bytes) == (25, 25, kept.sizes["a"] - gone)


def test_a_topic_that_is_made_again_is_counted_anew(kept: Kept) -> None:
    kept.send("a", 40)
    kept.look("a")
    kept.store.delete_topic("a")
    kept.book.forget("a")
    kept.sizes.clear()
    kept.send("a", 60)
    assert kept.look("a")["a"].size_bytes == kept.sizes["a"]


def test_senders_of_the_newest_messages_are_told(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_figures, "SENDERS_MAX", 3)
    kept.send("a", 1, port=1)
    assert list(kept.look("a")["a"].senders) == ["10.0.0.1:1"]
    for port in (2, 3, 4):
        kept.send("a", 2, port=port)
    told = kept.look("a")["a"].senders
    assert len(told) == 3 and "10.0.0.1:4" in told
    assert all(stored > 0 for stored in told.values())


async def test_a_broker_tells_pages_of_topics_with_connected_producers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_figures, "TOPICS_A_LOOK", 3)
    async with (
        serving(tmp_path) as cluster,
        AdminClient(cluster.namesrv_address) as admin,
        Producer(cluster.namesrv_address, group="orders-app") as producer,
    ):
        for name in ("first", "second"):
            await producer.send(Message(name, body=b"hello"))
        told = await admin.topics.figures_at(cluster.broker_address, "second")
        assert (told.messages, told.is_exact) == (1, True)
        assert told.size_bytes is not None and told.size_bytes > 91
        [sender] = told.producers
        assert sender.groups == ["orders-app"] and sender.language == "PYTHON"
        found, after = [], ""
        while True:
            page = await admin.topics.figures_page_at(cluster.broker_address, after)
            assert len(page.topics) <= 3
            found += [one.topic for one in page.topics]
            after = page.next
            if not after:
                break
        assert found == sorted(set(found)) and {"first", "second"} <= set(found)
        with pytest.raises(ResponseError) as refused:
            await admin.topics.figures_at(cluster.broker_address, "nowhere")
        assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST
