"""What clients see over real connections: notices, offsets that survive, delayed and failed messages that come back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from gantrymq.message.record import decode_records
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand
from tests.conftest import time_limit
from tests.harness import ServingCluster, serving
from tests.waiting import WITHIN_S


class Consumer:
    """One client instance: its connection, and the groups it was told to rebalance."""

    def __init__(self, address: str, client_id: str) -> None:
        self._address = address
        self._client_id = client_id
        self.notices: list[str] = []
        self.noticed = asyncio.Event()
        self._client = RemotingClient(request_handlers={40: self._on_notice})

    async def _on_notice(self, address: str, request: RemotingCommand) -> None:
        self.notices.append(request.ext_fields["consumerGroup"])
        self.noticed.set()

    async def ask(self, code: int, body: bytes = b"", **fields: object) -> RemotingCommand:
        texts = {key: str(value) for key, value in fields.items()}
        return await self._client.invoke(self._address, RemotingCommand.request(code, texts, body), timeout_s=WITHIN_S)

    async def beat(self, *topics: str, group: str = "g") -> None:
        data = ConsumerData(group, subscription_data_set=[SubscriptionData(topic, sub_version=1) for topic in topics])
        answer = await self.ask(34, HeartbeatData(self._client_id, consumer_data_set=[data]).to_json())
        assert answer.code == 0

    async def told(self) -> None:
        """Wait for the next notice."""
        async with asyncio.timeout(WITHIN_S):
            await self.noticed.wait()
        self.noticed.clear()

    async def pull(self, topic: str, queue_id: int = 0, *, wait_ms: int = 60_000) -> RemotingCommand:
        return await self.ask(
            11,
            consumerGroup="g",
            topic=topic,
            queueId=queue_id,
            queueOffset=0,
            maxMsgNums=32,
            sysFlag=2,
            commitOffset=0,
            suspendTimeoutMillis=wait_ms,
            subVersion=1,
            expressionType="TAG",
        )

    async def close(self) -> None:
        await self._client.close()


@contextlib.asynccontextmanager
async def consumer(cluster: ServingCluster, client_id: str) -> AsyncIterator[Consumer]:
    made = Consumer(cluster.broker_address, client_id)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ServingCluster]:
    async with serving(tmp_path, store={"delay_levels": "1s 1s 1s 2s"}) as cluster:
        yield cluster


async def test_members_hear_of_each_other_and_of_a_connection_that_closes(cluster: ServingCluster) -> None:
    async with consumer(cluster, "c1") as one:
        await one.beat("t")
        await one.told()
        async with consumer(cluster, "c2") as two:
            await two.beat("t")
            await one.told()
            await two.told()
            ids = orjson.loads((await one.ask(38, consumerGroup="g")).body)["consumerIdList"]
            assert ids == ["c1", "c2"]
        await one.told()
        assert orjson.loads((await one.ask(38, consumerGroup="g")).body)["consumerIdList"] == ["c1"]


async def test_offsets_groups_and_topics_survive_a_restart(tmp_path: Path) -> None:
    place: dict[str, Any] = {"consumerGroup": "g", "topic": "t", "queueId": 3}
    async with serving(tmp_path) as cluster, consumer(cluster, "c1") as one:
        await one.beat("t")
        assert (await one.ask(15, **place, commitOffset=42)).code == 0
    async with serving(tmp_path) as cluster, consumer(cluster, "c1") as one:
        assert (await one.ask(14, **place)).ext_fields == {"offset": "42"}
        assert "g" in cluster.broker.groups.configs
        assert cluster.broker.topics.get("%RETRY%g") is not None


async def test_a_delayed_message_comes_in_time_and_a_failed_one_comes_again(cluster: ServingCluster) -> None:
    async with consumer(cluster, "c1") as one:
        await one.beat("t", "%RETRY%g")
        began = asyncio.get_running_loop().time()
        sent = await one.ask(
            310,
            b"m",
            a="p",
            b="t",
            c="TBW102",
            d=1,
            e=0,
            f=0,
            g=1,
            h=0,
            i="UNIQ_KEY\x01u\x02DELAY\x011",
            j=0,
            k="false",
        )
        assert sent.code == 0
        pulled = await one.pull("t")
        assert pulled.code == 0
        assert 0.9 < asyncio.get_running_loop().time() - began < time_limit(2)
        (message,) = decode_records(pulled.body)
        back = await one.ask(
            36,
            offset=message.physical_offset,
            group="g",
            delayLevel=0,
            originMsgId="u",
            originTopic="t",
            unitMode="false",
        )
        assert back.code == 0
        pulled = await one.pull("%RETRY%g")
        assert pulled.code == 0
        (again,) = decode_records(pulled.body)
        assert (again.body, again.reconsume_times) == (b"m", 1)
        assert (again.topic, again.properties["RETRY_TOPIC"]) == ("%RETRY%g", "t")
        assert again.properties["ORIGIN_MESSAGE_ID"] == message.offset_msg_id
        assert again.properties["UNIQ_KEY"] == "u"
