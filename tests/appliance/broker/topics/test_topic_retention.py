"""A topic's own retention: what is older, or beyond the number, can't be read; other topics are not touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.broker.topics import topic_retention
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.broker.topics.topic_retention import TopicRetention
from appliance.settings.roles import BrokerConfig
from gantrymq import AdminClient, Message, Producer
from gantrymq.errors import ResponseError
from gantrymq.message.ids import encode_host
from gantrymq.remoting.admin_bodies import TopicConfig
from store.base.config import MessageStoreConfig
from store.base.results import GetMessageStatus, PutMessageStatus, StoreMessage
from store.upkeep.steady_clock import SteadyClock
from tests.harness import SMALL_STORE, serving
from tests.store.conftest import opened
from tests.waiting import until

HOST = encode_host("127.0.0.1", 10911)


class Clock:
    """now: the time as it is. ahead_s: how wrong the clock is."""

    def __init__(self) -> None:
        self.now, self.ahead_s = 1_800_000_000.0, 0.0

    def __call__(self) -> float:
        return self.now + self.ahead_s

    def steady(self) -> SteadyClock:
        return SteadyClock(clock=self, uptime=lambda: self.now)


class Kept:
    """A store, its topics, and their retention."""

    def __init__(self, root: Path) -> None:
        self.root, self.clock = root, Clock()
        self.topics = TopicConfigManager(root / "topics.json", BrokerConfig())
        self.start()

    def start(self) -> None:
        self.store = opened(MessageStoreConfig(root=self.root / "store", **SMALL_STORE), clock=self.clock)
        self.retention = TopicRetention(self.store, self.topics, clock=self.clock.steady())

    def topic(self, name: str, **attributes: str) -> None:
        chosen = {key.replace("_", "."): value for key, value in attributes.items()}
        self.topics.update(TopicConfig(name, attributes=chosen or None))

    def send(self, topic: str, count: int, every_s: float = 1.0) -> None:
        for _ in range(count):
            self.clock.now += every_s
            put = self.store.put_message(StoreMessage(topic, 0, b"x", b"KEYS\x01k", 0, 0, 1, HOST, HOST))
            assert put.status is PutMessageStatus.PUT_OK


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path)
    yield kept
    kept.store.close()


async def test_what_is_older_can_not_be_read_and_readers_are_moved(kept: Kept) -> None:
    kept.topic("orders", retention_ms="10000")
    kept.topic("other")
    kept.send("orders", 30)
    kept.send("other", 3, every_s=0)
    await kept.retention.apply()
    assert kept.store.min_offset("orders", 0) == 19, "10 s and the one that is just as old"
    found = kept.store.get_message("g", "orders", 0, 5, 32, None)
    assert (found.status, found.next_begin_offset) == (GetMessageStatus.OFFSET_TOO_SMALL, 19)
    assert kept.store.get_message("g", "orders", 0, 19, 32, None).message_count == 11
    assert kept.store.offset_by_time("orders", 0, 0) == 19
    assert kept.store.min_offset("other", 0) == 0
    kept.clock.now += 60
    await kept.retention.apply()
    assert kept.store.min_offset("orders", 0) == kept.store.max_offset("orders", 0) == 30
    assert kept.store.get_message("g", "orders", 0, 30, 32, None).status is GetMessageStatus.OFFSET_OVERFLOW_ONE
    kept.send("orders", 1)
    await kept.retention.apply()
    assert kept.store.get_message("g", "orders", 0, 30, 32, None).message_count == 1


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1000])
async def test_the_first_kept_is_found_wherever_it_is(kept: Kept, count: int) -> None:
    kept.send("orders", count)
    end = kept.clock.now
    for keep_s in sorted({0, 1, count // 3, count // 2, count - 1, count, count + 5}, reverse=True):
        kept.topic("orders", retention_ms=str(keep_s * 1000))
        await kept.retention.apply()
        assert kept.store.min_offset("orders", 0) == max(count - keep_s - 1, 0)
    kept.clock.now = end + 0.001
    await kept.retention.apply()
    assert kept.store.min_offset("orders", 0) == count


async def test_only_the_newest_are_kept(kept: Kept) -> None:
    kept.topic("orders", retention_messages="4")
    kept.send("orders", 3)
    await kept.retention.apply()
    assert kept.store.min_offset("orders", 0) == 0
    kept.send("orders", 7)
    await kept.retention.apply()
    assert kept.store.min_offset("orders", 0) == 6
    assert kept.retention.expired == 6


async def test_cleaning_the_log_does_not_bring_them_back(kept: Kept) -> None:
    kept.topic("orders", retention_messages="4")
    kept.send("orders", 10)
    await kept.retention.apply()
    queue = kept.store.parts.queues.find("orders", 0)
    assert queue is not None
    for min_physical_offset in (0, 1, 500):
        queue.correct_min(min_physical_offset)
        assert queue.min_index == 6
    queue.correct_min(1 << 40)
    assert queue.min_index == 10


async def test_after_a_restart_the_first_look_hides_them_again(kept: Kept) -> None:
    kept.topic("orders", retention_ms="10000")
    kept.send("orders", 30)
    kept.store.close()
    kept.start()
    assert kept.store.min_offset("orders", 0) == 0
    await kept.retention.apply()
    assert kept.store.min_offset("orders", 0) == 19


async def test_a_clock_that_was_ahead_for_a_while_hides_nothing(kept: Kept) -> None:
    kept.topic("orders", retention_ms="10000000")
    kept.send("orders", 5)
    kept.clock.ahead_s = 86_400
    for _ in range(3):
        await kept.retention.apply()
        kept.clock.now += 1000
    assert kept.store.min_offset("orders", 0) == 0
    kept.clock.ahead_s = 0
    kept.clock.now += 7000
    await kept.retention.apply()
    assert kept.store.min_offset("orders", 0) == 4, "what is older by the right time goes as ever"


@pytest.mark.parametrize("messages_max", [None, "2"])
async def test_what_was_hidden_while_the_clock_was_ahead_can_be_read_again(
    kept: Kept, messages_max: str | None
) -> None:
    kept.topic("orders", retention_ms="100000000", **({"retention_messages": messages_max} if messages_max else {}))
    kept.topic("few", retention_messages="1")
    kept.send("orders", 5)
    kept.send("few", 3)
    kept.clock.ahead_s = 2e8
    for _ in range(2):
        await kept.retention.apply()
        kept.clock.now += 3600
    await kept.retention.apply()
    assert kept.store.min_offset("orders", 0) == 5, "a clock that stays ahead is believed"
    kept.clock.ahead_s = 0
    for _ in range(2):
        await kept.retention.apply()
        assert kept.store.min_offset("orders", 0) == (3 if messages_max else 0)
        assert kept.store.min_offset("few", 0) == 2
    assert kept.store.get_message("g", "orders", 0, 3, 32, None).message_count == 2


async def test_tools_set_it_see_it_and_take_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_retention, "CHECK_INTERVAL_S", 0.1)
    async with serving(tmp_path) as cluster, AdminClient(cluster.namesrv_address) as admin:
        address = cluster.broker_address
        await admin.topics.create_at(address, TopicConfig("orders", 1, 1, attributes={"retention.messages": "2"}))
        await admin.topics.create_at(address, TopicConfig("orders", 1, 1, attributes={"retention.ms": "3600000"}))
        config = (await admin.topics.configs_at(address)).topic_config_table["orders"]
        assert config.attributes == {"retention.messages": "2", "retention.ms": "3600000"}
        async with Producer(cluster.namesrv_address) as producer:
            for _ in range(5):
                await producer.send(Message("orders", b"x"))
        await until(lambda: cluster.broker.store.min_offset("orders", 0) == 3)  # of itself
        (extent,) = (await admin.topics.stats_at(address, "orders")).offset_table.values()
        assert (extent.min_offset, extent.max_offset) == (3, 5)
        await admin.topics.create_at(address, TopicConfig("orders", 1, 1, attributes={"-retention.messages": ""}))
        config = (await admin.topics.configs_at(address)).topic_config_table["orders"]
        assert config.attributes == {"retention.ms": "3600000"}
        with pytest.raises(ResponseError, match="use a whole number"):
            await admin.topics.create_at(address, TopicConfig("orders", 1, 1, attributes={"retention.ms": "a day"}))
    async with serving(tmp_path) as cluster:
        again = cluster.broker.topics.get("orders")
        assert again is not None
        assert again.attributes == {"retention.ms": "3600000"}
