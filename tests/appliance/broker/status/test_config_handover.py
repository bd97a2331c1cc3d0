"""A config folder changes hands: ours is read by Apache RocketMQ's broker, and what that writes is read by us."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.process.json_file import JsonFile, document_text, member_text
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting import admin_bodies
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand
from tests.peers.fixtures import make_apache_peer
from tests.waiting import WITHIN_S

pytestmark = pytest.mark.slow

TOPIC = admin_bodies.TopicConfig("orders", 3, 5, 6, order=True)
GROUP = admin_bodies.SubscriptionGroupConfig("g", consume_broadcast_enable=False, retry_max_times=3)


def write_config(folder: Path, config: BrokerConfig) -> None:
    topics = TopicConfigManager(folder / "topics.json", config)
    groups = SubscriptionGroupManager(folder / "subscriptionGroup.json", config)
    offsets = ConsumerOffsetManager(folder / "consumerOffset.json", config)
    topics.load()
    groups.load()
    topics.update(TOPIC)
    groups.update(GROUP)
    for queue_id in range(3):
        offsets.commit("g", "orders", queue_id, 10 + queue_id)
    for table in (topics, groups, offsets):
        table.persist()
    JsonFile(folder / "delayOffset.json").write(document_text({"offsetTable": [member_text("3", "7")]}), 1)


async def test_apaches_broker_takes_over_our_files_and_we_take_over_its(tmp_path: Path) -> None:
    peer = make_apache_peer(tmp_path / "apache")
    config_folder = peer.store / "config"
    write_config(config_folder, BrokerConfig(broker_name=peer.broker_name))
    client = RemotingClient()
    with peer:

        async def ask(code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
            answer = await client.invoke(
                peer.broker_address, RemotingCommand.request(code, fields, body), timeout_s=WITHIN_S
            )
            assert answer.code == 0, answer.remark
            return answer

        topics = admin_bodies.TopicConfigSerializeWrapper.from_json((await ask(21)).body)
        assert topics.topic_config_table["orders"].write_queue_nums == 5
        groups = admin_bodies.SubscriptionGroupWrapper.from_json((await ask(201)).body)
        assert groups.subscription_group_table["g"] == GROUP
        offsets = admin_bodies.ConsumerOffsetTable.from_json((await ask(43)).body)
        assert offsets.offset_table == {"orders@g": {0: 10, 1: 11, 2: 12}}
        assert admin_bodies.DelayOffsetTable.from_json((await ask(45)).body).offset_table[3] in (0, 7), (
            "its queue 3 is empty"
        )
        place = {"consumerGroup": "g", "topic": "orders", "queueId": "4", "commitOffset": "99"}
        await ask(15, place)
        await ask(200, body=admin_bodies.SubscriptionGroupConfig("h").to_json())
        await client.close()
        peer.stop_broker()
        ours = ConsumerOffsetManager(config_folder / "consumerOffset.json", BrokerConfig())
        ours.load()
        assert ours.offsets("orders", "g") == {0: 10, 1: 11, 2: 12, 4: 99}
        our_groups = SubscriptionGroupManager(config_folder / "subscriptionGroup.json", BrokerConfig())
        our_groups.load()
        assert our_groups.configs["g"] == GROUP
        assert "h" in our_groups.configs
        our_topics = TopicConfigManager(config_folder / "topics.json", BrokerConfig())
        our_topics.load()
        assert our_topics.configs["orders"].read_queue_nums == 3
