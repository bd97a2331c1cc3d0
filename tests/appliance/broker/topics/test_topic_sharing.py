"""A topic that a send creates on one broker is there on all brokers of the cluster, unless they say no."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.controller import BrokerController
from appliance.broker.topics import topic_sharing
from appliance.namesrv.controller import NamesrvController
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from gantrymq.message.topics import TRACE_TOPIC
from gantrymq.remoting.admin_bodies import TopicConfig
from store.base.config import MessageStoreConfig
from tests.harness import SMALL_STORE
from tests.waiting import until


@contextlib.asynccontextmanager
async def cluster(folder: Path, *settings: dict[str, Any]) -> AsyncIterator[list[BrokerController]]:
    """A name server and a broker for each of the settings."""
    async with contextlib.AsyncExitStack() as stack:
        namesrv = NamesrvController(NamesrvConfig(listen_port=0, kv_config_path=folder / "kvConfig.json"))
        await stack.enter_async_context(namesrv)
        brokers = []
        for number, changes in enumerate(settings):
            address = f"127.0.0.1:{namesrv.port}"
            config = BrokerConfig(
                **{"broker_name": f"b{number}", "listen_port": 0, "namesrv_addresses": address, **changes}
            )
            store = MessageStoreConfig(root=folder / f"store{number}", **SMALL_STORE)
            brokers.append(await stack.enter_async_context(BrokerController(config, store)))
        for broker in brokers:
            await broker.outer_api.register_all()
        yield brokers


def create(broker: BrokerController, topic: str) -> None:
    """As a send does that finds no such topic."""
    assert broker.topics.create_on_send(topic, "TBW102", 4, "test") is not None


async def test_all_brokers_of_the_cluster_get_the_topic_and_nobody_else(tmp_path: Path) -> None:
    async with cluster(tmp_path, {}, {}, {"cluster_name": "other"}) as (first, second, stranger):
        create(first, "orders")
        await until(lambda: second.topics.get("orders") is not None)
        created = second.topics.get("orders")
        assert created is not None
        assert (created.read_queue_nums, created.write_queue_nums, created.perm) == (4, 4, 6)
        await until(lambda: first.topic_sharing.shared == 1)
        assert stranger.topics.get("orders") is None
        assert second.topic_sharing.shared == 0, "who is told does not pass it on"


async def test_the_trace_topic_is_shared_as_any_that_a_client_may_send_to(tmp_path: Path) -> None:
    async with cluster(tmp_path, {}, {}) as (first, second):
        create(first, TRACE_TOPIC)
        await until(lambda: second.topics.get(TRACE_TOPIC) is not None)
        await until(lambda: first.topic_sharing.shared == 1)
        assert first.topic_sharing.failed == 0


async def test_what_could_not_be_shared_is_no_trouble_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_sharing, "LOOK_AGAIN_S", 0.05)
    async with cluster(tmp_path, {}, {"auto_create_topic_enable": False}) as (first, refuser):
        sharing = first.topic_sharing
        create(first, "by-hand")
        create(first, "deleted")
        await until(lambda: sharing.failed == 2)
        refuser.topics.update(TopicConfig("by-hand", 2, 2))
        await until(lambda: sharing.failed == 1)
        first.topics.delete("deleted")
        await until(lambda: sharing.failed == 0)
        assert refuser.topics.get("deleted") is None


async def test_a_topic_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    async with cluster(tmp_path, {}, {}) as (first, second):
        second.topics.update(TopicConfig("orders", 2, 2))
        create(first, "orders")
        create(first, "later")
        await until(lambda: second.topics.get("later") is not None)
        kept = second.topics.get("orders")
        assert kept is not None
        assert kept.write_queue_nums == 2


async def test_sharing_can_be_switched_off_on_either_side(tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [{"share_created_topics_enable": False}, {}, {"auto_create_topic_enable": False}]
    async with cluster(tmp_path, *settings) as (silent, speaker, refuser):
        create(silent, "mine")
        create(speaker, "ours")
        await until(lambda: silent.topics.get("ours") is not None and speaker.topic_sharing.failed == 1)
        assert refuser.topics.get("ours") is None
        assert speaker.topics.get("mine") is None


async def test_a_broker_that_does_not_answer_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_sharing, "RETRY_S", (0.05, 0.05, 0.5, 1.0, 2.0))
    async with cluster(tmp_path, {}, {}) as (first, second):
        tell, tries = first.topic_sharing._tell, 0

        async def deaf_at_first(address: str, topic: TopicConfig) -> None:
            nonlocal tries
            tries += 1
            await tell("127.0.0.1:1" if tries < 3 else address, topic)

        monkeypatch.setattr(first.topic_sharing, "_tell", deaf_at_first)
        create(first, "orders")
        await until(lambda: second.topics.get("orders") is not None)
        assert tries >= 3  # an answer that comes late is asked for once more


async def test_a_broker_alone_has_nobody_to_tell(tmp_path: Path) -> None:
    async with cluster(tmp_path, {}) as (only,):
        create(only, "orders")
        await asyncio.sleep(0.3)  # nobody may be told meanwhile
        assert (only.topic_sharing.shared, only.topic_sharing.failed) == (0, 0)
