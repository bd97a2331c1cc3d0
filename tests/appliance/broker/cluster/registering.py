"""A broker's outer API that runs alone, and name servers for it to register with."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.namesrv.controller import NamesrvController
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from tests.waiting import aside

ADDRESS, HA_ADDRESS = "10.1.1.1:10911", "10.1.1.1:10912"


def namesrv(tmp_path: Path, port: int = 0) -> NamesrvController:
    return NamesrvController(NamesrvConfig(listen_port=port, kv_config_path=tmp_path / f"kv{port}.json"))


def topic_table(tmp_path: Path, config: BrokerConfig) -> TopicConfigManager:
    topics = TopicConfigManager(tmp_path / "topics.json", config)
    topics.load()
    return topics


@contextlib.asynccontextmanager
async def registering(
    tmp_path: Path, *ports: int, **settings: object
) -> AsyncIterator[tuple[BrokerOuterApi, TopicConfigManager]]:
    """A running outer API of a broker that is nothing else; a name server that is slow to answer is waited for."""
    addresses = ";".join(f"127.0.0.1:{port}" for port in ports)
    config = BrokerConfig(namesrv_addresses=addresses, **{"register_timeout_ms": 60_000, **settings})  # type: ignore[arg-type]
    topics = topic_table(tmp_path, config)
    outer_api = BrokerOuterApi(config, topics, address=ADDRESS, ha_address=HA_ADDRESS)
    topics.announce_to(outer_api.topic_changed)
    async with aside(outer_api.run()):
        yield outer_api, topics
