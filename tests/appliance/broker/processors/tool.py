"""A tool, a producer and consumers on bare connections, for tests of the admin requests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from appliance.bench.frames import send_fields
from gantrymq.message.properties import encode_properties
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import Peer, connected
from tests.harness import ServingCluster, serving


class Tool:
    """A running cluster and a connection to its broker."""

    def __init__(self, cluster: ServingCluster, peer: Peer) -> None:
        self.broker = cluster.broker
        self.namesrv = cluster.namesrv
        self.peer = peer
        self.ask = peer.ask

    async def create_topic(self, topic: str, queues: int = 2, **changes: str) -> RemotingCommand:
        fields = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": str(queues),
            "writeQueueNums": str(queues),
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
        }
        return await self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields | changes)

    async def send(self, topic: str, body: bytes, *, queue_id: int = 0, **properties: str) -> RemotingCommand:
        fields = send_fields("PG", topic, queue_id, encode_properties(properties))
        answer = await self.ask(RequestCode.SEND_MESSAGE_V2, fields, body)
        assert answer.code == 0, answer.remark
        return answer

    @contextlib.asynccontextmanager
    async def consumer(
        self, group: str, topic: str, *, client_id: str = "10.0.0.1@c", version: int = 401
    ) -> AsyncIterator[Peer]:
        """A consumer that has said hello, its notice of the change (40) read."""
        subscription = SubscriptionData(topic=topic, sub_version=1)
        beat = HeartbeatData(
            client_id, [ProducerData("PG_tool")], [ConsumerData(group, subscription_data_set=[subscription])]
        )
        async with connected(self.broker.port) as peer:
            request = RemotingCommand.request(RequestCode.HEART_BEAT, body=beat.to_json())
            request.version, request.language = version, "JAVA"
            peer.write(request.encode())
            answers = [await peer.read(), await peer.read()]
            assert {answer.code for answer in answers} == {0, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED}
            yield peer


@contextlib.asynccontextmanager
async def tool_at(folder: Path, **broker: Any) -> AsyncIterator[Tool]:
    async with serving(folder, broker=broker) as cluster, connected(cluster.broker.port) as peer:
        yield Tool(cluster, peer)
