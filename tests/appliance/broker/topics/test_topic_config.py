"""Topics: built in, created on send, kept in RocketMQ's file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.waiting import WITHIN_S

GOLDEN = Path(__file__).parents[1] / "golden_config" / "topics.json"


def manager(folder: Path, **settings: Any) -> TopicConfigManager:
    topics = TopicConfigManager(folder / "topics.json", BrokerConfig(**settings), clock=lambda: 1000.0)
    topics.load()
    return topics


@pytest.fixture
def topics(tmp_path: Path) -> TopicConfigManager:
    return manager(tmp_path)


def test_a_fresh_broker_has_rocketmqs_topics(topics: TopicConfigManager) -> None:
    assert {name: (config.write_queue_nums, config.perm) for name, config in topics.configs.items()} == {
        "SELF_TEST_TOPIC": (1, 6),
        "TBW102": (8, 7),
        "BenchmarkTest": (1024, 6),
        "DefaultCluster": (16, 7),
        "broker-a": (1, 7),
        "OFFSET_MOVED_EVENT": (1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 6),
        "DefaultCluster_REPLY_TOPIC": (1, 6),
    }
    assert all(topics.is_system_topic(name) for name in topics.configs)
    assert not topics.is_system_topic("orders")


def test_settings_shape_the_built_in_topics(tmp_path: Path) -> None:
    topics = manager(tmp_path, auto_create_topic_enable=False, trace_topic_enable=True)
    assert topics.get("TBW102") is None
    assert topics.configs["RMQ_SYS_TRACE_TOPIC"].write_queue_nums == 1


@pytest.mark.parametrize(("wanted", "queues"), [(4, 4), (16, 8), (0, 1), (-3, 1)])
def test_a_topic_created_on_send_is_bounded_by_its_template(
    topics: TopicConfigManager, wanted: int, queues: int
) -> None:
    told: list[TopicConfig | None] = []
    topics.announce_to(told.append)
    before = topics.data_version.counter
    created = topics.create_on_send("orders", "TBW102", wanted, "127.0.0.1:1")
    assert created == TopicConfig("orders", queues, queues, 6)
    assert topics.get("orders") == created
    assert told == [created]
    assert topics.data_version.counter == before + 1


def test_a_topic_is_created_once(topics: TopicConfigManager) -> None:
    first = topics.create_on_send("orders", "TBW102", 4, "")
    version = topics.data_version.counter
    assert topics.create_on_send("orders", "TBW102", 8, "") == first
    assert topics.create_on_send("orders", "nonsense", 8, "") == first
    assert topics.data_version.counter == version


@pytest.mark.parametrize("template", ["nonsense", "BenchmarkTest"])
def test_no_template_no_topic(tmp_path: Path, template: str) -> None:
    assert manager(tmp_path).create_on_send("orders", template, 4, "") is None


def test_automatic_creation_can_be_forbidden_even_if_the_file_knows_the_template(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_bytes(GOLDEN.read_bytes())
    assert manager(tmp_path, auto_create_topic_enable=False).create_on_send("orders", "TBW102", 4, "") is None


@pytest.mark.parametrize("name", ["", " ", "a b", "topic.name", "ü", "a" * 128, "a\n"])
def test_bad_names_are_refused(topics: TopicConfigManager, name: str) -> None:
    with pytest.raises(MessageRejected):
        topics.create_on_send(name, "TBW102", 4, "")
    with pytest.raises(MessageRejected):
        topics.update(TopicConfig(name))
    with pytest.raises(MessageRejected):
        topics.create_retry_topic(name, 1)
    assert name not in topics.configs


def test_topics_on_demand_have_one_queue(topics: TopicConfigManager) -> None:
    assert topics.create_retry_topic("%RETRY%g", 1).write_queue_nums == 1
    assert topics.create_dlq_topic("g") == TopicConfig("%DLQ%g", 1, 1, 6)
    assert topics.create_transaction_topic("RMQ_SYS_TRANS_HALF_TOPIC").write_queue_nums == 1
    assert topics.create_check_max_time_topic().write_queue_nums == 1


async def test_a_real_brokers_file_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_bytes(GOLDEN.read_bytes())
    topics = manager(tmp_path)
    golden = json.loads(GOLDEN.read_bytes())
    assert json.loads(await topics.body()) == golden
    topics.persist()
    assert path.read_bytes() == GOLDEN.read_bytes(), "nothing changed, so nothing is written"


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_bytes(GOLDEN.read_bytes())
    topics = manager(tmp_path)
    topics.update(TopicConfig("orders", 3, 5, 4, order=True))
    topics.delete("TopicTest")
    topics.persist()
    again = manager(tmp_path)
    assert again.configs == topics.configs
    assert again.data_version == topics.data_version
    assert again.configs["orders"] == TopicConfig("orders", 3, 5, 4, order=True)
    assert again.get("TopicTest") is None
    assert (tmp_path / "topics.json.bak").read_bytes() == GOLDEN.read_bytes()


def test_a_change_by_the_caller_afterwards_does_not_reach_the_table(topics: TopicConfigManager) -> None:
    config = TopicConfig("orders", 3, 3, 6)
    topics.update(config)
    config.perm = 0
    assert topics.configs["orders"].perm == 6


def test_deleting_tells_the_name_servers_and_says_if_there_was_one(topics: TopicConfigManager) -> None:
    topics.update(TopicConfig("orders"))
    told: list[TopicConfig | None] = []
    topics.announce_to(told.append)
    assert topics.delete("orders")
    assert not topics.delete("orders")
    assert told == [None]


def test_exactly_the_listed_topics_are_ordered(topics: TopicConfigManager) -> None:
    topics.update(TopicConfig("a"))
    topics.update(TopicConfig("b", order=True))
    version = topics.data_version.counter
    assert topics.apply_order_topics({"a"})
    assert (topics.configs["a"].order, topics.configs["b"].order) == (True, False)
    assert topics.data_version.counter == version + 1
    assert not topics.apply_order_topics({"a"})
    assert topics.data_version.counter == version + 1


async def test_a_new_topic_is_on_disk_when_saved_returns(topics: TopicConfigManager, tmp_path: Path) -> None:
    task = asyncio.create_task(topics.run())
    topics.update(TopicConfig("orders"))
    await asyncio.wait_for(topics.saved(), WITHIN_S)
    assert "orders" in json.loads((tmp_path / "topics.json").read_bytes())["topicConfigTable"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
